// RUN: pipeline-opt %s --call-externals | FileCheck %s
// RUN: not pipeline-opt %S/Inputs/returns.mlir --call-externals 2>&1 | FileCheck %s --check-prefix=RETURNS

// The body becomes a call, without the size that only the body needed, and with the numbers of the steps.

// CHECK: func.func private @mine_0.external(memref<?xf32>, memref<?xf32>, i64, i64) attributes {llvm.emit_c_interface, pipeline.calls = ["f", "lib.so", 0, 1]
// CHECK: func.func private @mine_0(%[[X:.*]]: memref<?xf32>, %{{.*}}: index, %[[O:.*]]: memref<?xf32>)
// CHECK-NEXT: %[[FIRST:.*]] = arith.constant 0 : i64
// CHECK-NEXT: %[[SECOND:.*]] = arith.constant 1 : i64
// CHECK-NEXT: call @mine_0.external(%[[X]], %[[O]], %[[FIRST]], %[[SECOND]])
// CHECK-NEXT: return
// CHECK-NOT: linalg.exp

// Must not fire: a kernel without the mark.

// CHECK: func.func private @exp_0
// CHECK: linalg.exp

// RETURNS: a function that is called from outside must write its results to buffers that it is given
func.func private @mine_0(%x: memref<?xf32>, %n: index, %o: memref<?xf32>) attributes {
    pipeline.calls = ["f", "lib.so", 0, 1], pipeline.outputs = 1, pipeline.sizes = [1]} {
  linalg.exp ins(%x : memref<?xf32>) outs(%o : memref<?xf32>)
  return
}

func.func private @exp_0(%x: memref<?xf32>, %o: memref<?xf32>) {
  linalg.exp ins(%x : memref<?xf32>) outs(%o : memref<?xf32>)
  return
}
