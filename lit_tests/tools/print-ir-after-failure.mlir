// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/marks.py --canonicalize --test-fail --mlir-print-ir-after-failure 2>&1 | FileCheck %s
// CHECK-NOT: IR Dump After
// CHECK: // -----// IR Dump Failed test-fail ('builtin.module' operation) //----- //
// CHECK: arith.muli
// CHECK: pipeline-opt: error:
func.func @f(%a: i32) -> i32 {
  %x = arith.muli %a, %a : i32
  return %x : i32
}
