// RUN: pipeline-opt %s --reinterpret-collapsed-buffers --split-input-file | FileCheck %s

// A buffer whose dims are one is the same memory with other sizes and strides.

// CHECK-LABEL: func.func @whole
// CHECK-SAME: (%[[X:.*]]: memref<3x5x7xf32>)
// CHECK: %[[BASE:.*]], %{{.*}}, %{{.*}}:3, %{{.*}}:3 = memref.extract_strided_metadata %[[X]]
// CHECK: memref.reinterpret_cast %[[BASE]] to offset: [0], sizes: [3, 35], strides: [35, 1] : memref<f32> to memref<3x35xf32>
// CHECK-NOT: memref.collapse_shape
func.func @whole(%x: memref<3x5x7xf32>) -> memref<3x35xf32> {
  %c = memref.collapse_shape %x [[0], [1, 2]] : memref<3x5x7xf32> into memref<3x35xf32>
  return %c : memref<3x35xf32>
}

// -----

// Of a part, the offset is that of the part; sizes that the call gives are multiplied.

// CHECK-LABEL: func.func @part
// CHECK-SAME: (%[[X:.*]]: memref<?x?x7xf32, strided<[?, 7, 1], offset: ?>>)
// CHECK: %[[BASE:.*]], %[[OFFSET:.*]], %[[SIZES:.*]]:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata %[[X]]
// CHECK: %[[SIZE:.*]] = arith.muli %[[SIZES]]#1, %[[SIZES]]#2 : index
// CHECK: memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [%[[SIZES]]#0, %[[SIZE]]], strides: [%[[STRIDES]]#0, 1]
func.func @part(%x: memref<?x?x7xf32, strided<[?, 7, 1], offset: ?>>) -> memref<?x?xf32, strided<[?, 1], offset: ?>> {
  %c = memref.collapse_shape %x [[0], [1, 2]]
    : memref<?x?x7xf32, strided<[?, 7, 1], offset: ?>> into memref<?x?xf32, strided<[?, 1], offset: ?>>
  return %c : memref<?x?xf32, strided<[?, 1], offset: ?>>
}

// -----

// Must not fire: dims of size 1 go without a division.

// CHECK-LABEL: func.func @unit
// CHECK: memref.collapse_shape
// CHECK-NOT: memref.reinterpret_cast
func.func @unit(%x: memref<1x5x1xf32>) -> memref<5xf32> {
  %c = memref.collapse_shape %x [[0, 1, 2]] : memref<1x5x1xf32> into memref<5xf32>
  return %c : memref<5xf32>
}
