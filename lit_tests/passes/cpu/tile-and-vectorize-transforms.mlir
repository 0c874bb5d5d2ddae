// A sum with roots of unity that is marked as a Fourier transform is computed in n log n steps, by two steps of 8 here.
// RUN: pipeline-opt %s --tile-and-vectorize="vector-bytes=32" | FileCheck %s

#in = affine_map<(r, l, k) -> (r, k)>
#out = affine_map<(r, l, k) -> (r, l)>

// CHECK: memref.global "private" constant @roots_of_unity_0 : memref<128xf32>
// CHECK-LABEL: func.func @rows
// CHECK-NOT: linalg.fill
// CHECK: scf.for
// CHECK: memref.get_global @roots_of_unity_0
// CHECK: math.fma
// CHECK: vector.shuffle
// CHECK-NOT: linalg.generic
func.func @rows(%x: memref<3x128xf32>, %y: memref<3x128xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<3x128xf32>)
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x : memref<3x128xf32>) outs(%y : memref<3x128xf32>)
    attrs = {pipeline.transform = {n = 64 : i64, scale = 1.0 : f64, sign = -1 : i64}} {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  return
}

// What a transform is added to has to stay: that is a sum like any other.
// CHECK-LABEL: func.func @added
// CHECK-NOT: memref.get_global
// CHECK: return
func.func @added(%x: memref<3x128xf32>, %y: memref<3x128xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x : memref<3x128xf32>) outs(%y : memref<3x128xf32>)
    attrs = {pipeline.transform = {n = 64 : i64, scale = 1.0 : f64, sign = -1 : i64}} {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  return
}

// Short rows are transformed side by side; the last one stands for those that are missing.
// CHECK-LABEL: func.func @short
// CHECK-NOT: linalg.fill
// CHECK: scf.for
// CHECK: arith.minsi
// CHECK: vector.shuffle
// CHECK-NOT: linalg.generic
func.func @short(%x: memref<?x16xf32>, %y: memref<?x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<?x16xf32>)
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x : memref<?x16xf32>) outs(%y : memref<?x16xf32>)
    attrs = {pipeline.transform = {n = 8 : i64, scale = 1.0 : f64, sign = -1 : i64}} {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  return
}
