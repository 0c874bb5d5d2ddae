// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=64 registers=32" --canonicalize --cse | FileCheck %s

// The terms of a long sum go in blocks, whose sums lie in the result in between; each goes on from those before.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @long_sum
// CHECK: scf.for %[[TERM:.*]] = %c0 to %c1536 step %c768 {
// CHECK: %[[AFTER:.*]] = arith.addi %[[TERM]], %c768
// CHECK: %[[END:.*]] = arith.minui %[[AFTER]], %c1536
// CHECK: scf.for %[[COLUMN:.*]] = %c0 to %c64 step %c32
// CHECK: scf.for %[[ROW:.*]] = %c0 to %c64 step %c8
// CHECK: %[[OLD:.*]] = vector.load %arg2[%[[ROW]], %[[COLUMN]]]
// CHECK: scf.for %{{.*}} = %[[TERM]] to %[[END]] step %c192 iter_args(%{{.*}} = %[[OLD]]
// CHECK: vector.store %{{.*}}, %arg2
func.func @long_sum(%x: memref<64x1536xf32>, %w: memref<1536x64xf32>, %y: memref<64x64xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<64x1536xf32>, memref<1536x64xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// The first block starts from what the result is filled with, the last one is followed by the epilogue; before it the
// sums are put aside in memory of the kernel's own.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>

// CHECK-LABEL: func.func @filled_and_with_an_epilogue
// CHECK: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK: %[[SUMS:.*]] = memref.alloc()
// CHECK: scf.for %[[TERM:.*]] = %c0 to %c1536 step %c768 {
// CHECK: %[[OPENS:.*]] = arith.cmpi eq, %[[TERM]], %c0
// CHECK: %[[CLOSES:.*]] = arith.cmpi eq, %{{.*}}, %c1536
// CHECK: %[[OLD:.*]] = vector.load %[[SUMS]]
// CHECK: arith.select %[[OPENS]], %[[ZEROS]], %[[OLD]]
// CHECK: scf.if %[[CLOSES]] {
// CHECK-NOT: %[[SUMS]]
// CHECK: math.tanh
// CHECK: vector.store %{{.*}}, %arg2
// CHECK: } else {
// CHECK-NOT: %arg2
// CHECK: vector.store %{{.*}}, %[[SUMS]]
func.func @filled_and_with_an_epilogue(%x: memref<64x1536xf32>, %w: memref<1536x64xf32>, %y: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<64x64xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<64x64xf32>)
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<64x1536xf32>, memref<1536x64xf32>) outs(%sums : memref<64x64xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%sums : memref<64x64xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = math.tanh %in : f32
    linalg.yield %t : f32
  }
  memref.dealloc %sums : memref<64x64xf32>
  return
}

// -----

// Many rows go in blocks as well: outside of the loop over columns, and the rows that fill no tile behind them.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @many_rows
// CHECK: scf.for %[[BLOCK:.*]] = %c0 to %c2048 step %c520 {
// CHECK: %[[LAST:.*]] = arith.minui %{{.*}}, %c2048
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c32
// CHECK: scf.for %{{.*}} = %[[BLOCK]] to %[[LAST]] step %c8
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c32
// CHECK: vector.store %{{.*}}, %arg2[%c2048, %{{.*}}]
func.func @many_rows(%x: memref<2054x384xf32>, %w: memref<384x64xf32>, %y: memref<2054x64xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<2054x384xf32>, memref<384x64xf32>) outs(%y : memref<2054x64xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Not where there are few rows to share what a block keeps in cache.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @must_not_fire_for_few_rows
// CHECK-NOT: step %c768
func.func @must_not_fire_for_few_rows(%x: memref<16x1536xf32>, %w: memref<1536x64xf32>, %y: memref<16x64xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<16x1536xf32>, memref<1536x64xf32>) outs(%y : memref<16x64xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Not where the columns of a tile lie in a panel.

#x = affine_map<(p, m, n, k) -> (m, k)>
#w = affine_map<(p, m, n, k) -> (p, k, n)>
#y = affine_map<(p, m, n, k) -> (m, p, n)>

// CHECK-LABEL: func.func @must_not_fire_for_panels
// CHECK-NOT: step %c768
func.func @must_not_fire_for_panels(%x: memref<64x1536xf32>, %w: memref<2x1536x32xf32>, %y: memref<64x2x32xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<64x1536xf32>, memref<2x1536x32xf32>) outs(%y : memref<64x2x32xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Lines that lie far apart: blocks of as many as the address translation holds, each a partial sum, and what tiles read
// next is asked for. From four rows on, of an operand that is not near anyway.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @far_lines
// CHECK: scf.for %[[TERM:.*]] = %c0 to %c600 step %c86 {
// CHECK: scf.for %[[COLUMN:.*]] = %c0 to %c1024 step %c32
// CHECK: %[[OLD:.*]] = vector.load %arg2[%c0, %[[COLUMN]]]
// CHECK: scf.for %{{.*}} = %[[TERM]] to %{{.*}} step %c86 iter_args(%{{.*}} = %[[OLD]]
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %c1 iter_args(%{{.*}} = %cst
// CHECK: %[[NEXT:.*]] = arith.addi %[[COLUMN]], %c128
// CHECK: memref.prefetch %arg1[%[[K]], %[[NEXT]]], read, locality<2>, data
// CHECK: vector.load %arg1[%[[K]], %[[COLUMN]]]
func.func @far_lines(%x: memref<4x600xf32>, %w: memref<600x1024xf32>, %y: memref<4x1024xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<4x600xf32>, memref<600x1024xf32>) outs(%y : memref<4x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @must_not_prefetch_for_three_rows
// CHECK-NOT: memref.prefetch
func.func @must_not_prefetch_for_three_rows(%x: memref<3x600xf32>, %w: memref<600x1024xf32>, %y: memref<3x1024xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<3x600xf32>, memref<600x1024xf32>) outs(%y : memref<3x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// 960 KB lie near.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @must_not_prefetch_what_is_near
// CHECK-NOT: memref.prefetch
func.func @must_not_prefetch_what_is_near(%x: memref<8x240xf32>, %w: memref<240x1024xf32>, %y: memref<8x1024xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<8x240xf32>, memref<240x1024xf32>) outs(%y : memref<8x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}
