// RUN: pipeline-opt %s --hoist-common-ops | FileCheck %s
// RUN: pipeline-opt %s --hoist-common-ops --remarks-filter=hoist-common-ops --verify-diagnostics

func.func private @effect(i32)

#id = affine_map<(d0) -> (d0)>

// The product, with what it starts from, and what follows from it; the rest stays where it is.

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<2x2xf32>)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x2xf32>
// CHECK-NEXT: %[[Z:.*]] = linalg.fill
// CHECK-NEXT: %[[P:.*]] = linalg.matmul ins(%[[X]], %[[X]] : {{.*}}) outs(%[[Z]]
// CHECK-NEXT: %[[R:.*]] = scf.if %[[C]]
// CHECK-NEXT: linalg.exp ins(%[[P]]
// CHECK: } else {
// CHECK-NEXT: linalg.log ins(%[[P]]
func.func @product(%c: i1, %x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %r = scf.if %c -> tensor<2x2xf32> {
    // expected-remark @below {{passed: both branches compute it}}
    %e = tensor.empty() : tensor<2x2xf32>
    // expected-remark @below {{passed: both branches compute it}}
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
    // expected-remark @below {{passed: both branches compute it}}
    %p = linalg.matmul ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
    %y = linalg.exp ins(%p : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
    scf.yield %y : tensor<2x2xf32>
  } else {
    %e = tensor.empty() : tensor<2x2xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
    %p = linalg.matmul ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
    %y = linalg.log ins(%p : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
    scf.yield %y : tensor<2x2xf32>
  }
  return %r : tensor<2x2xf32>
}

// A division runs on both ways, so it may run in front of them; so may a whole region that is the same.

// CHECK-LABEL: func.func @division
// CHECK: arith.divsi
// CHECK: linalg.generic
// CHECK: scf.if
// CHECK-NOT: linalg.generic
func.func @division(%c: i1, %x: i32, %y: i32, %t: tensor<4xi32>) -> (i32, tensor<4xi32>) {
  %r:2 = scf.if %c -> (i32, tensor<4xi32>) {
    // expected-remark @below {{passed: both branches compute it}}
    %q = arith.divsi %x, %y : i32
    func.call @effect(%q) : (i32) -> ()
    // expected-remark @below {{passed: both branches compute it}}
    %g = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%t : tensor<4xi32>) {
    ^bb0(%out: i32):
      %s = arith.addi %out, %x : i32
      linalg.yield %s : i32
    } -> tensor<4xi32>
    scf.yield %q, %g : i32, tensor<4xi32>
  } else {
    %g = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%t : tensor<4xi32>) {
    ^bb0(%out: i32):
      %s = arith.addi %out, %x : i32
      linalg.yield %s : i32
    } -> tensor<4xi32>
    %q = arith.divsi %x, %y : i32
    scf.yield %q, %g : i32, tensor<4xi32>
  }
  return %r#0, %r#1 : i32, tensor<4xi32>
}

// Must not fire: the effect comes before the division, which may trap.

// CHECK-LABEL: func.func @after_an_effect
// CHECK: scf.if
// CHECK-NEXT: call @effect
// CHECK-NEXT: arith.divsi
// CHECK: } else {
// CHECK-NEXT: arith.divsi
func.func @after_an_effect(%c: i1, %x: i32, %y: i32) -> i32 {
  %r = scf.if %c -> i32 {
    func.call @effect(%x) : (i32) -> ()
    // expected-remark @below {{missed: both branches compute it, but it may trap, and comes after an effect}}
    %q = arith.divsi %x, %y : i32
    scf.yield %q : i32
  } else {
    %q = arith.divsi %x, %y : i32
    scf.yield %q : i32
  }
  return %r : i32
}

// Must not fire: a loop that may not end comes before it.

// CHECK-LABEL: func.func @after_a_loop
// CHECK: scf.if
// CHECK: arith.divsi
// CHECK: } else {
// CHECK-NEXT: arith.divsi
func.func @after_a_loop(%c: i1, %go: i1, %x: i32, %y: i32) -> i32 {
  %r = scf.if %c -> i32 {
    scf.while : () -> () {
      scf.condition(%go)
    } do {
      scf.yield
    }
    // expected-remark @below {{missed: both branches compute it, but it may trap, and comes after an effect}}
    %q = arith.divsi %x, %y : i32
    scf.yield %q : i32
  } else {
    %q = arith.divsi %x, %y : i32
    scf.yield %q : i32
  }
  return %r : i32
}

// Must not fire: effects; other operands; other attributes; no second branch.

// CHECK-LABEL: func.func @different
// CHECK-SAME: (%[[C:.*]]: i1,
// CHECK-NEXT: scf.if
// CHECK-NEXT: call @effect
// CHECK-NEXT: arith.subi
// CHECK-NEXT: arith.cmpi slt
// CHECK: } else {
// CHECK-NEXT: call @effect
// CHECK-NEXT: arith.subi
// CHECK-NEXT: arith.cmpi sgt
// CHECK: scf.if
// CHECK-NEXT: arith.muli
func.func @different(%c: i1, %x: i32, %y: i32) -> (i32, i1) {
  %r:2 = scf.if %c -> (i32, i1) {
    func.call @effect(%x) : (i32) -> ()
    %d = arith.subi %x, %y : i32
    %e = arith.cmpi slt, %x, %y : i32
    scf.yield %d, %e : i32, i1
  } else {
    func.call @effect(%x) : (i32) -> ()
    %d = arith.subi %y, %x : i32
    %e = arith.cmpi sgt, %x, %y : i32
    scf.yield %d, %e : i32, i1
  }
  scf.if %c {
    %m = arith.muli %x, %y : i32
    func.call @effect(%m) : (i32) -> ()
  }
  return %r#0, %r#1 : i32, i1
}

// What is left of a branch reads the op that went: the division is found where it was, and follows.

// CHECK-LABEL: func.func @division_of_what_went
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: i32, %[[Y:.*]]: i32)
// CHECK-NEXT: %[[S:.*]] = arith.addi %[[X]], %[[Y]]
// CHECK-NEXT: %[[Q:.*]] = arith.divsi %[[S]], %[[Y]]
// CHECK-NEXT: scf.if %[[C]]
func.func @division_of_what_went(%c: i1, %x: i32, %y: i32) -> i32 {
  %r = scf.if %c -> i32 {
    // expected-remark @below {{passed: both branches compute it}}
    %s = arith.addi %x, %y : i32
    // expected-remark @below {{passed: both branches compute it}}
    %q = arith.divsi %s, %y : i32
    func.call @effect(%q) : (i32) -> ()
    scf.yield %q : i32
  } else {
    %s = arith.addi %x, %y : i32
    %q = arith.divsi %s, %y : i32
    scf.yield %q : i32
  }
  return %r : i32
}
