// Passes of ours, of plugins and of MLIR in one pipeline, with nesting and options; `text` and pass flags say the same.

// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --pass-pipeline="builtin.module(func.func(canonicalize,test-mark{label=x only=f}),cse)" | FileCheck %s
// RUN: pipeline-opt %s --load-plugin %S/Inputs/marks.py --pass-pipeline="canonicalize,test-mark{only=f label='x'},cse" | FileCheck %s
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --canonicalize --test-mark="label=x only=f" --cse | FileCheck %s
// RUN: pipeline-opt %s -load-plugin=%S/Inputs/marks.py -canonicalize=max-iterations=3 -test-mark="label=x only=f" -cse | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[A:.*]]: i32) -> i32 attributes {x}
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[A]], %[[A]] : i32
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.muli %[[SUM]], %[[SUM]] : i32
// CHECK-NEXT: return %[[PRODUCT]] : i32
func.func @f(%a: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %same = arith.addi %a, %zero : i32
  %x = arith.addi %same, %a : i32
  %y = arith.addi %same, %a : i32
  %z = arith.muli %x, %y : i32
  return %z : i32
}

// CHECK-LABEL: func.func @g
// CHECK-NOT: attributes
// CHECK: return
func.func @g() {
  return
}
