// RUN: pipeline-opt %s --split-input-file --keep-nan | FileCheck %s

// CHECK-LABEL: func.func @unordered
// CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: f32)
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK: %[[SIZE:.*]] = arith.andi %[[BITS]], %{{.*}} : i32
// CHECK: %[[NAN:.*]] = arith.cmpi sgt, %[[SIZE]], %{{.*}} : i32
// CHECK: arith.bitcast %[[Y]] : f32 to i32
// CHECK: %[[MORE:.*]] = arith.cmpf ogt, %[[X]], %[[Y]] : f32
// CHECK: arith.ori %[[MORE]], %[[NAN]] : i1
// CHECK: arith.ori
func.func @unordered(%x: f32, %y: f32) -> i1 {
  %c = arith.cmpf ugt, %x, %y : f32
  return %c : i1
}

// -----

// A constant is not looked at.

// CHECK-LABEL: func.func @beside_a_number
// CHECK: arith.bitcast %arg0 : f64 to i64
// CHECK-NOT: arith.bitcast
// CHECK: arith.cmpf one, %arg0, %{{.*}} : f64
// CHECK: arith.ori
func.func @beside_a_number(%x: f64) -> i1 {
  %zero = arith.constant 0.0 : f64
  %c = arith.cmpf une, %x, %zero : f64
  return %c : i1
}

// -----

// CHECK-LABEL: func.func @unequal_to_itself
// CHECK: %[[NAN:.*]] = arith.cmpi sgt
// CHECK: %[[LESS_OR_MORE:.*]] = arith.cmpf one, %arg0, %arg0
// CHECK: arith.ori %[[LESS_OR_MORE]], %[[NAN]]
func.func @unequal_to_itself(%x: f32) -> i1 {
  %c = arith.cmpf une, %x, %x : f32
  return %c : i1
}

// -----

// CHECK-LABEL: func.func @ordered
// CHECK: %[[NAN:.*]] = arith.cmpi sgt
// CHECK-NOT: arith.cmpf
// CHECK: arith.xori %[[NAN]], %{{.*}} : i1
func.func @ordered(%x: f32) -> i1 {
  %c = arith.cmpf ord, %x, %x : f32
  return %c : i1
}

// -----

// What is not finite makes NaN of a difference from itself and of a product with 0, whose sign is that of the number.

// CHECK-LABEL: func.func @nothing
// CHECK-NOT: arith.subf
// CHECK-NOT: arith.mulf
// CHECK: %[[FINITE:.*]] = arith.cmpi slt
// CHECK: arith.select %[[FINITE]]
// CHECK: %[[ZERO:.*]] = math.copysign %{{.*}}, %arg0
// CHECK: %[[MINUS:.*]] = arith.negf %[[ZERO]]
// CHECK: arith.select %{{.*}}, %[[MINUS]], %{{.*}} : f32
func.func @nothing(%x: f32) -> (f32, f32) {
  %zero = arith.constant -0.0 : f32
  %d = arith.subf %x, %x : f32
  %p = arith.mulf %x, %zero : f32
  return %d, %p : f32, f32
}

// -----

// Sums that may cancel are parted by a select.

// CHECK-LABEL: func.func @cancels
// CHECK: %[[SUM:.*]] = arith.addf %arg0, %arg1
// CHECK: %[[PARTED:.*]] = arith.select %{{.*}}, %{{.*}}, %[[SUM]]
// CHECK: arith.subf %[[PARTED]], %arg0
// CHECK: %[[FAR:.*]] = arith.addf %arg0, %{{.*}}
// CHECK: %[[PARTED:.*]] = arith.select %{{.*}}, %arg0, %[[FAR]]
// CHECK: arith.subf %[[PARTED]], %{{.*}}
func.func @cancels(%x: f32, %y: f32) -> (f32, f32) {
  %far = arith.constant 1.0e+08 : f32
  %s = arith.addf %x, %y : f32
  %d = arith.subf %s, %x : f32
  %t = arith.addf %x, %far : f32
  %e = arith.subf %t, %far : f32
  return %d, %e : f32, f32
}

// -----

// Must not fire: ordered comparisons, sums and products of others.

// CHECK-LABEL: func.func @others
// CHECK-NEXT: arith.constant
// CHECK-NEXT: arith.cmpf ogt
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.subf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: return
func.func @others(%x: f32, %y: f32, %z: f32) -> (i1, f32, f32) {
  %two = arith.constant 2.0 : f32
  %c = arith.cmpf ogt, %x, %y : f32
  %s = arith.addf %x, %y : f32
  %d = arith.subf %s, %z : f32
  %p = arith.mulf %x, %two : f32
  return %c, %d, %p : i1, f32, f32
}
