// RUN: pipeline-opt %s --compare-in-32-bits | FileCheck %s

// CHECK-LABEL: func.func @extended
// CHECK-SAME: (%[[X:.*]]: i32)
// CHECK: %[[C:.*]] = arith.constant -3 : i32
// CHECK: arith.cmpi slt, %[[X]], %[[C]] : i32
func.func @extended(%x: i32) -> i1 {
  %wide = arith.extsi %x : i32 to i64
  %three = arith.constant -3 : i64
  %r = arith.cmpi slt, %wide, %three : i64
  return %r : i1
}

// CHECK-LABEL: func.func @counter
// CHECK: %[[I:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: arith.cmpi eq, %[[I]], %{{.*}} : i32
func.func @counter(%i: index, %x: i32) -> i1 {
  %number = arith.index_cast %i : index to i64
  %wide = arith.extsi %x : i32 to i64
  %r = arith.cmpi eq, %number, %wide : i64
  return %r : i1
}

// Any number, a constant that does not fit, and one that was extended without its sign are left.

// CHECK-LABEL: func.func @wide
// CHECK-COUNT-3: arith.cmpi {{.*}} : i64
func.func @wide(%x: i32, %y: i64) -> (i1, i1, i1) {
  %wide = arith.extsi %x : i32 to i64
  %unsigned = arith.extui %x : i32 to i64
  %large = arith.constant 4294967296 : i64
  %a = arith.cmpi slt, %wide, %y : i64
  %b = arith.cmpi slt, %wide, %large : i64
  %c = arith.cmpi slt, %unsigned, %wide : i64
  return %a, %b, %c : i1, i1, i1
}
