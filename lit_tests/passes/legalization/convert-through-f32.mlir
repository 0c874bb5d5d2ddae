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
