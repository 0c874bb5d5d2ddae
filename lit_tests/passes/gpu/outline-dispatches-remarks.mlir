// RUN: pipeline-opt %s --split-input-file --outline-dispatches --remarks-filter=outline-dispatches --verify-diagnostics

// Must not fire: what a block does is linalg ops and copies; with anything else one thread does all, and a remark says so.

func.func @stores(%x: memref<4x8xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-remark @below {{missed: one thread does all iterations: their bodies are no block's}}
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %v, %x[%i, %c0] : memref<4x8xf32>
    memref.store %v, %x[%i, %c1] : memref<4x8xf32>
  } {pipeline.parallel = "tiles"}
  return
}

// -----

func.func @block(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.subview %x[%i, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<1x8xf32, strided<[8, 1], offset: ?>>
    %b = memref.subview %y[%i, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<1x8xf32, strided<[8, 1], offset: ?>>
    memref.copy %a, %b : memref<1x8xf32, strided<[8, 1], offset: ?>> to memref<1x8xf32, strided<[8, 1], offset: ?>>
  } {pipeline.parallel = "tiles"}
  return
}
