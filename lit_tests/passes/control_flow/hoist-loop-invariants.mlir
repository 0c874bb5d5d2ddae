// RUN: pipeline-opt %s --hoist-loop-invariants | FileCheck %s
// RUN: pipeline-opt %s --hoist-loop-invariants --remarks-filter=hoist-loop-invariants --verify-diagnostics

#id = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0) -> ()>

func.func private @effect(tensor<4xf32>)

// The product of what does not change leaves the loop, with the fill that it starts from; the step stays.

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>, %[[W:.*]]: tensor<3x2xf32>, %[[H:.*]]: tensor<2x2xf32>, %[[N:.*]]: index)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x2xf32>
// CHECK-NEXT: %[[Z:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[E]] : tensor<2x2xf32>)
// CHECK-NEXT: %[[P:.*]] = linalg.matmul ins(%[[X]], %[[W]] : {{.*}}) outs(%[[Z]] : tensor<2x2xf32>)
// CHECK-NEXT: scf.for %{{.*}} iter_args(%[[S:.*]] = %[[H]])
// CHECK-NOT: linalg.fill
// CHECK: linalg.add ins(%[[S]], %[[P]] :
func.func @product(%x: tensor<2x3xf32>, %w: tensor<3x2xf32>, %h: tensor<2x2xf32>, %n: index) -> tensor<2x2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %h) -> tensor<2x2xf32> {
    %e = tensor.empty() : tensor<2x2xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
    // expected-remark @below {{passed: is computed once, in front of the loop}}
    %p = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x2xf32>) outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
    %e2 = tensor.empty() : tensor<2x2xf32>
    %next = linalg.add ins(%s, %p : tensor<2x2xf32>, tensor<2x2xf32>) outs(%e2 : tensor<2x2xf32>) -> tensor<2x2xf32>
    scf.yield %next : tensor<2x2xf32>
  }
  return %r : tensor<2x2xf32>
}

// Out of two loops, and out of a while loop; float division and sqrt cannot trap.

// CHECK-LABEL: func.func @nested
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32>,
// CHECK: %[[ROOT:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4xf32>)
// CHECK: math.sqrt
// CHECK: scf.while
// CHECK: scf.for
// CHECK-NOT: math.sqrt
// CHECK: linalg.sub ins(%{{.*}}, %[[ROOT]]
func.func @nested(%x: tensor<4xf32>, %h: tensor<4xf32>, %n: index, %go: tensor<i1>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %r = scf.while (%a = %h) : (tensor<4xf32>) -> tensor<4xf32> {
    %first = tensor.extract %a[%c0] : tensor<4xf32>
    %goes_on = arith.cmpf ogt, %first, %one : f32
    scf.condition(%goes_on) %a : tensor<4xf32>
  } do {
  ^bb0(%b: tensor<4xf32>):
    %inner = scf.for %i = %c0 to %n step %c1 iter_args(%s = %b) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      // expected-remark @below {{passed: is computed once, in front of the loop}}
      // expected-remark @below {{passed: is computed once, in front of the loop}}
      %root = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %q = arith.divf %one, %in : f32
        %s0 = math.sqrt %q : f32
        linalg.yield %s0 : f32
      } -> tensor<4xf32>
      %e2 = tensor.empty() : tensor<4xf32>
      %next = linalg.sub ins(%s, %root : tensor<4xf32>, tensor<4xf32>) outs(%e2 : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %next : tensor<4xf32>
    }
    scf.yield %inner : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// A branch that is the same in every round leaves the loop as a whole.

// CHECK-LABEL: func.func @branch
// CHECK: %[[R:.*]] = scf.if
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: arith.addf %{{.*}}, %[[R]]
func.func @branch(%c: i1, %x: f32, %y: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> f32 {
    // expected-remark @below {{passed: is computed once, in front of the loop}}
    %b = scf.if %c -> f32 {
      %d = arith.mulf %x, %y : f32
      scf.yield %d : f32
    } else {
      scf.yield %y : f32
    }
    %next = arith.addf %s, %b : f32
    scf.yield %next : f32
  }
  return %r : f32
}

// Must not fire: a loop may run no round, and integers may be divided by zero in none.

// CHECK-LABEL: func.func @division
// CHECK: scf.for
// CHECK: arith.divsi
func.func @division(%x: i32, %y: i32, %n: index) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> i32 {
    // expected-remark @below {{missed: is the same in every round, but stays in the loop: arith.divsi may divide by zero}}
    %q = arith.divsi %x, %y : i32
    %next = arith.addi %s, %q : i32
    scf.yield %next : i32
  }
  return %r : i32
}

// Must not fire: division by -1 traps for the least number. By 3 it never does.

