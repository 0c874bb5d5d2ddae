// RUN: pipeline-opt %s --convert-through-i32 | FileCheck %s

// CHECK-LABEL: func.func @small
// CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: vector<4xf64>)
// CHECK-NEXT: %[[A:.*]] = arith.fptosi %[[X]] : f32 to i32
// CHECK-NEXT: %[[B:.*]] = arith.trunci %[[A]] : i32 to i8
// CHECK-NEXT: %[[C:.*]] = arith.fptosi %[[Y]] : vector<4xf64> to vector<4xi32>
// CHECK-NEXT: %[[D:.*]] = arith.trunci %[[C]] : vector<4xi32> to vector<4xi16>
// CHECK-NEXT: return %[[B]], %[[D]]
func.func @small(%x: f32, %y: vector<4xf64>) -> (i8, vector<4xi16>) {
  %0 = arith.fptosi %x : f32 to i8
  %1 = arith.fptoui %y : vector<4xf64> to vector<4xi16>
  return %0, %1 : i8, vector<4xi16>
}

// Must not fire: other integers.

// CHECK-LABEL: func.func @wide
// CHECK-SAME: (%[[X:.*]]: f32)
// CHECK-NEXT: arith.fptosi %[[X]] : f32 to i32
// CHECK-NEXT: arith.fptoui %[[X]] : f32 to i64
// CHECK-NEXT: arith.fptoui %[[X]] : f32 to i1
// CHECK-NEXT: return
func.func @wide(%x: f32) -> (i32, i64, i1) {
  %0 = arith.fptosi %x : f32 to i32
  %1 = arith.fptoui %x : f32 to i64
  %2 = arith.fptoui %x : f32 to i1
  return %0, %1, %2 : i32, i64, i1
}
