// RUN: pipeline-opt %s --relax-signed-zeros | FileCheck %s

// CHECK-LABEL: func.func @extremes
// CHECK: arith.maximumf %{{.*}}, %{{.*}} fastmath<nsz> : vector<16xf32>
// CHECK: arith.minimumf %{{.*}}, %{{.*}} fastmath<nnan,nsz> : f32
// CHECK: vector.reduction <maximumf>, %{{.*}} fastmath<reassoc,nsz> : vector<16xf32> into f32
// CHECK: arith.minimumf %{{.*}}, %{{.*}} fastmath<fast> : f32
func.func @extremes(%a: vector<16xf32>, %x: f32) -> (vector<16xf32>, f32, f32, f32) {
  %0 = arith.maximumf %a, %a : vector<16xf32>
  %1 = arith.minimumf %x, %x fastmath<nnan> : f32
  %2 = vector.reduction <maximumf>, %a fastmath<reassoc> : vector<16xf32> into f32
  %3 = arith.minimumf %x, %x fastmath<fast> : f32
  return %0, %1, %2, %3 : vector<16xf32>, f32, f32, f32
}

// Must not fire: other ops and other reductions.

// CHECK-LABEL: func.func @others
// CHECK-NOT: nsz
func.func @others(%a: vector<16xf32>, %x: f32) -> (f32, f32, f32, f32) {
  %0 = arith.addf %x, %x : f32
  %1 = arith.maxnumf %x, %x : f32
  %2 = vector.reduction <add>, %a : vector<16xf32> into f32
  %3 = vector.reduction <maxnumf>, %a : vector<16xf32> into f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}
