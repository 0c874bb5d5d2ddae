// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 lane-factors=true int8-dots=any bf16-dots=true dot-matrices=true" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 int8-dots=same" --canonicalize --cse | FileCheck %s --check-prefix=DOTS
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16" --canonicalize --cse | FileCheck %s --check-prefix=PLAIN

// A multiply-add takes a lane of a vector for all: rows are loaded along the sum, four steps of it at once.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @lanes
// CHECK-SAME: (%[[A:.*]]: memref<8x16xf32>, %[[B:.*]]: memref<16x8xf32>, %{{.*}}: memref<8x8xf32>)
// CHECK: scf.for %[[K:[a-z0-9]+]] = %c0 to %c16 step %c4
// CHECK: %[[ROW:.*]] = vector.load %[[A]][%c0, %[[K]]] : memref<8x16xf32>, vector<4xf32>
// CHECK: %[[NUMBER:.*]] = vector.extract %[[ROW]][0]
// CHECK: vector.broadcast %[[NUMBER]] : f32 to vector<4xf32>
// CHECK-NOT: memref.load %[[A]]
// PLAIN-LABEL: func.func @lanes
// PLAIN-SAME: (%[[A:.*]]: memref<8x16xf32>,
// PLAIN: memref.load %[[A]]
// PLAIN-NOT: vector.load %[[A]]
func.func @lanes(%a: memref<8x16xf32>, %b: memref<16x8xf32>, %c: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x16xf32>, memref<16x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not: sums of three steps fill no vector, and there are too few rows for lanes along those.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @short_sum
// CHECK-SAME: (%[[A:.*]]: memref<2x3xf32>,
// CHECK-NOT: vector.load %[[A]]
// CHECK: memref.load %[[A]]
func.func @short_sum(%a: memref<2x3xf32>, %b: memref<3x8xf32>, %c: memref<2x8xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x3xf32>, memref<3x8xf32>) outs(%c : memref<2x8xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Bytes, two rows times two columns at once: sums lie two by two meanwhile.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k floordiv 8, n * 8 + k mod 8)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @matrices
// CHECK: %[[FIRST:.*]] = vector.load %[[C:.*]][%c0, %c0] : memref<2x4xi32>
// CHECK: %[[SECOND:.*]] = vector.load %[[C]][%c1, %c0] : memref<2x4xi32>
// CHECK: %[[LEFT:.*]] = vector.shuffle %[[FIRST]], %[[SECOND]] [0, 1, 4, 5]
// CHECK: %[[ROWS:.*]] = vector.shuffle %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]
// CHECK: llvm.call_intrinsic "llvm.aarch64.neon.smmla.v4i32.v16i8"(%[[LEFT]], %[[ROWS]],
// CHECK-COUNT-3: smmla
// DOTS-LABEL: func.func @matrices
// DOTS: llvm.call_intrinsic "llvm.aarch64.neon.sdot.v4i32.v16i8"
// DOTS-NOT: smmla
// PLAIN-LABEL: func.func @matrices
// PLAIN-NOT: llvm.call_intrinsic
// PLAIN: arith.muli
func.func @matrices(%a: memref<2x16xi8>, %b: memref<2x32xi8>, %c: memref<2x4xi32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x16xi8>, memref<2x32xi8>) outs(%c : memref<2x4xi32>) {
  ^bb0(%l: i8, %r: i8, %out: i32):
    %x = arith.extsi %l : i8 to i32
    %y = arith.extsi %r : i8 to i32
    %product = arith.muli %x, %y : i32
    %sum = arith.addi %out, %product : i32
    linalg.yield %sum : i32
  }
  return
}

// -----

// Signs differ: there is a product of matrices for that, and no dot product.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k floordiv 8, n * 8 + k mod 8)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @mixed_signs
// CHECK: llvm.call_intrinsic "llvm.aarch64.neon.usmmla.v4i32.v16i8"
// DOTS-LABEL: func.func @mixed_signs
// DOTS-NOT: llvm.call_intrinsic
// DOTS: arith.muli
func.func @mixed_signs(%a: memref<2x16xi8>, %b: memref<2x32xi8>, %c: memref<2x4xi32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x16xi8>, memref<2x32xi8>) outs(%c : memref<2x4xi32>) {
  ^bb0(%l: i8, %r: i8, %out: i32):
    %x = arith.extui %l : i8 to i32
    %y = arith.extsi %r : i8 to i32
    %product = arith.muli %x, %y : i32
    %sum = arith.addi %out, %product : i32
    linalg.yield %sum : i32
  }
  return
}

// -----

// bf16 by matrices of 2 x 4.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k floordiv 4, n * 4 + k mod 4)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @bf16
// CHECK: llvm.call_intrinsic "llvm.aarch64.neon.bfmmla"
// PLAIN-LABEL: func.func @bf16
// PLAIN-NOT: llvm.call_intrinsic
// PLAIN: math.fma
func.func @bf16(%a: memref<2x8xbf16>, %b: memref<2x16xbf16>, %c: memref<2x4xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x8xbf16>, memref<2x16xbf16>) outs(%c : memref<2x4xf32>) {
  ^bb0(%l: bf16, %r: bf16, %out: f32):
    %x = arith.extf %l : bf16 to f32
    %y = arith.extf %r : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}
