// RUN: pipeline-opt %s --narrow-comparisons --canonicalize | FileCheck %s
// RUN: pipeline-opt %s --narrow-comparisons --remarks-filter=narrow-comparisons --verify-diagnostics

// Every f32, infinities and NaN too, compares with a number of f32 as it does in f64.

// CHECK-LABEL: func.func @narrow
// CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: f32)
// CHECK-NOT: arith.extf
// CHECK-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG: arith.cmpf ogt, %[[X]], %[[HALF]] : f32
// CHECK-DAG: arith.cmpf une, %[[X]], %[[Y]] : f32
// CHECK: return
func.func @narrow(%x: f32, %y: f32) -> (i1, i1) {
  %half = arith.constant 0.5 : f64
  %wide = arith.extf %x : f32 to f64
  %other = arith.extf %y : f32 to f64
  // expected-remark @below {{passed: compares in f32}}
  %a = arith.cmpf ogt, %wide, %half : f64
  // expected-remark @below {{passed: compares in f32}}
  %b = arith.cmpf une, %wide, %other : f64
  return %a, %b : i1, i1
}

// Must not fire: numbers that f32 has not, f64 that were never f32, other types.

// CHECK-LABEL: func.func @wide
// CHECK-COUNT-3: arith.cmpf {{.*}} : f64
// CHECK: arith.cmpf {{.*}} : f32
// CHECK: return
func.func @wide(%x: f32, %z: f64, %h: f16) -> (i1, i1, i1, i1) {
  %tenth = arith.constant 0.1 : f64
  %huge = arith.constant 1.0e300 : f64
  %one = arith.constant 1.0 : f32
  %wide = arith.extf %x : f32 to f64
  %half = arith.extf %h : f16 to f32
  %a = arith.cmpf ogt, %wide, %tenth : f64
  %b = arith.cmpf olt, %wide, %huge : f64
  %c = arith.cmpf olt, %wide, %z : f64
  %d = arith.cmpf olt, %half, %one : f32
  return %a, %b, %c, %d : i1, i1, i1, i1
}
