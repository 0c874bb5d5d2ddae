// RUN: pipeline-opt %s --maxnum-by-comparison | FileCheck %s

// What a fold has so far is never NaN: it begins with minus infinity, and NaN is left out.

// CHECK-LABEL: func.func @largest
// CHECK-SAME: (%[[X:.*]]: memref<64xf32>)
// CHECK: %[[FOLD:.*]] = scf.for %{{.*}} iter_args(%[[SO_FAR:.*]] = %{{.*}})
// CHECK-NEXT: %[[V:.*]] = vector.load %[[X]]
// CHECK-NEXT: %[[WINS:.*]] = arith.cmpf ogt, %[[V]], %[[SO_FAR]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.select %[[WINS]], %[[V]], %[[SO_FAR]]
// CHECK: vector.reduction <maxnumf>, %[[FOLD]] fastmath<reassoc,nnan>
func.func @largest(%x: memref<64xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %start = arith.constant dense<0xFF800000> : vector<16xf32>
  %fold = scf.for %i = %c0 to %c64 step %c16 iter_args(%so_far = %start) -> (vector<16xf32>) {
    %v = vector.load %x[%i] : memref<64xf32>, vector<16xf32>
    %next = arith.maxnumf %v, %so_far : vector<16xf32>
    scf.yield %next : vector<16xf32>
  }
  %all = vector.reduction <maxnumf>, %fold fastmath<reassoc> : vector<16xf32> into f32
  return %all : f32
}

// The last vector under a mask; the smallest numbers; a number for all lanes.

// CHECK-LABEL: func.func @masked
// CHECK: arith.cmpf olt, %arg0
// CHECK: vector.reduction <minnumf>, %{{.*}} fastmath<reassoc,nnan>
func.func @masked(%v: vector<4xf32>, %mask: vector<4xi1>) -> f32 {
  %number = arith.constant 0x7F800000 : f32
  %start = vector.broadcast %number : f32 to vector<4xf32>
  %next = arith.minnumf %v, %start : vector<4xf32>
  %kept = arith.select %mask, %next, %start : vector<4xi1>, vector<4xf32>
  %all = vector.reduction <minnumf>, %kept fastmath<reassoc> : vector<4xf32> into f32
  return %all : f32
}

// Must not fire: both may be NaN; a fold that begins with anything; one that forgets what it had; NaN itself.

// CHECK-LABEL: func.func @others
// CHECK-NOT: arith.cmpf
// CHECK-NOT: nnan
func.func @others(%a: vector<4xf32>, %b: vector<4xf32>, %n: index) -> (vector<4xf32>, f32, vector<4xf32>, vector<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %start = arith.constant dense<0xFF800000> : vector<4xf32>
  %nan = arith.constant dense<0x7FC00000> : vector<4xf32>
  %0 = arith.maxnumf %a, %b : vector<4xf32>
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%so_far = %a) -> (vector<4xf32>) {
    %next = arith.maxnumf %b, %so_far : vector<4xf32>
    scf.yield %next : vector<4xf32>
  }
  %2 = vector.reduction <maxnumf>, %1 fastmath<reassoc> : vector<4xf32> into f32
  %3 = scf.for %i = %c0 to %n step %c1 iter_args(%so_far = %start) -> (vector<4xf32>) {
    %next = arith.maxnumf %b, %so_far : vector<4xf32>
    %other = arith.addf %next, %a : vector<4xf32>
    scf.yield %other : vector<4xf32>
  }
  %4 = arith.maxnumf %a, %nan : vector<4xf32>
  return %0, %2, %3, %4 : vector<4xf32>, f32, vector<4xf32>, vector<4xf32>
}
