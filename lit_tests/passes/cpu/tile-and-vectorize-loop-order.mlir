// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=64 registers=32" --canonicalize --cse | FileCheck %s

// An image of 6.4 MB and weights of 2 MB: neither stays in a cache. The loop along vectors stands outermost, so that
// weights are read once, and the image for each of four tiles along vectors.

#x = affine_map<(h, w, o, i, k, l) -> (i, h + k, w + l)>
#f = affine_map<(h, w, o, i, k, l) -> (i, k, l, o)>
#y = affine_map<(h, w, o, i, k, l) -> (h, w, o)>

// CHECK-LABEL: func.func @both_large
// CHECK: scf.for %[[O:.*]] = %c0 to %c128 step %c32
// CHECK-NEXT: scf.for %[[H:.*]] = %c0 to %c96 step %c1
// CHECK-NEXT: scf.for %[[W:.*]] = %c0 to %c96 step %c8
// CHECK: vector.load %arg1[%{{.*}}, %{{.*}}, %{{.*}}, %[[O]]]
func.func @both_large(%x: memref<160x100x100xf32>, %f: memref<160x5x5x128xf32>, %y: memref<96x96x128xf32>) {
  linalg.generic {indexing_maps = [#x, #f, #y],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %f : memref<160x100x100xf32>, memref<160x5x5x128xf32>) outs(%y : memref<96x96x128xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not turn: weights of 200 KB stay near, whatever is read between. The result is written as it lies.

#x = affine_map<(h, w, o, i, k, l) -> (i, h + k, w + l)>
#f = affine_map<(h, w, o, i, k, l) -> (i, k, l, o)>
#y = affine_map<(h, w, o, i, k, l) -> (h, w, o)>

// CHECK-LABEL: func.func @must_not_turn_for_weights_that_are_near
// CHECK: scf.for %{{.*}} = %c0 to %c96 step %c1
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c96 step %c8
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c64 step %c32
func.func @must_not_turn_for_weights_that_are_near(%x: memref<32x100x100xf32>, %f: memref<32x5x5x64xf32>, %y: memref<96x96x64xf32>) {
  linalg.generic {indexing_maps = [#x, #f, #y],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %f : memref<32x100x100xf32>, memref<32x5x5x64xf32>) outs(%y : memref<96x96x64xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not turn either: an image of any height.

#x = affine_map<(h, w, o, i, k, l) -> (i, h + k, w + l)>
#f = affine_map<(h, w, o, i, k, l) -> (i, k, l, o)>
#y = affine_map<(h, w, o, i, k, l) -> (h, w, o)>

// CHECK-LABEL: func.func @must_not_turn_for_sizes_that_are_not_known
// CHECK: scf.for %[[H:.*]] = %c0 to %{{.*}} step %c1
// CHECK-NEXT: scf.for %[[O:.*]] = %c0 to %c128 step %c32
// CHECK-NEXT: scf.for %[[W:.*]] = %c0 to %c96 step %c8
func.func @must_not_turn_for_sizes_that_are_not_known(%x: memref<160x?x100xf32>, %f: memref<160x5x5x128xf32>, %y: memref<?x96x128xf32>) {
  linalg.generic {indexing_maps = [#x, #f, #y],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %f : memref<160x?x100xf32>, memref<160x5x5x128xf32>) outs(%y : memref<?x96x128xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// A result of 2 MB, of short sums: rows stand outermost, and it is written from one end to the other.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @written_as_it_lies
// CHECK: scf.for %{{.*}} = %c0 to %c512 step %c8
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c1024 step %c32
func.func @written_as_it_lies(%x: memref<512x16xf32>, %w: memref<16x1024xf32>, %y: memref<512x1024xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<512x16xf32>, memref<16x1024xf32>) outs(%y : memref<512x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// So is one of several products, each after the other.

#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>

// CHECK-LABEL: func.func @batches
// CHECK: scf.for %{{.*}} = %c0 to %c12 step %c1
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c256 step %c8
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c128 step %c32
func.func @batches(%x: memref<12x256x16xf32>, %w: memref<12x16x128xf32>, %y: memref<12x256x128xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<12x256x16xf32>, memref<12x16x128xf32>) outs(%y : memref<12x256x128xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not: a small result.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @must_not_for_a_small_result
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c32
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c128 step %c8
func.func @must_not_for_a_small_result(%x: memref<128x16xf32>, %w: memref<16x1024xf32>, %y: memref<128x1024xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<128x16xf32>, memref<16x1024xf32>) outs(%y : memref<128x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Rows stand outside of a loop along one element: a number that differs from row to row is loaded for each of them.

#x = affine_map<(b, r, v) -> (b, v, r)>
#n = affine_map<(b, r, v) -> (r)>
#y = affine_map<(b, r, v) -> (b, r, v)>

// CHECK-LABEL: func.func @a_number_for_each_row
// CHECK: scf.for %[[R:.*]] = %c0 to %c256 step %c16
// CHECK-COUNT-16: memref.load %arg1[
func.func @a_number_for_each_row(%x: memref<2x1x256xf32>, %n: memref<256xf32>, %y: memref<2x256x1xf32>) {
  linalg.generic {indexing_maps = [#x, #n, #y], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %n : memref<2x1x256xf32>, memref<256xf32>) outs(%y : memref<2x256x1xf32>) {
  ^bb0(%value: f32, %number: f32, %out: f32):
    %sum = arith.addf %value, %number : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// What is looked up in flipped weights lies in a line for all taps of an output channel: the taps run inside of it.

#y = affine_map<(kh, kw, o, i) -> (kh, kw, o, i)>

// CHECK-LABEL: func.func @flipped_lookups
// CHECK: scf.for %[[O:.*]] = %c0 to %c64 step %c1
// CHECK-NEXT: scf.for %[[KH:.*]] = %c0 to %c3 step %c1
// CHECK-NEXT: scf.for %[[KW:.*]] = %c0 to %c3 step %c1
// CHECK: vector.store %{{.*}}, %arg1[%[[KH]], %[[KW]], %[[O]],
func.func @flipped_lookups(%w: memref<64x16x3x3xf32>, %y: memref<3x3x64x16xf32>) {
  %c2 = arith.constant 2 : index
  linalg.generic {indexing_maps = [#y], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%y : memref<3x3x64x16xf32>) {
  ^bb0(%out: f32):
    %kh = linalg.index 0 : index
    %kw = linalg.index 1 : index
    %o = linalg.index 2 : index
    %i = linalg.index 3 : index
    %h = arith.subi %c2, %kh : index
    %l = arith.subi %c2, %kw : index
    %v = memref.load %w[%o, %i, %h, %l] : memref<64x16x3x3xf32>
    linalg.yield %v : f32
  }
  return
}

// -----

// Must not turn: rows of four elements are parts of cache lines, which would be written apart.

#y = affine_map<(kh, kw, o, i) -> (kh, kw, o, i)>

// CHECK-LABEL: func.func @must_not_turn_short_rows
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c3 step %c1
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c64 step %c1
func.func @must_not_turn_short_rows(%w: memref<64x4x3x3xf32>, %y: memref<3x3x64x4xf32>) {
  %c2 = arith.constant 2 : index
  linalg.generic {indexing_maps = [#y], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%y : memref<3x3x64x4xf32>) {
  ^bb0(%out: f32):
    %kh = linalg.index 0 : index
    %kw = linalg.index 1 : index
    %o = linalg.index 2 : index
    %i = linalg.index 3 : index
    %h = arith.subi %c2, %kh : index
    %v = memref.load %w[%o, %i, %h, %kw] : memref<64x4x3x3xf32>
    linalg.yield %v : f32
  }
  return
}

// -----

// Must not turn: one of the places is looked up itself.

#y = affine_map<(kh, o, i) -> (kh, o, i)>

// CHECK-LABEL: func.func @must_not_turn_unknown_places
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c64 step %c1
func.func @must_not_turn_unknown_places(%w: memref<64x16x3xf32>, %t: memref<64xi64>, %y: memref<3x64x16xf32>) {
  linalg.generic {indexing_maps = [#y], iterator_types = ["parallel", "parallel", "parallel"]} outs(%y : memref<3x64x16xf32>) {
  ^bb0(%out: f32):
    %kh = linalg.index 0 : index
    %o = linalg.index 1 : index
    %i = linalg.index 2 : index
    %n = memref.load %t[%o] : memref<64xi64>
    %p = arith.index_cast %n : i64 to index
    %v = memref.load %w[%p, %i, %kh] : memref<64x16x3xf32>
    linalg.yield %v : f32
  }
  return
}

// -----

// Planes of 16 MB, and weights of each of them: they are read row by row.

#x = affine_map<(c, h, w, r, s) -> (c, h + r, w + s)>
#k = affine_map<(c, h, w, r, s) -> (c, r, s)>
#o = affine_map<(c, h, w, r, s) -> (c, h, w)>

// CHECK-LABEL: func.func @large_planes
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c1
// CHECK-NEXT: scf.for %[[H:.*]] = %c0 to %c240 step %c10
// CHECK-NEXT: scf.for %[[W:.*]] = %c0 to %c256 step %c32
// CHECK: vector.load %arg2[%{{.*}}, %[[H]], %[[W]]]
func.func @large_planes(%x: memref<64x244x260xf32>, %k: memref<64x5x5xf32>, %o: memref<64x240x256xf32>) {
  linalg.generic {indexing_maps = [#x, #k, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %k : memref<64x244x260xf32>, memref<64x5x5xf32>) outs(%o : memref<64x240x256xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Must not turn: planes of 1 MB stay in a cache.

#x = affine_map<(c, h, w, r, s) -> (c, h + r, w + s)>
#k = affine_map<(c, h, w, r, s) -> (c, r, s)>
#o = affine_map<(c, h, w, r, s) -> (c, h, w)>

// CHECK-LABEL: func.func @must_not_turn_planes_that_are_near
// CHECK: scf.for %[[W:.*]] = %c0 to %c256 step %c32
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK-NEXT: scf.for %[[H:.*]] = %c0 to %c240 step %c10
// CHECK: vector.load %arg2[%{{.*}}, %[[H]], %[[W]]]
func.func @must_not_turn_planes_that_are_near(%x: memref<4x244x260xf32>, %k: memref<4x5x5xf32>, %o: memref<4x240x256xf32>) {
  linalg.generic {indexing_maps = [#x, #k, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %k : memref<4x244x260xf32>, memref<4x5x5xf32>) outs(%o : memref<4x240x256xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  }
  return
}
