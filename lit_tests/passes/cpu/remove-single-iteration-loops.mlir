// RUN: pipeline-opt %s --remove-single-iteration-loops --split-input-file | FileCheck %s

// A loop that runs once is its body, inner ones first; what it hands on is what its body computes.

// CHECK-LABEL: func.func @once
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>, %[[Y:.*]]: f32) -> f32
// CHECK: %[[THREE:.*]] = arith.constant 3 : index
// CHECK-NOT: scf.for
// CHECK: %[[A:.*]] = memref.load %[[X]][%[[THREE]]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[Y]]
// CHECK-NEXT: memref.store %[[S]], %[[X]][%[[THREE]]]
// CHECK-NEXT: %[[B:.*]] = memref.load %[[X]][%[[THREE]]]
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[B]], %[[Y]]
// CHECK-NEXT: return %[[T]]
func.func @once(%x: memref<8xf32>, %y: f32) -> f32 {
  %three = arith.constant 3 : index
  %four = arith.constant 4 : index
  %ten = arith.constant 10 : index
  %r = scf.for %i = %three to %four step %ten iter_args(%carried = %y) -> (f32) {
    scf.for %j = %three to %four step %four {
      %a = memref.load %x[%i] : memref<8xf32>
      %s = arith.addf %a, %carried : f32
      memref.store %s, %x[%j] : memref<8xf32>
    }
    %b = memref.load %x[%i] : memref<8xf32>
    %t = arith.addf %b, %carried : f32
    scf.yield %t : f32
  }
  return %r : f32
}

// -----

// Must not: loops that run twice, never, or as often as nobody knows.

// CHECK-LABEL: func.func @more_or_less
// CHECK-COUNT-3: scf.for
func.func @more_or_less(%x: memref<8xf32>, %y: f32, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  scf.for %i = %zero to %two step %one {
    memref.store %y, %x[%i] : memref<8xf32>
  }
  scf.for %i = %one to %zero step %one {
    memref.store %y, %x[%i] : memref<8xf32>
  }
  scf.for %i = %zero to %n step %one {
    memref.store %y, %x[%i] : memref<8xf32>
  }
  return
}
