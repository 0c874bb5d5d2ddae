// RUN: pipeline-opt %s --split-input-file --drop-unit-dims | FileCheck %s

// The product of a matrix and a column: vectors can run along its sum.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @column
// CHECK-SAME: (%[[M:.*]]: memref<5x9xf32>, %[[X:.*]]: memref<9x1xf32>, %[[Y:.*]]: memref<5x1xf32>)
// CHECK-DAG: %[[X1:.*]] = memref.collapse_shape %[[X]] {{\[\[}}0, 1]] : memref<9x1xf32> into memref<9xf32>
// CHECK-DAG: %[[Y1:.*]] = memref.collapse_shape %[[Y]] {{\[\[}}0, 1]] : memref<5x1xf32> into memref<5xf32>
// CHECK: linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[C]]], iterator_types = ["parallel", "reduction"]
// CHECK-SAME: ins(%[[M]], %[[X1]] : memref<5x9xf32>, memref<9xf32>) outs(%[[Y1]] : memref<5xf32>)
func.func @column(%a: memref<5x9xf32>, %b: memref<9x1xf32>, %c: memref<5x1xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<5x9xf32>, memref<9x1xf32>) outs(%c : memref<5x1xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// A buffer of the function's own has another shape; a counter of a loop that is gone is 0; 1 is read as 0, too.

#id = affine_map<(i, j) -> (i, j)>
#zero = affine_map<(i) -> (i, 0)>
#i = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @own
// CHECK: %[[OWN:.*]] = memref.alloc() {alignment = 64 : i64} : memref<6xf32>
// CHECK-NOT: memref.alloc
// CHECK: linalg.generic
// CHECK-SAME: outs(%[[OWN]] : memref<6xf32>)
// CHECK: arith.index_cast %c0
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[OWN]] : memref<6xf32>)
// CHECK: memref.dealloc %[[OWN]]
// CHECK-NOT: memref.dealloc
func.func @own(%r: memref<6xf32>, %n: index) {
  %t = memref.alloc() {alignment = 64 : i64} : memref<6x1xf32>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%t : memref<6x1xf32>) {
  ^bb0(%out: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %f = arith.sitofp %k : i32 to f32
    linalg.yield %f : f32
  }
  linalg.generic {indexing_maps = [#zero, #i], iterator_types = ["parallel"]}
      ins(%t : memref<6x1xf32>) outs(%r : memref<6xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  }
  memref.dealloc %t : memref<6x1xf32>
  return
}

// -----

// Stays: a loop that is summed over, elements that are not neighbours without the dim, and a buffer that a convolution
// reads that something is numbered in.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @stays
// CHECK-NOT: memref.collapse_shape
// CHECK: return
func.func @stays(%x: memref<6x1xf32>, %r: memref<6xf32>, %apart: memref<6x1xf32, strided<[7, 1]>>,
                 %w: memref<4x1xf32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<6x1xf32>) outs(%r : memref<6xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
      outs(%apart : memref<6x1xf32, strided<[7, 1]>>) {
  ^bb0(%out: f32):
    %n = arith.negf %out : f32
    linalg.yield %n : f32
  }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"], pipeline.taps = [0, 0]}
      outs(%w : memref<4x1xf32>) {
  ^bb0(%out: f32):
    %n = arith.negf %out : f32
    linalg.yield %n : f32
  }
  return
}

// -----

// Stays: a loop of one iteration that moves along a window, too, and is the counter of no dim but this.

#x = affine_map<(c, w, k) -> (w + k)>
#w = affine_map<(c, w, k) -> (c, k)>
#y = affine_map<(c, w, k) -> (c, w)>

// CHECK-LABEL: func.func @window
// CHECK-NOT: memref.collapse_shape
// CHECK: return
func.func @window(%x: memref<3xf32>, %w: memref<4x3xf32>, %y: memref<4x1xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<3xf32>, memref<4x3xf32>) outs(%y : memref<4x1xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
