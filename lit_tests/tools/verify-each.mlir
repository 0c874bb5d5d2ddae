// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-break 2>&1 | FileCheck %s
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-break --verify-each=false | FileCheck %s --check-prefix=OFF
// CHECK: pipeline-opt: error: {{.*}}verify-each.mlir:7:1: pass 'test-break' failed on func.func @f: it left invalid IR: 'func.func' op entry block
// CHECK-NOT: func.func @f(
// OFF: "func.func"() <{function_type = () -> ()

func.func @f(%a: i32) -> i32 {
  return %a : i32
}