// CHECK-LABEL: func.func @known_divisors
// CHECK: %[[Q:.*]] = arith.divsi %{{.*}}, %c3
// CHECK: scf.for
// CHECK: arith.divsi %{{.*}}, %c-1
func.func @known_divisors(%x: i32, %n: index) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %minus = arith.constant -1 : i32
  %three = arith.constant 3 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> i32 {
    // expected-remark @below {{missed: is the same in every round, but stays in the loop: arith.divsi may divide by zero}}
    %q = arith.divsi %x, %minus : i32
    // expected-remark @below {{passed: is computed once}}
    %p = arith.divsi %x, %three : i32
    %t = arith.addi %s, %q : i32
    %next = arith.addi %t, %p : i32
    scf.yield %next : i32
  }
  return %r : i32
}

// Must not fire: an index may be out of range, a call may do anything, an inner while loop may not end.

// CHECK-LABEL: func.func @effects
// CHECK: scf.for
// CHECK: tensor.extract
// CHECK: call @effect
// CHECK: scf.while
func.func @effects(%x: tensor<4xf32>, %at: index, %n: index, %go: i1, %h: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %h) -> f32 {
    // expected-remark @below {{missed: is the same in every round, but stays in the loop: tensor.extract may be out of range}}
    %q = tensor.extract %x[%at] : tensor<4xf32>
    // expected-remark @below {{missed: is the same in every round, but stays in the loop: func.call has side effects}}
    func.call @effect(%x) : (tensor<4xf32>) -> ()
    // expected-remark @below {{missed: is the same in every round, but stays in the loop: scf.while may not end}}
    %w = scf.while (%a = %h) : (f32) -> f32 {
      scf.condition(%go) %a : f32
    } do {
    ^bb0(%b: f32):
      scf.yield %b : f32
    }
    %t = arith.addf %s, %q : f32
    %next = arith.addf %t, %w : f32
    scf.yield %next : f32
  }
  return %r : f32
}

// Must not fire: a branch in the loop guards the op, and it is the branch that would have to leave.

// CHECK-LABEL: func.func @guarded
// CHECK: scf.for
// CHECK: scf.if
// CHECK: math.log
func.func @guarded(%x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> f32 {
    %c = arith.cmpf ogt, %s, %zero : f32
    %b = scf.if %c -> f32 {
      %d = math.log %x : f32
      scf.yield %d : f32
    } else {
      scf.yield %s : f32
    }
    scf.yield %b : f32
  }
  return %r : f32
}

// Must not fire: what others compute into, and a broadcast that is larger than what it reads.

// CHECK-LABEL: func.func @initial_values
// CHECK: scf.for
// CHECK: tensor.empty
// CHECK: linalg.broadcast
// CHECK: linalg.broadcast
// CHECK: linalg.fill
func.func @initial_values(%bias: tensor<4xf32>, %n: index, %h: tensor<2x4xf32>, %x: tensor<2x2xf32>,
                          %w: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %h) -> tensor<2x4xf32> {
    %e = tensor.empty() : tensor<2x4xf32>
    // expected-remark @below {{missed: is the same in every round, but stays in the loop: others compute into it}}
    %start = linalg.broadcast ins(%bias : tensor<4xf32>) outs(%e : tensor<2x4xf32>) dimensions = [0]
    // expected-remark @below {{missed: is the same in every round, but stays in the loop: it only moves elements}}
    %wide = linalg.broadcast ins(%bias : tensor<4xf32>) outs(%e : tensor<2x4xf32>) dimensions = [0]
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
    %p = linalg.matmul ins(%x, %s : tensor<2x2xf32>, tensor<2x4xf32>) outs(%z : tensor<2x4xf32>) -> tensor<2x4xf32>
    %q = linalg.matmul ins(%x, %p : tensor<2x2xf32>, tensor<2x4xf32>) outs(%start : tensor<2x4xf32>) -> tensor<2x4xf32>
    %next = linalg.add ins(%q, %wide : tensor<2x4xf32>, tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
    scf.yield %next : tensor<2x4xf32>
  }
  return %r : tensor<2x4xf32>
}

// Must not fire: sizes known at run time only may fit on the way of the loop alone; what changes from round to round.

// CHECK-LABEL: func.func @sizes
// CHECK: scf.for
// CHECK: linalg.add
// CHECK: arith.addf
func.func @sizes(%x: tensor<?xf32>, %y: tensor<?xf32>, %h: f32, %n: index, %e: tensor<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %h) -> f32 {
    // expected-remark @below {{missed: is the same in every round, but stays in the loop: linalg.add has sizes that are known at run time only}}
    %sum = linalg.add ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %q = tensor.extract %sum[%i] : tensor<?xf32>
    %next = arith.addf %s, %q : f32
    scf.yield %next : f32
  }
  return %r : f32
}
