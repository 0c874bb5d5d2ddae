// RUN: pipeline-opt %s --split-input-file --pass-pipeline='builtin.module(parallelize-kernels{least=100})' | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --pass-pipeline='builtin.module(parallelize-kernels{least=100})' --remarks-filter=parallelize-kernels --verify-diagnostics

// The loop becomes a function of its bounds; constants are copied, what it reads is passed.

// CHECK-LABEL: func.func private @scale_0_chunk_0
// CHECK-SAME: (%[[FIRST:.*]]: index, %[[LAST:.*]]: index, %[[X:.*]]: memref<64xf32>, %[[F:.*]]: f32)
// CHECK-SAME: attributes {pipeline.chunk = 2 : i64}
// CHECK: %[[STEP:.*]] = arith.constant 2 : index
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %[[LAST]] step %[[STEP]] {
// CHECK: memref.load %[[X]][%[[I]]]
// CHECK: arith.mulf %{{.*}}, %[[F]]
// CHECK-LABEL: func.func private @scale_0(
// CHECK-SAME: %[[X:.*]]: memref<64xf32>, %[[F:.*]]: f32)
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK-NOT: scf.for
// CHECK: call @scale_0_chunk_0(%[[C0]], %[[C64]], %[[X]], %[[F]])
func.func private @scale_0(%x: memref<64xf32>, %f: f32) attributes {pipeline.kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  // expected-remark @below {{passed: 32 iterations are shared by threads}}
  scf.for %i = %c0 to %c64 step %c2 {
    %a = memref.load %x[%i] : memref<64xf32>
    %b = arith.mulf %a, %f : f32
    %c = arith.addf %b, %f : f32
    memref.store %c, %x[%i] : memref<64xf32>
  } {pipeline.parallel = "places"}
  return
}

// -----

// Scratch that only the loop uses is the function's own.

// CHECK-LABEL: func.func private @rows_0_chunk_0
// CHECK: memref.alloca() : memref<64xf32>
// CHECK-LABEL: func.func private @rows_0(
// CHECK-NOT: memref.alloca
// CHECK: call @rows_0_chunk_0
func.func private @rows_0(%x: memref<64xf32>) attributes {pipeline.kernel = "softmax"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %s = memref.alloca() : memref<64xf32>
  // expected-remark @below {{passed: 64 iterations are shared by threads}}
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    memref.store %a, %s[%c0] : memref<64xf32>
    %b = memref.load %s[%c0] : memref<64xf32>
    memref.store %b, %x[%i] : memref<64xf32>
  } {pipeline.parallel = "tiles"}
  return
}

// -----

// Scratch that is used outside of the loop, too, would be shared by threads.

// CHECK-NOT: pipeline.chunk
// CHECK-LABEL: func.func private @rows_0(
// CHECK: scf.for
func.func private @rows_0(%x: memref<64xf32>) attributes {pipeline.kernel = "softmax"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %s = memref.alloca() : memref<64xf32>
  // expected-remark @below {{missed: scratch is used outside of the loop, too}}
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    memref.store %a, %s[%c0] : memref<64xf32>
    %b = memref.load %s[%c0] : memref<64xf32>
    memref.store %b, %x[%i] : memref<64xf32>
  } {pipeline.parallel = "tiles"}
  %last = memref.load %s[%c0] : memref<64xf32>
  memref.store %last, %x[%c0] : memref<64xf32>
  return
}

// -----

// Nor is scratch that every iteration fills anew.

// CHECK-NOT: pipeline.chunk
// CHECK-LABEL: func.func private @panel_0(
// CHECK: scf.for
func.func private @panel_0(%x: memref<64x64xf32>) attributes {pipeline.kernel = "contraction"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %panel = memref.alloc() : memref<64xf32>
  // expected-remark @below {{missed: all iterations write to the same scratch}}
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %a = memref.load %x[%i, %j] : memref<64x64xf32>
      memref.store %a, %panel[%j] : memref<64xf32>
    }
    scf.for %j = %c0 to %c64 step %c1 {
      %a = memref.load %panel[%j] : memref<64xf32>
      memref.store %a, %x[%j, %i] : memref<64x64xf32>
    }
  } {pipeline.parallel = "places"}
  memref.dealloc %panel : memref<64xf32>
  return
}

// -----

// Each may fill a part of it.

// CHECK-LABEL: func.func private @panel_0_chunk_0
// CHECK-SAME: memref<64x64xf32>
func.func private @panel_0(%x: memref<64x64xf32>) attributes {pipeline.kernel = "contraction"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %panel = memref.alloc() : memref<64x64xf32>
  // expected-remark @below {{passed: 64 iterations are shared by threads}}
  scf.for %i = %c0 to %c64 step %c1 {
    %row = arith.addi %i, %c0 : index
    scf.for %j = %c0 to %c64 step %c1 {
      %a = memref.load %x[%i, %j] : memref<64x64xf32>
      memref.store %a, %panel[%row, %j] : memref<64x64xf32>
    }
  } {pipeline.parallel = "places"}
  memref.dealloc %panel : memref<64x64xf32>
  return
}

// -----

// What calls kernels has long loops itself where it copies.

// CHECK-LABEL: func.func private @main_chunk_0
// CHECK-LABEL: func.func @main(
// CHECK: call @main_chunk_0
func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  // expected-remark @below {{passed: 64 iterations are shared by threads}}
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    memref.store %a, %y[%i] : memref<64xf32>
  } {pipeline.parallel = "places"}
  return
}

// -----

// Loops that nobody marked, loops with little to do, and functions that are no kernels stay.

// CHECK-NOT: pipeline.chunk
// CHECK-LABEL: func.func private @sum_0(
// CHECK: scf.for
// CHECK-LABEL: func.func private @little_0(
// CHECK: scf.for
// CHECK-LABEL: func.func private @other_0(
// CHECK: scf.for
func.func private @sum_0(%x: memref<64xf32>, %y: memref<1xf32>) attributes {pipeline.kernel = "reduction"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    %b = memref.load %y[%c0] : memref<1xf32>
    %c = arith.addf %a, %b : f32
    memref.store %c, %y[%c0] : memref<1xf32>
  }
  return
}

func.func private @little_0(%x: memref<64xf32>) attributes {pipeline.kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c0 to %c9 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    memref.store %a, %x[%i] : memref<64xf32>
  } {pipeline.parallel = "places"}
  return
}

func.func private @other_0(%x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    memref.store %a, %x[%i] : memref<64xf32>
  } {pipeline.parallel = "places"}
  return
}
