// RUN: pipeline-opt %s --uplift-while-to-for | FileCheck %s
// RUN: pipeline-opt %s --uplift-while-to-for --remarks-filter=uplift-while-to-for --verify-diagnostics

// A known number of rounds; the counter behind the loop is known.

// CHECK-LABEL: func.func @known
// CHECK-SAME: (%[[X:.*]]: f32)
// CHECK-DAG: %[[FIRST:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[END:.*]] = arith.constant 9 : index
// CHECK-DAG: %[[STEP:.*]] = arith.constant 3 : index
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %[[FIRST]] to %[[END]] step %[[STEP]] iter_args(%[[H:.*]] = %[[X]]) -> (f32)
// CHECK-NEXT: %[[N:.*]] = arith.index_cast %[[I]] : index to i64
// CHECK: %[[F:.*]] = arith.sitofp %[[N]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[H]], %[[F]]
// CHECK: scf.yield %[[S]]
// CHECK: %[[LAST:.*]] = arith.constant 11 : i64
// CHECK-NEXT: return %[[LAST]], %[[R]]
func.func @known(%x: f32) -> (i64, f32) {
  %true = arith.constant true
  %first = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  // expected-remark @below {{passed: counts, and is a for loop}}
  %r:2 = scf.while (%flag = %true, %i = %first, %h = %x) : (i1, i64, f32) -> (i64, f32) {
    scf.condition(%flag) %i, %h : i64, f32
  } do {
  ^bb0(%i: i64, %h: f32):
    %end = arith.constant 9 : i64
    %f = arith.sitofp %i : i64 to f32
    %s = arith.addf %h, %f : f32
    %next = arith.addi %i, %three : i64
    %more = arith.cmpi slt, %next, %end : i64
    scf.yield %more, %next, %s : i1, i64, f32
  }
  return %r#0, %r#1 : i64, f32
}

// A number of rounds from outside, written the other way round, maybe none.

// CHECK-LABEL: func.func @limited
// CHECK-SAME: (%[[X:.*]]: f32, %[[N:.*]]: i64, %[[FROM:.*]]: i64)
// CHECK: %[[A:.*]] = arith.index_cast %[[FROM]] : i64 to index
// CHECK-NEXT: %[[B:.*]] = arith.index_cast %[[N]] : i64 to index
// CHECK: scf.for %{{.*}} = %[[A]] to %[[B]]
// CHECK: %[[LAST:.*]] = arith.maxsi %[[FROM]], %[[N]]
// CHECK-NEXT: return %[[LAST]]
func.func @limited(%x: f32, %n: i64, %from: i64) -> (i64, f32) {
  %one = arith.constant 1 : i64
  %first = arith.cmpi sgt, %n, %from : i64
  // expected-remark @below {{passed: counts, and is a for loop}}
  %r:2 = scf.while (%h = %x, %flag = %first, %i = %from) : (f32, i1, i64) -> (i64, f32) {
    scf.condition(%flag) %i, %h : i64, f32
  } do {
  ^bb0(%i: i64, %h: f32):
    %s = arith.addf %h, %h : f32
    %next = arith.addi %one, %i : i64
    %more = arith.cmpi slt, %next, %n : i64
    scf.yield %s, %more, %next : f32, i1, i64
  }
  return %r#0, %r#1 : i64, f32
}

// Must not fire: the first round runs whatever the limit is; another first condition; a limit that changes; a counter
// that goes down, or may overflow; another reason to end; a condition that computes.

