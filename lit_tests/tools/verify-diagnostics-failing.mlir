// Diagnostics that nobody expects, and expectations that no diagnostic meets, are errors.

// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-fail --split-input-file --verify-diagnostics 2>&1 | FileCheck %s
// CHECK: error: {{.*}}failing.mlir:10:8: unexpected error: cannot multiply
// CHECK-NEXT: error: {{.*}}failing.mlir:18:8: unexpected error: cannot multiply
// CHECK-NEXT: error: {{.*}}failing.mlir:17: expected error "can multiply" was not produced
// CHECK-NEXT: error: {{.*}}failing.mlir:25: expected remark "cannot multiply" was not produced
func.func @unexpected(%a: i32) {

  %x = arith.muli %a, %a : i32
  return
}

// -----

func.func @other_words(%a: i32) {
  // expected-error @below {{can multiply}}
  %x = arith.muli %a, %a : i32
  return
}

// -----

func.func @not_produced() {
  // expected-remark @below {{cannot multiply}}
  return
}
