// RUN: pipeline-opt %s --kernel-buffers-to-stack | FileCheck %s
// RUN: pipeline-opt %s --kernel-buffers-to-stack=most-bytes=100 | FileCheck %s --check-prefix=SMALL

// A row that a kernel keeps between its ops, if it is small enough.

// CHECK-LABEL: func.func @kernel
// CHECK: memref.alloca() : memref<64xf32>
// SMALL-LABEL: func.func @kernel
// SMALL: memref.alloc() : memref<64xf32>
func.func @kernel(%x: memref<64xf32>) attributes {pipeline.kernel = "elementwise"} {
  %row = memref.alloc() : memref<64xf32>
  memref.copy %x, %row : memref<64xf32> to memref<64xf32>
  memref.copy %row, %x : memref<64xf32> to memref<64xf32>
  return
}

// Not where its size is not known, nor in functions that call kernels, perhaps in loops.

// CHECK-LABEL: func.func @unknown
// CHECK: memref.alloc(%{{.*}}) : memref<?xf32>
func.func @unknown(%x: memref<?xf32>, %n: index) attributes {pipeline.kernel = "elementwise"} {
  %row = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %row : memref<?xf32> to memref<?xf32>
  memref.copy %row, %x : memref<?xf32> to memref<?xf32>
  return
}

// CHECK-LABEL: func.func @main
// CHECK: memref.alloc() : memref<64xf32>
func.func @main(%x: memref<64xf32>) {
  %row = memref.alloc() : memref<64xf32>
  call @kernel(%row) : (memref<64xf32>) -> ()
  memref.copy %row, %x : memref<64xf32> to memref<64xf32>
  return
}
