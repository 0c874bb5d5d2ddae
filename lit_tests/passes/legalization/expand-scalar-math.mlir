// RUN: pipeline-opt %s --split-input-file --expand-scalar-math="ops=exp,tanh,sin" | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --expand-scalar-math="ops=exp exact=false" | FileCheck %s --check-prefix=DRIVER

// CHECK-LABEL: func.func @expands
// CHECK-NOT: math.exp
// CHECK-NOT: math.tanh
// CHECK: return

// Where (x + c) - c may be simplified to x, rounding is an op of its own.

// DRIVER-LABEL: func.func @expands
// DRIVER: math.roundeven
// DRIVER: math.tanh
func.func @expands(%x: f32) -> f32 {
  %e = math.exp %x : f32
  %t = math.tanh %e : f32
  return %t : f32
}

// Must not fire: an op that is not named, a vector, a type that there is no arithmetic for.

// CHECK-LABEL: func.func @leaves
// CHECK-NEXT: math.log %{{.*}} : f32
// CHECK-NEXT: math.exp %{{.*}} : vector<4xf32>
// CHECK-NEXT: math.exp %{{.*}} : f16
func.func @leaves(%x: f32, %y: vector<4xf32>, %z: f16) -> (f32, vector<4xf32>, f16) {
  %l = math.log %x : f32
  %e = math.exp %y : vector<4xf32>
  %h = math.exp %z : f16
  return %l, %e, %h : f32, vector<4xf32>, f16
}

// -----

// The sine of a large angle takes more bits of 2 / pi, in integers.

// CHECK-LABEL: func.func @sine
// CHECK: scf.if %{{.*}} -> (f64, i64)
// CHECK: arith.muli %{{.*}} : i64
// CHECK: arith.sitofp %{{.*}} : i64 to f64
// CHECK: arith.truncf
// CHECK-NOT: math.sin
func.func @sine(%x: f32) -> f32 {
  %s = math.sin %x : f32
  return %s : f32
}
