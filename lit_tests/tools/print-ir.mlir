// RUN: pipeline-opt %s --canonicalize --cse --mlir-print-ir-before=cse -o %t 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: pipeline-opt %s --canonicalize --cse --mlir-print-ir-after=canonicalize -o %t 2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --canonicalize --test-mark --mlir-print-ir-before-all --mlir-print-ir-after-all -o %t 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: pipeline-opt %s --canonicalize --cse --mlir-print-ir-after-change -o %t 2>&1 | FileCheck %s --check-prefix=CHANGE
// RUN: not pipeline-opt %s --mlir-print-ir-after=csee 2>&1 | FileCheck %s --check-prefix=NAME

// NAME: pipeline-opt: error: unknown pass 'csee'; did you mean 'cse'?

// BEFORE-NOT: IR Dump Before canonicalize
// BEFORE: // -----// IR Dump Before cse ('builtin.module' operation) //----- //
// BEFORE: return %[[A:.*]] : i32
// BEFORE-NOT: IR Dump

// AFTER-NOT: IR Dump Before
// AFTER: // -----// IR Dump After canonicalize ('builtin.module' operation) //----- //
// AFTER: return %[[A:.*]] : i32
// AFTER-NOT: IR Dump

// ALL: // -----// IR Dump Before canonicalize ('builtin.module' operation) //----- //
// ALL: arith.addi
// ALL: // -----// IR Dump After canonicalize ('builtin.module' operation) //----- //
// ALL-NOT: arith.addi
// ALL: // -----// IR Dump Before test-mark ('func.func' operation: @f) //----- //
// ALL-NEXT: func.func @f(%[[A:.*]]: i32) -> i32 {
// ALL: // -----// IR Dump After test-mark ('func.func' operation: @f) //----- //
// ALL-NEXT: func.func @f(%[[A:.*]]: i32) -> i32 attributes {marked} {

// CHANGE: IR Dump After canonicalize
// CHANGE-NOT: IR Dump After cse

func.func @f(%a: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %same = arith.addi %a, %zero : i32
  return %same : i32
}
