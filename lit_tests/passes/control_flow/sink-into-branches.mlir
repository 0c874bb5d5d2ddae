// RUN: pipeline-opt %s --sink-into-branches | FileCheck %s
// RUN: pipeline-opt %s --sink-into-branches --remarks-filter=sink-into-branches --verify-diagnostics

#id = affine_map<(d0) -> (d0)>

func.func private @effect(tensor<4xf32>) -> tensor<4xf32>

// One branch uses it: it goes there, and so does what it alone needs.

// CHECK-LABEL: func.func @one_branch
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: scf.if %[[C]]
// CHECK-NEXT: scf.yield %[[X]]
// CHECK-NEXT: } else {
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: %[[A:.*]] = linalg.exp ins(%[[X]]
// CHECK-NEXT: %[[B:.*]] = linalg.log ins(%[[A]]
// CHECK-NEXT: scf.yield %[[B]]
func.func @one_branch(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @below {{passed: only one branch needs it}}
  %e = tensor.empty() : tensor<4xf32>
  // expected-remark @below {{passed: only one branch needs it}}
  %a = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-remark @below {{passed: only one branch needs it}}
  %b = linalg.log ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = scf.if %c -> tensor<4xf32> {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Through two conditions.

// CHECK-LABEL: func.func @nested
// CHECK-SAME: (%[[C:.*]]: i1, %[[D:.*]]: i1,
// CHECK-NEXT: scf.if %[[C]]
// CHECK-NEXT: scf.if %[[D]]
// CHECK-NEXT: math.exp
func.func @nested(%c: i1, %d: i1, %x: f32) -> f32 {
  // expected-remark @below {{passed: only one branch needs it}}
  // expected-remark @below {{passed: only one branch needs it}}
  %a = math.exp %x : f32
  %r = scf.if %c -> f32 {
    %s = scf.if %d -> f32 {
      scf.yield %a : f32
    } else {
      scf.yield %x : f32
    }
    scf.yield %s : f32
  } else {
    scf.yield %x : f32
  }
  return %r : f32
}

// Both branches use it, and it fuses with what the first one does: each gets one.

// CHECK-LABEL: func.func @both
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: scf.if %[[C]]
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[A]] : tensor<4xf32>)
// CHECK: } else {
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4xf32>)
// CHECK: scf.yield %[[A]]
func.func @both(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @below {{passed: both branches need it}}
  %e = tensor.empty() : tensor<4xf32>
  // expected-remark @below {{passed: both branches need it, and it fuses there}}
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %r = scf.if %c -> tensor<4xf32> {
    %e2 = tensor.empty() : tensor<4xf32>
    %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%a : tensor<4xf32>) outs(%e2 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = math.log %in : f32
      linalg.yield %v : f32
    } -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Must not fire: both branches need a product, and one copy of its code is enough.

// CHECK-LABEL: func.func @product
// CHECK: linalg.matmul
// CHECK: scf.if
// CHECK-NOT: linalg.matmul
func.func @product(%c: i1, %x: tensor<2x2xf32>, %z: tensor<2x2xf32>) -> tensor<2x2xf32> {
  // expected-remark @below {{missed: both branches need it, and it fuses with nothing there}}
  %p = linalg.matmul ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
  %r = scf.if %c -> tensor<2x2xf32> {
    %y = linalg.exp ins(%p : tensor<2x2xf32>) outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
    scf.yield %y : tensor<2x2xf32>
  } else {
    scf.yield %p : tensor<2x2xf32>
  }
  return %r : tensor<2x2xf32>
}

// Must not fire: a branch in a loop, and the op in front of the loop: inside it would run in every round.

// CHECK-LABEL: func.func @loop
// CHECK: linalg.exp
// CHECK-NEXT: scf.for
// CHECK: scf.if
// CHECK-NOT: linalg.exp
func.func @loop(%c: i1, %x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %a = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> tensor<4xf32> {
    %b = scf.if %c -> tensor<4xf32> {
      scf.yield %a : tensor<4xf32>
    } else {
      scf.yield %s : tensor<4xf32>
    }
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Into the branch, but not into the loop in it.

// CHECK-LABEL: func.func @loop_in_branch
// CHECK: scf.if
// CHECK-NEXT: math.exp
// CHECK-NEXT: scf.for
func.func @loop_in_branch(%c: i1, %x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{passed: only one branch needs it}}
  %a = math.exp %x : f32
  %r = scf.if %c -> f32 {
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> f32 {
      %next = arith.addf %s, %a : f32
      scf.yield %next : f32
    }
    scf.yield %l : f32
  } else {
    scf.yield %x : f32
  }
  return %r : f32
}

// Must not fire: the effect happens on both ways; the condition needs it; so does what comes after the branches.

// CHECK-LABEL: func.func @needed_outside
// CHECK: call @effect
// CHECK: linalg.exp
// CHECK: arith.cmpf
// CHECK: scf.if
// CHECK-NOT: linalg.exp
func.func @needed_outside(%x: tensor<4xf32>, %u: f32, %v: f32) -> (tensor<4xf32>, tensor<4xf32>, f32) {
  // expected-remark @below {{missed: is used in a branch only, but has side effects}}
  %f = func.call @effect(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  // expected-remark @below {{missed: is used in a branch, but also outside of it}}
  %a = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %sum = arith.addf %u, %v : f32
  %c = arith.cmpf ogt, %sum, %u : f32
  %r:2 = scf.if %c -> (tensor<4xf32>, f32) {
    scf.yield %f, %sum : tensor<4xf32>, f32
  } else {
    scf.yield %a, %u : tensor<4xf32>, f32
  }
  return %r#0, %a, %r#1 : tensor<4xf32>, tensor<4xf32>, f32
}
