// RUN: pipeline-opt %s --split-input-file --expand-remainders | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --expand-remainders="integers=true" | FileCheck %s --check-prefix=INTEGERS

// The significand of one number, shifted by the difference of exponents, modulo that of the other one.

// CHECK-LABEL: func.func @single
// CHECK-NOT: arith.remf
// CHECK: %[[LESS:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : i32
// CHECK: scf.for
// CHECK: %[[SCALED:.*]] = arith.shli %{{.*}}, %{{.*}} : i32
// CHECK: arith.remui %[[SCALED]], %{{.*}} : i32
// CHECK: %[[VALUE:.*]] = arith.select %[[LESS]], %arg0, %{{.*}} : f32
// CHECK: %[[RESULT:.*]] = arith.select %{{.*}}, %{{.*}}, %[[VALUE]] : f32
// CHECK: return %[[RESULT]]
func.func @single(%x: f32, %y: f32) -> f32 {
  %r = arith.remf %x, %y : f32
  return %r : f32
}

// -----

// CHECK-LABEL: func.func @double
// CHECK-NOT: arith.remf
// CHECK: arith.remui %{{.*}}, %{{.*}} : i64
func.func @double(%x: f64, %y: f64) -> f64 {
  %r = arith.remf %x, %y : f64
  return %r : f64
}

// -----

// Must not fire: vectors, narrower floats, integers.

// CHECK-LABEL: func.func @others
// CHECK-NEXT: arith.remf %{{.*}} : vector<4xf32>
// CHECK-NEXT: arith.remf %{{.*}} : f16
// CHECK-NEXT: arith.remsi
// CHECK-NEXT: return

// Those of integers where asked for.

// INTEGERS-LABEL: func.func @others
// INTEGERS: %[[QUOTIENT:.*]] = arith.divsi %[[X:.*]], %[[Y:.*]] : i32
// INTEGERS: %[[WHOLE:.*]] = arith.muli %[[QUOTIENT]], %[[Y]] : i32
// INTEGERS: arith.subi %[[X]], %[[WHOLE]] : i32
func.func @others(%v: vector<4xf32>, %h: f16, %i: i32) -> (vector<4xf32>, f16, i32) {
  %a = arith.remf %v, %v : vector<4xf32>
  %b = arith.remf %h, %h : f16
  %c = arith.remsi %i, %i : i32
  return %a, %b, %c : vector<4xf32>, f16, i32
}
