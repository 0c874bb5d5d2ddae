// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=64 registers=32" --canonicalize --cse | FileCheck %s

// A row times a large matrix: blocks of columns, in each of which all tiles add up eight lines before the next eight.

#x = affine_map<(n, k) -> (k)>
#w = affine_map<(n, k) -> (k, n)>
#y = affine_map<(n, k) -> (n)>

// CHECK-LABEL: func.func @row
// CHECK: scf.for %[[BLOCK:.*]] = %c0 to %c1024 step %c256 {
// CHECK: %[[BLOCK_END:.*]] = arith.minui
// CHECK: scf.for %[[LINE:.*]] = %c0 to %c512 step %c8 {
// CHECK: %[[END:.*]] = arith.minui %{{.*}}, %c512
// CHECK: scf.for %[[COLUMN:.*]] = %[[BLOCK]] to %[[BLOCK_END]] step %c64 {
// CHECK: scf.for %{{.*}} = %[[LINE]] to %[[END]] step %c1 iter_args
// CHECK-COUNT-4: math.fma
// CHECK: %[[OLD:.*]] = vector.load %arg2[%[[COLUMN]]]
// CHECK: %[[SUM:.*]] = arith.addf %[[OLD]]
// CHECK: vector.store %[[SUM]], %arg2[%[[COLUMN]]]
func.func @row(%x: memref<512xf32>, %w: memref<512x1024xf32>, %y: memref<1024xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : memref<512xf32>, memref<512x1024xf32>) outs(%y : memref<1024xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Of many lines groups are added up by themselves, in memory of the block's own. The first one starts from what the
// result is filled with, and the epilogue runs behind the last one.

#m = affine_map<(n, k) -> (k, n)>
#s = affine_map<(n, k) -> (n)>
#all = affine_map<(n) -> (n)>

// CHECK-LABEL: func.func @many_lines
// CHECK: %[[SUMS:.*]] = memref.alloc() : memref<1024xf32>
// CHECK: scf.for %[[BLOCK:.*]] = %c0 to %c1024 step %c256 {
// CHECK: %[[GROUP_SUMS:.*]] = memref.alloc() {{.*}} : memref<256xf32>
// CHECK: scf.for %[[GROUP:.*]] = %c0 to %c5000 step %c512 {
// CHECK: %[[GROUP_END:.*]] = arith.minui %{{.*}}, %c5000
// CHECK: scf.for %[[LINE:.*]] = %[[GROUP]] to %[[GROUP_END]] step %c8 {
// CHECK: %[[LAST:.*]] = arith.minui %{{.*}}, %[[GROUP_END]]
// CHECK: %[[OPENS:.*]] = arith.cmpi eq, %[[GROUP]], %c0
// CHECK: %[[CLOSES:.*]] = arith.cmpi eq, %[[LAST]], %c5000
// CHECK: %[[BEGINS:.*]] = arith.cmpi eq, %[[LINE]], %[[GROUP]]
// CHECK: arith.select %[[BEGINS]]
// CHECK: %[[ENDS:.*]] = arith.cmpi eq, %[[LAST]], %[[GROUP_END]]
// CHECK: scf.if %[[ENDS]] {
// CHECK: arith.select %[[OPENS]], %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: scf.if %[[CLOSES]] {
// CHECK: math.tanh
// CHECK: vector.store %{{.*}}, %arg1
// CHECK: } else {
// CHECK: vector.store %{{.*}}, %[[SUMS]]
// CHECK: } else {
// CHECK: vector.store %{{.*}}, %[[GROUP_SUMS]]
// CHECK: memref.dealloc %[[GROUP_SUMS]]
func.func @many_lines(%m: memref<5000x1024xf32>, %y: memref<1024xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<1024xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<1024xf32>)
  linalg.generic {indexing_maps = [#m, #s], iterator_types = ["parallel", "reduction"]}
      ins(%m : memref<5000x1024xf32>) outs(%sums : memref<1024xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]}
      ins(%sums : memref<1024xf32>) outs(%y : memref<1024xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = math.tanh %in : f32
    linalg.yield %t : f32
  }
  return
}

// -----

// A sum of no lines at all has one part, which is empty: the result is what it is filled with.

#m = affine_map<(n, k) -> (k, n)>
#s = affine_map<(n, k) -> (n)>

// CHECK-LABEL: func.func @number_of_lines_unknown
// CHECK: %[[LINES:.*]] = memref.dim %arg0, %c0
// CHECK: %[[BOUND:.*]] = arith.maxui %[[LINES]], %c1
// CHECK: scf.for %{{.*}} = %c0 to %[[BOUND]] step %c512 {
func.func @number_of_lines_unknown(%m: memref<?x1024xf32>, %y: memref<1024xf32>) {
  linalg.generic {indexing_maps = [#m, #s], iterator_types = ["parallel", "reduction"]}
      ins(%m : memref<?x1024xf32>) outs(%y : memref<1024xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: several rows share the lines, which tiles of rows read once for all of them.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @rows_share_lines
// CHECK-NOT: step %c8 {
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c32
func.func @rows_share_lines(%x: memref<4x512xf32>, %w: memref<512x1024xf32>, %y: memref<4x1024xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<4x512xf32>, memref<512x1024xf32>) outs(%y : memref<4x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: all of the matrix lies in a cache that is fast in any order.

#m = affine_map<(n, k) -> (k, n)>
#s = affine_map<(n, k) -> (n)>

// CHECK-LABEL: func.func @small
// CHECK-NOT: step %c8
// CHECK: scf.for %{{.*}} = %c0 to %c256 step %c128
func.func @small(%m: memref<100x256xf32>, %y: memref<256xf32>) {
  linalg.generic {indexing_maps = [#m, #s], iterator_types = ["parallel", "reduction"]}
      ins(%m : memref<100x256xf32>) outs(%y : memref<256xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  return
}
