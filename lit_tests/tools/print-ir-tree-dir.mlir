// RUN: rm -rf %t
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --cse --test-mark --mlir-print-ir-tree-dir=%t -o %t.mlir
// RUN: FileCheck %s --check-prefix=CSE --input-file %t/builtin_module_no-symbol-name/0_cse.mlir
// RUN: FileCheck %s --check-prefix=F --input-file %t/builtin_module_no-symbol-name/func_func_f/1_test-mark.mlir
// RUN: FileCheck %s --check-prefix=G --input-file %t/builtin_module_no-symbol-name/func_func_g/2_test-mark.mlir
// CSE: IR Dump After cse ('builtin.module' operation)
// CSE-NOT: marked
// F: IR Dump After test-mark ('func.func' operation: @f)
// F-NEXT: func.func @f() attributes {marked}
// G: IR Dump After test-mark ('func.func' operation: @g)
// G-NEXT: func.func @g() attributes {marked}
func.func @f() { return }
func.func @g() { return }