// CHECK-LABEL: func.func @refused
// CHECK-COUNT-8: scf.while
// CHECK-NOT: scf.for
func.func @refused(%n: i64, %from: i64, %go: i1) -> (i64, i64, i64, i64, i64, i64, i64, i64) {
  %true = arith.constant true
  %c0 = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %minus = arith.constant -1 : i64
  %two = arith.constant 2 : i64
  %five = arith.constant 5 : i64
  %first = arith.cmpi slt, %c0, %n : i64
  %other = arith.cmpi slt, %one, %n : i64
  // expected-remark @below {{missed: stays a while loop: its first round does not depend on the counter}}
  %a:1 = scf.while (%flag = %true, %i = %c0) : (i1, i64) -> i64 {
    scf.condition(%flag) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %one : i64
    %more = arith.cmpi slt, %next, %n : i64
    scf.yield %more, %next : i1, i64
  }
  // expected-remark @below {{missed: stays a while loop: its first round does not depend on the counter alone}}
  %b:1 = scf.while (%flag = %other, %i = %c0) : (i1, i64) -> i64 {
    scf.condition(%flag) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %one : i64
    %more = arith.cmpi slt, %next, %n : i64
    scf.yield %more, %next : i1, i64
  }
  // expected-remark @below {{missed: stays a while loop: it goes on for another reason than a counter}}
  %c:2 = scf.while (%flag = %first, %i = %c0, %m = %n) : (i1, i64, i64) -> (i64, i64) {
    scf.condition(%flag) %i, %m : i64, i64
  } do {
  ^bb0(%i: i64, %m: i64):
    %next = arith.addi %i, %one : i64
    %less = arith.subi %m, %one : i64
    %more = arith.cmpi slt, %next, %less : i64
    scf.yield %more, %next, %less : i1, i64, i64
  }
  // expected-remark @below {{missed: stays a while loop: it goes on for another reason than a counter}}
  %d:1 = scf.while (%flag = %true, %i = %c0) : (i1, i64) -> i64 {
    scf.condition(%flag) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %minus : i64
    %more = arith.cmpi slt, %next, %five : i64
    scf.yield %more, %next : i1, i64
  }
  // expected-remark @below {{missed: stays a while loop: its counter may overflow}}
  %e:1 = scf.while (%flag = %first, %i = %c0) : (i1, i64) -> i64 {
    scf.condition(%flag) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %two : i64
    %more = arith.cmpi slt, %next, %n : i64
    scf.yield %more, %next : i1, i64
  }
  // expected-remark @below {{missed: stays a while loop: it goes on for another reason than a counter}}
  %f:1 = scf.while (%flag = %true, %i = %c0) : (i1, i64) -> i64 {
    scf.condition(%flag) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %one : i64
    %less = arith.cmpi slt, %next, %five : i64
    %more = arith.andi %less, %go : i1
    scf.yield %more, %next : i1, i64
  }
  // expected-remark @below {{missed: stays a while loop: its condition computes something}}
  %g:1 = scf.while (%i = %c0) : (i64) -> i64 {
    %more = arith.cmpi slt, %i, %five : i64
    scf.condition(%more) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %one : i64
    scf.yield %next : i64
  }
  // expected-remark @below {{missed: stays a while loop: its first round does not depend on the counter}}
  %h:1 = scf.while (%flag = %true, %i = %five) : (i1, i64) -> i64 {
    scf.condition(%flag) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %one : i64
    %more = arith.cmpi slt, %next, %five : i64
    scf.yield %more, %next : i1, i64
  }
  return %a#0, %b#0, %c#0, %d#0, %e#0, %f#0, %g#0, %h#0 : i64, i64, i64, i64, i64, i64, i64, i64
}

// Must not fire: the counter would overflow before it reaches the limit.

// CHECK-LABEL: func.func @narrow
// CHECK: scf.while
func.func @narrow() -> i8 {
  %true = arith.constant true
  %c0 = arith.constant 0 : i8
  %c3 = arith.constant 3 : i8
  %end = arith.constant 127 : i8
  // expected-remark @below {{missed: stays a while loop: its counter may overflow}}
  %r:1 = scf.while (%flag = %true, %i = %c0) : (i1, i8) -> i8 {
    scf.condition(%flag) %i : i8
  } do {
  ^bb0(%i: i8):
    %next = arith.addi %i, %c3 : i8
    %more = arith.cmpi slt, %next, %end : i8
    scf.yield %more, %next : i1, i8
  }
  return %r#0 : i8
}
