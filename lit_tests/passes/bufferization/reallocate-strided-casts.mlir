// RUN: pipeline-opt %s --reallocate-strided-casts | FileCheck %s
// RUN: pipeline-opt %s --reallocate-strided-casts --remarks-filter=reallocate-strided-casts --verify-diagnostics -o /dev/null

// Two of three rows of each image: what follows them is the third one, whatever the strides are called.

// CHECK-LABEL: func.func @cuts_rows
// CHECK-SAME: (%[[X:.*]]: memref<?x3x?xf32>)
// CHECK: %[[SLICE:.*]] = memref.subview %[[X]]
// CHECK: %[[NEW:.*]] = memref.alloc(%{{.*}}, %{{.*}}) {alignment = 64 : i64} : memref<?x2x?xf32>
// CHECK: memref.copy %[[SLICE]], %[[NEW]]
// CHECK: return %[[NEW]]
func.func @cuts_rows(%x: memref<?x3x?xf32>) -> memref<?x2x?xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %a = memref.dim %x, %c0 : memref<?x3x?xf32>
  %b = memref.dim %x, %c2 : memref<?x3x?xf32>
  %s = memref.subview %x[0, 0, 0] [%a, 2, %b] [1, 1, 1] : memref<?x3x?xf32> to memref<?x2x?xf32, strided<[?, ?, 1]>>
  // expected-remark @below {{passed: the slice is copied, since its rows are apart}}
  %r = memref.cast %s : memref<?x2x?xf32, strided<[?, ?, 1]>> to memref<?x2x?xf32>
  return %r : memref<?x2x?xf32>
}

// Columns of a slice of images.

// CHECK-LABEL: func.func @cuts_columns
// CHECK: %[[NEW:.*]] = memref.alloc(
// CHECK: return %[[NEW]]
func.func @cuts_columns(%x: memref<?x3x?xf32>, %n: index, %m: index) -> memref<?x3x?xf32> {
  %c2 = arith.constant 2 : index
  %b = memref.dim %x, %c2 : memref<?x3x?xf32>
  %s = memref.subview %x[0, 0, 0] [%n, 3, %b] [1, 1, 1] : memref<?x3x?xf32> to memref<?x3x?xf32, strided<[?, ?, 1]>>
  %t = memref.subview %s[0, 0, 0] [%n, 3, %m] [1, 1, 1] : memref<?x3x?xf32, strided<[?, ?, 1]>> to memref<?x3x?xf32, strided<[?, ?, 1]>>
  // expected-remark @below {{passed: the slice is copied, since its rows are apart}}
  %r = memref.cast %t : memref<?x3x?xf32, strided<[?, ?, 1]>> to memref<?x3x?xf32>
  return %r : memref<?x3x?xf32>
}

// Must not fire: some of the images; one image, and some of its rows; what is row-major already.

// CHECK-LABEL: func.func @cuts_images
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @cuts_images(%x: memref<?x3x?xf32>, %n: index) -> (memref<?x3x?xf32>, memref<1x?x?xf32>, memref<?x?x?xf32>) {
  %c2 = arith.constant 2 : index
  %b = memref.dim %x, %c2 : memref<?x3x?xf32>
  %s = memref.subview %x[0, 0, 0] [%n, 3, %b] [1, 1, 1] : memref<?x3x?xf32> to memref<?x3x?xf32, strided<[?, ?, 1]>>
  %r = memref.cast %s : memref<?x3x?xf32, strided<[?, ?, 1]>> to memref<?x3x?xf32>
  %t = memref.subview %x[0, 0, 0] [1, %n, %b] [1, 1, 1] : memref<?x3x?xf32> to memref<1x?x?xf32, strided<[?, ?, 1]>>
  %u = memref.cast %t : memref<1x?x?xf32, strided<[?, ?, 1]>> to memref<1x?x?xf32>
  %v = memref.cast %x : memref<?x3x?xf32> to memref<?x?x?xf32>
  return %r, %u, %v : memref<?x3x?xf32>, memref<1x?x?xf32>, memref<?x?x?xf32>
}

// A buffer that was allocated with these sizes, and cut along its first dim.

// CHECK-LABEL: func.func @of_an_allocation
// CHECK-COUNT-1: memref.alloc
// CHECK-NOT: memref.copy
func.func @of_an_allocation(%n: index, %m: index, %k: index) -> memref<?x?xf32> {
  %x = memref.alloc(%n, %m) : memref<?x?xf32>
  %s = memref.subview %x[0, 0] [%k, %m] [1, 1] : memref<?x?xf32> to memref<?x?xf32, strided<[?, 1]>>
  %r = memref.cast %s : memref<?x?xf32, strided<[?, 1]>> to memref<?x?xf32>
  return %r : memref<?x?xf32>
}

// One of three tensors, as the query of an attention is; every second row is another matter.

// CHECK-LABEL: func.func @selects
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @selects(%x: memref<3x?x?xf32>) -> memref<?x?xf32> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = memref.dim %x, %c1 : memref<3x?x?xf32>
  %b = memref.dim %x, %c2 : memref<3x?x?xf32>
  %s = memref.subview %x[0, 0, 0] [1, %a, %b] [1, 1, 1] : memref<3x?x?xf32> to memref<?x?xf32, strided<[?, 1]>>
  %r = memref.cast %s : memref<?x?xf32, strided<[?, 1]>> to memref<?x?xf32>
  return %r : memref<?x?xf32>
}

// CHECK-LABEL: func.func @steps
// CHECK: %[[NEW:.*]] = memref.alloc(
// CHECK: return %[[NEW]]
func.func @steps(%x: memref<?x?xf32>, %n: index) -> memref<?x?xf32> {
  %c1 = arith.constant 1 : index
  %b = memref.dim %x, %c1 : memref<?x?xf32>
  %s = memref.subview %x[0, 0] [%n, %b] [2, 1] : memref<?x?xf32> to memref<?x?xf32, strided<[?, 1]>>
  // expected-remark @below {{passed: the slice is copied, since its rows are apart}}
  %r = memref.cast %s : memref<?x?xf32, strided<[?, 1]>> to memref<?x?xf32>
  return %r : memref<?x?xf32>
}
