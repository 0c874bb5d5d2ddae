// RUN: pipeline-opt %s --saturate-index-casts | FileCheck %s

// CHECK-LABEL: func.func @place
// CHECK-SAME: (%[[X:.*]]: i64)
// CHECK-DAG: %[[LEAST:.*]] = arith.constant -2147483648 : i64
// CHECK-DAG: %[[MOST:.*]] = arith.constant 2147483647 : i64
// CHECK: %[[A:.*]] = arith.minsi %[[X]], %[[MOST]]
// CHECK: %[[B:.*]] = arith.maxsi %[[A]], %[[LEAST]]
// CHECK: arith.index_cast %[[B]] : i64 to index
func.func @place(%x: i64) -> index {
  %i = arith.index_cast %x : i64 to index
  return %i : index
}

// Numbers of 32 bits fit, and so do indices.

// CHECK-LABEL: func.func @narrow
// CHECK-NOT: arith.minsi
func.func @narrow(%x: i32, %j: index) -> (index, i64) {
  %i = arith.index_cast %x : i32 to index
  %number = arith.index_cast %j : index to i64
  return %i, %number : index, i64
}
