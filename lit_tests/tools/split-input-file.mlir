// RUN: pipeline-opt %s --split-input-file | FileCheck %s
// RUN: not pipeline-opt %s --split-input-file --load-plugin=%S/Inputs/marks.py --test-fail 2>&1 | FileCheck %s --check-prefix=FAIL
// RUN: not pipeline-opt %s 2>&1 | FileCheck %s --check-prefix=WHOLE

// Unsplit, the function is defined twice.
// WHOLE: pipeline-opt: error: {{.*}}split-input-file.mlir:23:1: redefinition of symbol named 'f'

// The part that fails is left out; the position is that in the whole file.
// FAIL-NOT: func.func @f(%
// FAIL-DAG: func.func @f() {
// FAIL-DAG: pipeline-opt: error: {{.*}}split-input-file.mlir:24:8: pass 'test-fail' failed on builtin.module: cannot multiply

// CHECK: func.func @f() {
// CHECK: {{^}}// -----{{$}}
// CHECK: func.func @f(%[[A:.*]]: i32) -> i32
// CHECK-NEXT: arith.muli %[[A]], %[[A]]
func.func @f() {
  return
}

// -----

func.func @f(%a: i32) -> i32 {
  %x = arith.muli %a, %a : i32
  return %x : i32
}
