// RUN: pipeline-opt %s --split-input-file --profile-kernels | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --profile-kernels --remarks-filter=profile-kernels --verify-diagnostics

// Calls and copies are timed, those in regions too.

// CHECK: module attributes {pipeline.sites =
// CHECK-SAME: {{\[}}["main", {{".*"}}], ["add_0", {{".*"}}], ["copy", {{".*"}}], ["add_0", {{".*"}}]]}
// CHECK: func.func private @pipeline_begin(i64, i64) -> i64
// CHECK: func.func private @pipeline_record(i64, i64, i64)
// CHECK: func.func @main(%[[X:.*]]: memref<16xf32>, %[[C:.*]]: i1, %[[R:.*]]: memref<?xi64> {pipeline.profile})
// CHECK-NEXT: %[[POINTER:.*]] = memref.extract_aligned_pointer_as_index %[[R]]
// CHECK-NEXT: %[[AT:.*]] = arith.index_cast %[[POINTER]] : index to i64
// CHECK-NEXT: %[[WHOLE:.*]] = arith.constant 0 : i64
// CHECK-NEXT: %[[ALL:.*]] = call @pipeline_begin(%[[AT]], %[[WHOLE]]) : (i64, i64) -> i64
// CHECK: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT: %[[T1:.*]] = call @pipeline_begin(%[[AT]], %[[ONE]]) : (i64, i64) -> i64
// CHECK-NEXT: call @add_0(%[[X]])
// CHECK-NEXT: %[[AGAIN:.*]] = arith.constant 1 : i64
// CHECK-NEXT: call @pipeline_record(%[[AT]], %[[AGAIN]], %[[T1]])
// CHECK: %[[T2:.*]] = call @pipeline_begin(
// CHECK-NEXT: memref.copy
// CHECK-NEXT: %[[TWO:.*]] = arith.constant 2 : i64
// CHECK-NEXT: call @pipeline_record(%[[AT]], %[[TWO]], %[[T2]])
// CHECK: scf.if
// CHECK: %[[T3:.*]] = func.call @pipeline_begin(
// CHECK-NEXT: func.call @add_0(%[[X]])
// CHECK-NEXT: %[[THREE:.*]] = arith.constant 3 : i64
// CHECK-NEXT: func.call @pipeline_record(%[[AT]], %[[THREE]], %[[T3]])
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-NEXT: call @pipeline_record(%[[AT]], %[[ZERO]], %[[ALL]])
// CHECK-NEXT: return
func.func private @add_0(memref<16xf32>)
// expected-remark @below {{passed: 3 kernel calls and copies are timed}}
func.func @main(%x: memref<16xf32>, %c: i1, %record: memref<?xi64> {pipeline.profile}) {
  func.call @add_0(%x) : (memref<16xf32>) -> ()
  %y = memref.alloc() : memref<16xf32>
  memref.copy %x, %y : memref<16xf32> to memref<16xf32>
  scf.if %c {
    func.call @add_0(%x) : (memref<16xf32>) -> ()
  }
  memref.dealloc %y : memref<16xf32>
  return
}

// -----

// A function that takes no record stays as it is.

// CHECK-NOT: pipeline_begin
// CHECK-LABEL: func.func @prepare
// CHECK-NEXT: call @add_0
// CHECK-NEXT: return
func.func private @add_0(memref<16xf32>)
func.func @prepare(%x: memref<16xf32>) {
  func.call @add_0(%x) : (memref<16xf32>) -> ()
  return
}
