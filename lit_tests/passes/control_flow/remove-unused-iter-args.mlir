// RUN: pipeline-opt %s --remove-unused-iter-args --canonicalize | FileCheck %s
// RUN: pipeline-opt %s --remove-unused-iter-args --remarks-filter=remove-unused-iter-args --verify-diagnostics

func.func private @effect(f32)

// A carry that is computed from itself alone goes, with what computes it; so do unused results of branches.

// CHECK-LABEL: func.func @unused
// CHECK-NOT: math.log
// CHECK: scf.if %{{.*}} -> (f32)
// CHECK-NOT: math.log
// CHECK: scf.for {{.*}} -> (f32)
// CHECK-NOT: math.log
// CHECK: scf.while {{.*}} : (index, f32) -> (index, f32)
// CHECK-NOT: math.log
// CHECK: return
func.func @unused(%c: i1, %x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.if %c -> (f32, f32) {
    %a = math.exp %x : f32
    %b = math.log %x : f32
    scf.yield %a, %b : f32, f32
  } else {
    scf.yield %x, %x : f32, f32
  }
  // expected-remark @below {{passed: does not compute what it carries as number 1: nobody reads it}}
  %s:2 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %r#0, %d = %x) -> (f32, f32) {
    %a = math.exp %h : f32
    %b = math.log %d : f32
    scf.yield %a, %b : f32, f32
  }
  // expected-remark @below {{passed: does not compute what it carries as number 2: nobody reads it}}
  %w:3 = scf.while (%i = %c0, %h = %s#0, %d = %x) : (index, f32, f32) -> (index, f32, f32) {
    %go = arith.cmpi ult, %i, %n : index
    scf.condition(%go) %i, %h, %d : index, f32, f32
  } do {
  ^bb0(%i: index, %h: f32, %d: f32):
    %j = arith.addi %i, %c1 : index
    %a = math.exp %h : f32
    %b = math.log %d : f32
    scf.yield %j, %a, %b : index, f32, f32
  }
  return %w#1 : f32
}

// Must not fire: another carry depends on it; the condition does; an effect does, in an inner branch; a result is used.

// CHECK-LABEL: func.func @read
// CHECK: scf.for
// CHECK: math.log
// CHECK: math.sin
// CHECK: scf.while
// CHECK: math.cos
// CHECK: scf.for
// CHECK: scf.if
// CHECK: call @effect
// CHECK: math.sqrt
func.func @read(%c: i1, %x: f32, %n: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s:3 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x, %d = %x, %e = %x) -> (f32, f32, f32) {
    %b = math.log %d : f32
    %a = math.sin %e : f32
    scf.yield %b, %a, %e : f32, f32, f32
  }
  %w = scf.while (%d = %x) : (f32) -> f32 {
    %go = arith.cmpf olt, %d, %x : f32
    scf.condition(%go) %d : f32
  } do {
  ^bb0(%d: f32):
    %b = math.cos %d : f32
    scf.yield %b : f32
  }
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%d = %x) -> f32 {
    scf.if %c {
      func.call @effect(%d) : (f32) -> ()
    }
    %b = math.sqrt %d : f32
    scf.yield %b : f32
  }
  return %s#0, %w : f32, f32
}
