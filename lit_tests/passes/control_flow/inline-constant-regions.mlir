// RUN: pipeline-opt %s --inline-constant-regions | FileCheck %s
// RUN: pipeline-opt %s --inline-constant-regions --remarks-filter=.* --verify-diagnostics

func.func private @effect(i32)

// CHECK-LABEL: func.func @if_true
// CHECK-SAME: (%[[A:.*]]: i32, %{{.*}}: i32) -> i32
// CHECK-NOT: scf.if
// CHECK: call @effect(%[[A]])
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[A]], %[[A]] : i32
// CHECK-NEXT: return %[[SUM]] : i32
func.func @if_true(%a: i32, %b: i32) -> i32 {
  %true = arith.constant true
  // expected-remark @below {{the condition is always true}}
  %r = scf.if %true -> i32 {
    func.call @effect(%a) : (i32) -> ()
    %sum = arith.addi %a, %a : i32
    scf.yield %sum : i32
  } else {
    func.call @effect(%b) : (i32) -> ()
    scf.yield %b : i32
  }
  return %r : i32
}

// CHECK-LABEL: func.func @if_false_without_else
// CHECK-NOT: scf.if
// CHECK-NOT: call
// CHECK: return
func.func @if_false_without_else(%a: i32) {
  %false = arith.constant false
  // expected-remark @below {{the condition is always false}}
  scf.if %false {
    func.call @effect(%a) : (i32) -> ()
  }
  return
}

// CHECK-LABEL: func.func @for_once
// CHECK-SAME: (%[[INIT:.*]]: index) -> index
// CHECK: %[[THREE:.*]] = arith.constant 3 : index
// CHECK-NOT: scf.for
// CHECK: %[[SUM:.*]] = arith.addi %[[INIT]], %[[THREE]] : index
// CHECK-NEXT: return %[[SUM]] : index
func.func @for_once(%init: index) -> index {
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  // expected-remark @below {{the loop runs once}}
  %r = scf.for %i = %c3 to %c5 step %c3 iter_args(%sum = %init) -> index {
    %next = arith.addi %sum, %i : index
    scf.yield %next : index
  }
  return %r : index
}

// CHECK-LABEL: func.func @for_never
// CHECK-SAME: (%[[INIT:.*]]: i32, %{{.*}}: index)
// CHECK-NOT: scf.for
// CHECK-NOT: call
// CHECK: return %[[INIT]] : i32
func.func @for_never(%init: i32, %n: index) -> i32 {
  %c1 = arith.constant 1 : index
  // expected-remark @below {{the loop never runs}}
  %r = scf.for %i = %n to %n step %c1 iter_args(%x = %init) -> i32 {
    func.call @effect(%x) : (i32) -> ()
    scf.yield %x : i32
  }
  return %r : i32
}

// CHECK-LABEL: func.func @while_false
// CHECK-SAME: (%[[A:.*]]: i32) -> i32
// CHECK-NOT: scf.while
// CHECK: call @effect(%[[A]])
// CHECK-NEXT: %[[DOUBLE:.*]] = arith.addi %[[A]], %[[A]] : i32
// CHECK-NEXT: return %[[DOUBLE]] : i32
func.func @while_false(%a: i32) -> i32 {
  // expected-remark @below {{the condition is always false}}
  %r = scf.while (%x = %a) : (i32) -> i32 {
    %false = arith.constant false
    func.call @effect(%x) : (i32) -> ()
    %double = arith.addi %x, %x : i32
    scf.condition(%false) %double : i32
  } do {
  ^bb0(%y: i32):
    func.call @effect(%y) : (i32) -> ()
    scf.yield %y : i32
  }
  return %r : i32
}

// The inner `if` is inlined before the loop around it.

// CHECK-LABEL: func.func @nested
// CHECK-SAME: (%[[A:.*]]: i32)
// CHECK-NOT: scf
// CHECK: call @effect(%[[A]])
// CHECK-NEXT: return
func.func @nested(%a: i32) {
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{the loop runs once}}
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-remark @below {{the condition is always true}}
    scf.if %true {
      func.call @effect(%a) : (i32) -> ()
    }
  }
  return
}

// Must not fire.

// CHECK-LABEL: func.func @unknown_condition
// CHECK-SAME: (%[[C:.*]]: i1, %{{.*}}: i32)
// CHECK: scf.if %[[C]]
func.func @unknown_condition(%c: i1, %a: i32) {
  scf.if %c {
    func.call @effect(%a) : (i32) -> ()
  }
  return
}

// CHECK-LABEL: func.func @for_twice
// CHECK: scf.for
func.func @for_twice(%a: i32) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  // expected-remark @below {{missed: the loop runs 2 times}}
  scf.for %i = %c0 to %c3 step %c2 {
    func.call @effect(%a) : (i32) -> ()
  }
  return
}

// CHECK-LABEL: func.func @unknown_bound
// CHECK-SAME: (%[[N:.*]]: index, %{{.*}}: i32)
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[N]]
func.func @unknown_bound(%n: index, %a: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    func.call @effect(%a) : (i32) -> ()
  }
  return
}

// As an unsigned number, -1 is the largest one: the loop runs often.

// CHECK-LABEL: func.func @unsigned_bound
// CHECK: scf.for unsigned
func.func @unsigned_bound(%a: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %cm1 = arith.constant -1 : i32
  scf.for unsigned %i = %c0 to %cm1 step %c1 : i32 {
    func.call @effect(%a) : (i32) -> ()
  }
  return
}

// CHECK-LABEL: func.func @endless
// CHECK: scf.while
func.func @endless() {
  %true = arith.constant true
  // expected-remark @below {{missed: the condition is always true, the loop does not end}}
  scf.while : () -> () {
    scf.condition(%true)
  } do {
    scf.yield
  }
  return
}
