// RUN: pipeline-opt %s --flatten-buffers --canonicalize | FileCheck %s

// Indices are computed from sizes; those that are not known come as arguments at the end. The number of threads goes.

// CHECK-LABEL: func.func private @rows
// CHECK-SAME: (%[[X:.*]]: memref<?xf32>, %[[I:.*]]: index, %[[J:.*]]: index, %[[K:.*]]: i64, %[[COLUMNS:.*]]: index)
// CHECK: %[[ROW:.*]] = arith.muli %[[I]], %[[COLUMNS]] : index
// CHECK: %[[PLACE:.*]] = arith.addi %[[ROW]], %[[J]] : index
// CHECK: %[[V:.*]] = memref.load %[[X]][%[[PLACE]]] : memref<?xf32>
// CHECK: memref.store %[[V]], %[[X]][%[[J]]] : memref<?xf32>
func.func private @rows(%n: index {pipeline.threads}, %x: memref<4x?xf32>, %i: index, %j: index, %k: i64)
    attributes {pipeline.dispatch = "rows"} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%i, %j] : memref<4x?xf32>
  memref.store %v, %x[%c0, %j] : memref<4x?xf32>
  return
}

// Strides and offsets likewise; a size is what memref.dim says.

// CHECK-LABEL: func.func private @strided
// CHECK-SAME: (%[[X:.*]]: memref<?xi32>, %[[Y:.*]]: memref<?xindex>, %[[I:.*]]: index, %[[SIZE:.*]]: index, %[[OFFSET:.*]]: index)
// CHECK: %[[STEP:.*]] = arith.muli %[[I]], %c3
// CHECK: %[[PLACE:.*]] = arith.addi %{{.*}} : index
// CHECK: memref.store %{{.*}}, %[[X]][%[[PLACE]]]
// CHECK: memref.store %[[SIZE]], %[[Y]]
func.func private @strided(%x: memref<?xi32, strided<[3], offset: ?>>, %y: memref<1xindex>, %i: index)
    attributes {pipeline.dispatch = "strided"} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  memref.store %one, %x[%i] : memref<?xi32, strided<[3], offset: ?>>
  %size = memref.dim %x, %c0 : memref<?xi32, strided<[3], offset: ?>>
  memref.store %size, %y[%c0] : memref<1xindex>
  return
}

// Must not fire: a function that is no dispatch.

// CHECK-LABEL: func.func @other
// CHECK-SAME: memref<4x4xf32>
func.func @other(%x: memref<4x4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0, %c0] : memref<4x4xf32>
  return %v : f32
}

// Several elements at a time: a buffer as one row has the buffer's own places.

// CHECK-LABEL: func.func private @several
// CHECK-SAME: (%[[X:.*]]: memref<?xf32>, %[[I:.*]]: index)
// CHECK: %[[V:.*]] = vector.load %[[X]][%[[I]]] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
// CHECK: vector.store %[[V]], %[[X]][%[[I]]] {alignment = 16 : i64}
func.func private @several(%x: memref<4x4xf32>, %i: index) attributes {pipeline.dispatch = "several"} {
  %row = memref.reinterpret_cast %x to offset: [0], sizes: [16], strides: [1] : memref<4x4xf32> to memref<16xf32>
  %v = vector.load %row[%i] {alignment = 16 : i64} : memref<16xf32>, vector<4xf32>
  vector.store %v, %row[%i] {alignment = 16 : i64} : memref<16xf32>, vector<4xf32>
  return
}

// -----

// Copies to shared memory take the place in the row, too; shared memory stays as it is.

// CHECK-LABEL: func.func private @fetch
// CHECK-SAME: (%[[X:.*]]: memref<?xbf16>, %[[I:.*]]: index)
// CHECK: %[[ROW:.*]] = arith.muli %[[I]], %{{.*}}
// CHECK: nvgpu.device_async_copy %[[X]][%{{.*}}], %{{.*}}[%{{.*}}, %{{.*}}], 8{{.*}} : memref<?xbf16> to memref<4x16xbf16, #gpu.address_space<workgroup>>
func.func private @fetch(%x: memref<4x16xbf16>, %i: index) attributes {pipeline.dispatch = "fetch"} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %shared = memref.alloc() : memref<4x16xbf16, #gpu.address_space<workgroup>>
  %token = nvgpu.device_async_copy %x[%i, %c8], %shared[%c0, %c0], 8, %c8 {bypassL1} : memref<4x16xbf16> to memref<4x16xbf16, #gpu.address_space<workgroup>>
  return
}
