// RUN: pipeline-opt %s --merge-equal-conditions | FileCheck %s
// RUN: pipeline-opt %s --merge-equal-conditions --remarks-filter=merge-equal-conditions --verify-diagnostics

func.func private @effect(f32)

// What the second branch needs moves in front of the first, what it does not need stays behind it; it finds the first's
// result in its own branch.

// CHECK-LABEL: func.func @merge
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: f32)
// CHECK-NEXT: %[[S:.*]] = math.sqrt %[[X]]
// CHECK-NEXT: %[[R:.*]]:2 = scf.if %[[C]] -> (f32, f32)
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[E]], %[[S]]
// CHECK-NEXT: scf.yield %[[E]], %[[M]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[A:.*]] = arith.addf %[[X]], %[[X]]
// CHECK-NEXT: scf.yield %[[X]], %[[A]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[R]]#0
// CHECK-NEXT: return %[[R]]#1, %[[N]]
func.func @merge(%c: i1, %x: f32) -> (f32, f32) {
  %r = scf.if %c -> f32 {
    %e = math.exp %x : f32
    scf.yield %e : f32
  } else {
    scf.yield %x : f32
  }
  %n = arith.negf %r : f32
  %s = math.sqrt %x : f32
  // expected-remark @below {{passed: is merged with an earlier branch on the same condition}}
  %t = scf.if %c -> f32 {
    %m = arith.mulf %r, %s : f32
    scf.yield %m : f32
  } else {
    %a = arith.addf %r, %x : f32
    scf.yield %a : f32
  }
  return %t, %n : f32, f32
}

// Three branches, one of them on the negation, one without else; the order of effects stays.

// CHECK-LABEL: func.func @three
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: f32, %[[Y:.*]]: f32)
// CHECK: %[[R:.*]] = scf.if %[[C]] -> (f32)
// CHECK-NEXT: call @effect(%[[X]])
// CHECK-NEXT: scf.yield %[[Y]]
// CHECK-NEXT: } else {
// CHECK-NEXT: call @effect(%[[Y]])
// CHECK-NEXT: scf.yield %[[X]]
// CHECK-NOT: scf.if
// CHECK: return %[[R]]
func.func @three(%c: i1, %x: f32, %y: f32) -> f32 {
  %true = arith.constant true
  %false = arith.constant false
  scf.if %c {
    func.call @effect(%x) : (f32) -> ()
  }
  %not = arith.xori %c, %true : i1
  // expected-remark @below {{passed: is merged with an earlier branch}}
  scf.if %not {
    func.call @effect(%y) : (f32) -> ()
  }
  %also_not = arith.cmpi eq, %c, %false : i1
  // expected-remark @below {{passed: is merged with an earlier branch}}
  %r = scf.if %also_not -> f32 {
    scf.yield %x : f32
  } else {
    scf.yield %y : f32
  }
  return %r : f32
}

// Must not fire: another condition; what is computed from the first's result; an effect in between; an op that may
// trap, after an effect.

// CHECK-LABEL: func.func @other
// CHECK-COUNT-2: scf.if
func.func @other(%c: i1, %d: i1, %x: f32) {
  scf.if %c {
    func.call @effect(%x) : (f32) -> ()
  }
  scf.if %d {
    func.call @effect(%x) : (f32) -> ()
  }
  return
}

// CHECK-LABEL: func.func @depends
// CHECK: scf.if
// CHECK: arith.negf
// CHECK: scf.if
func.func @depends(%c: i1, %x: f32) -> f32 {
  %r = scf.if %c -> f32 {
    %e = math.exp %x : f32
    scf.yield %e : f32
  } else {
    scf.yield %x : f32
  }
  %n = arith.negf %r : f32
  // expected-remark @below {{missed: has the condition of an earlier branch, but is not merged with it: it needs what is computed from a result of that}}
  %t = scf.if %c -> f32 {
    scf.yield %n : f32
  } else {
    scf.yield %x : f32
  }
  return %t : f32
}

// CHECK-LABEL: func.func @in_between
// CHECK: scf.if
// CHECK: call @effect
// CHECK: call @effect
// CHECK: scf.if
// CHECK: call @effect
func.func @in_between(%c: i1, %x: f32, %y: f32) {
  scf.if %c {
    func.call @effect(%x) : (f32) -> ()
  }
  func.call @effect(%y) : (f32) -> ()
  // expected-remark @below {{missed: has the condition of an earlier branch, but is not merged with it: an effect stands between them}}
  scf.if %c {
    func.call @effect(%x) : (f32) -> ()
  }
  return
}

// CHECK-LABEL: func.func @traps
// CHECK: scf.if
// CHECK: call @effect
// CHECK: arith.divsi
// CHECK: scf.if
// CHECK: scf.if
// CHECK: call @effect
// CHECK: scf.if
// CHECK: arith.divsi
func.func @traps(%c: i1, %d: i1, %x: f32, %a: i32, %b: i32) -> (i32, i32) {
  scf.if %c {
    func.call @effect(%x) : (f32) -> ()
  }
  %q = arith.divsi %a, %b : i32
  // expected-remark @below {{missed: has the condition of an earlier branch, but is not merged with it: what it needs may trap, and cannot pass an effect}}
  %r = scf.if %c -> i32 {
    scf.yield %q : i32
  } else {
    scf.yield %a : i32
  }
  %s = scf.if %d -> i32 {
    scf.yield %b : i32
  } else {
    scf.yield %a : i32
  }
  func.call @effect(%x) : (f32) -> ()
  // expected-remark @below {{missed: has the condition of an earlier branch, but is not merged with it: it may trap, and cannot pass an effect}}
  %t = scf.if %d -> i32 {
    %p = arith.divsi %a, %b : i32
    scf.yield %p : i32
  } else {
    scf.yield %s : i32
  }
  return %r, %t : i32, i32
}
