// RUN: pipeline-opt %s --convert-through-f32 | FileCheck %s

// CHECK-LABEL: func.func @narrow
// CHECK-SAME: (%[[X:.*]]: f64)
func.func @narrow(%x: f64) -> (bf16, f16) {
  // CHECK: %[[A:.*]] = arith.truncf %[[X]] : f64 to f32
  // CHECK: %[[B:.*]] = arith.truncf %[[A]] : f32 to bf16
  %0 = arith.truncf %x : f64 to bf16
  // CHECK: %[[C:.*]] = arith.truncf %[[X]] : f64 to f32
  // CHECK: %[[D:.*]] = arith.truncf %[[C]] : f32 to f16
  %1 = arith.truncf %x : f64 to f16
  // CHECK: return %[[B]], %[[D]]
  return %0, %1 : bf16, f16
}

// CHECK-LABEL: func.func @widen
// CHECK-SAME: (%[[X:.*]]: vector<4xbf16>)
func.func @widen(%x: vector<4xbf16>) -> vector<4xf64> {
  // CHECK: %[[A:.*]] = arith.extf %[[X]] : vector<4xbf16> to vector<4xf32>
  // CHECK: %[[B:.*]] = arith.extf %[[A]] : vector<4xf32> to vector<4xf64>
  %0 = arith.extf %x : vector<4xbf16> to vector<4xf64>
  // CHECK: return %[[B]]
  return %0 : vector<4xf64>
}

// Rounding is not left out between two ops; other conversions keep what they have.

// CHECK-LABEL: func.func @pairs
// CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: f64)
func.func @pairs(%x: f32, %y: f64) -> (f32, f32) {
  // CHECK: %[[A:.*]] = arith.truncf %[[X]] : f32 to f16
  %0 = arith.truncf %x fastmath<contract> : f32 to f16
  // CHECK: %[[B:.*]] = arith.extf %[[A]] : f16 to f32
  %1 = arith.extf %0 fastmath<contract> : f16 to f32
  // CHECK: %[[C:.*]] = arith.truncf %[[Y]] fastmath<contract> : f64 to f32
  %2 = arith.truncf %y fastmath<contract> : f64 to f32
  // CHECK: return %[[B]], %[[C]]
  return %1, %2 : f32, f32
}

// CHECK-LABEL: func.func @single_steps_stay
// CHECK-SAME: (%[[X:.*]]: f64, %[[Y:.*]]: bf16)
func.func @single_steps_stay(%x: f64, %y: bf16) -> (f32, f32) {
  // CHECK: %[[A:.*]] = arith.truncf %[[X]] : f64 to f32
  // CHECK: %[[B:.*]] = arith.extf %[[Y]] : bf16 to f32
  // CHECK: return %[[A]], %[[B]]
  %0 = arith.truncf %x : f64 to f32
  %1 = arith.extf %y : bf16 to f32
  return %0, %1 : f32, f32
}

// Integers that the type of 16 bits has are not rounded, and neither are differences of them.

// CHECK-LABEL: func.func @integers
// CHECK-SAME: (%[[Q:.*]]: i8, %[[Z:.*]]: i8)
// CHECK: %[[A:.*]] = arith.sitofp %[[Q]] : i8 to f32
// CHECK: %[[B:.*]] = arith.sitofp %[[Z]] : i8 to f32
// CHECK: %[[D:.*]] = arith.subf %[[A]], %[[B]] : f32
// CHECK: return %[[D]]
func.func @integers(%q: i8, %z: i8) -> f32 {
  %a = arith.sitofp %q : i8 to f32
  %b = arith.truncf %a : f32 to bf16
  %c = arith.extf %b : bf16 to f32
  %d = arith.sitofp %z : i8 to f32
  %e = arith.truncf %d : f32 to bf16
  %f = arith.extf %e : bf16 to f32
  %g = arith.subf %c, %f : f32
  %h = arith.truncf %g : f32 to bf16
  %i = arith.extf %h : bf16 to f32
  return %i : f32
}

// Must not: integers of more digits, differences of differences, other numbers.

// CHECK-LABEL: func.func @rounded
// CHECK-COUNT-3: arith.extf
func.func @rounded(%q: i16, %r: i8, %x: f32) -> (f32, f32, f32) {
  %far = arith.constant 200.0 : f32
  %a = arith.sitofp %q : i16 to f32
  %b = arith.truncf %a : f32 to f16
  %c = arith.extf %b : f16 to f32
  %d = arith.sitofp %r : i8 to f32
  %e = arith.subf %d, %far : f32
  %f = arith.truncf %e : f32 to bf16
  %g = arith.extf %f : bf16 to f32
  %h = arith.truncf %x : f32 to bf16
  %i = arith.extf %h : bf16 to f32
  return %c, %g, %i : f32, f32, f32
}
