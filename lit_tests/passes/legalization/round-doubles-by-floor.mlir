// RUN: pipeline-opt %s --split-input-file --round-doubles-by-floor | FileCheck %s

// CHECK-LABEL: func.func @doubles
// CHECK-SAME: (%[[X:.*]]: f64)
// CHECK: %[[BELOW:.*]] = math.floor %[[X]]
// CHECK: %[[REST:.*]] = arith.subf %[[X]], %[[BELOW]]
// CHECK: %[[HALF:.*]] = arith.mulf %[[BELOW]], %{{.*}}
// CHECK: %[[ODD:.*]] = arith.cmpf one, %[[HALF]], %{{.*}}
// CHECK: %[[TIE:.*]] = arith.andi %{{.*}}, %[[ODD]]
// CHECK: %[[UP:.*]] = arith.ori %{{.*}}, %[[TIE]]
// CHECK: %[[NEAREST:.*]] = arith.select %[[UP]], %{{.*}}, %[[BELOW]]
// CHECK: %[[SIGNED:.*]] = math.copysign %[[NEAREST]], %[[X]]
// CHECK: return %[[SIGNED]]
func.func @doubles(%x: f64) -> f64 {
  %r = math.roundeven %x : f64
  return %r : f64
}

// -----

// Must not fire: other types, other roundings.

// CHECK-LABEL: func.func @others
// CHECK-NEXT: math.roundeven %{{.*}} : f32
// CHECK-NEXT: math.floor %{{.*}} : f64
// CHECK-NEXT: return
func.func @others(%x: f32, %y: f64) -> (f32, f64) {
  %r = math.roundeven %x : f32
  %f = math.floor %y : f64
  return %r, %f : f32, f64
}
