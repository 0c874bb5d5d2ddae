// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=64 registers=32" --canonicalize --cse | FileCheck %s

// A pool with a stride and a pad: for each row of results, the image's rows that a window has inside of the image are
// folded to one, in scratch memory with the border around it; then vectors of that which begin at the taps are picked
// apart and folded. The last vector of a row begins so early that it is full; the padded copy is gone.

#x = affine_map<(c, i, j, k, l) -> (c, i * 2 + k, j * 2 + l)>
#w = affine_map<(c, i, j, k, l) -> (k, l)>
#y = affine_map<(c, i, j, k, l) -> (c, i, j)>

// CHECK-DAG: #[[ABOVE:.*]] = affine_map<(d0) -> (d0 * -2 + 1)>
// CHECK-DAG: #[[BELOW:.*]] = affine_map<(d0) -> (d0 * -2 + 41)>

// CHECK-LABEL: func.func @strided
// CHECK-DAG: %[[LEAST:.*]] = arith.constant 0xFF800000 : f32
// CHECK: scf.for %[[PLANE:.*]] = %c0 to %c4 step %c1 {
// CHECK: %[[ROW:.*]] = memref.alloc() {{.*}} : memref<82xf32>
// CHECK: memref.store %[[LEAST]], %[[ROW]][%c0]
// CHECK: memref.store %[[LEAST]], %[[ROW]][%c45]
// CHECK: scf.for %[[I:.*]] = %c0 to %c20 step %c1 {
// CHECK: %[[ABOVE_IT:.*]] = affine.apply #[[ABOVE]](%[[I]])
// CHECK: %[[BELOW_IT:.*]] = affine.apply #[[BELOW]](%[[I]])
// CHECK: %[[FIRST:.*]] = arith.maxsi %[[ABOVE_IT]], %c0
// CHECK: %[[END:.*]] = arith.minsi %[[BELOW_IT]], %c3
// CHECK: %[[FOLDED:.*]]:2 = scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1
// CHECK: vector.load %arg0[%[[PLANE]], %{{.*}}, %c0] : memref<4x40x44xf32>, vector<16xf32>
// CHECK: vector.store %[[FOLDED]]#0, %[[ROW]][%c1]
// CHECK: vector.store %[[FOLDED]]#1, %[[ROW]][%c17]
// CHECK: vector.store %{{.*}}, %[[ROW]][%c29]
// CHECK: %[[LEFT:.*]] = vector.load %[[ROW]][%c0]
// CHECK: %[[RIGHT:.*]] = vector.load %[[ROW]][%c16]
// CHECK: vector.shuffle %[[LEFT]], %[[RIGHT]] [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK: vector.store %{{.*}}, %arg1[%[[PLANE]], %[[I]], %c0]
// CHECK: vector.maskedstore %arg1[%[[PLANE]], %[[I]], %c16]
// CHECK: memref.dealloc %[[ROW]]
func.func @strided(%x: memref<4x40x44xf32>, %y: memref<4x20x22xf32>) {
  %least = arith.constant 0xFF800000 : f32
  %padded = memref.alloc() : memref<4x42x46xf32>
  linalg.fill ins(%least : f32) outs(%padded : memref<4x42x46xf32>)
  %inside = memref.subview %padded[0, 1, 1] [4, 40, 44] [1, 1, 1] : memref<4x42x46xf32> to memref<4x40x44xf32, strided<[1932, 46, 1], offset: 47>>
  memref.copy %x, %inside : memref<4x40x44xf32> to memref<4x40x44xf32, strided<[1932, 46, 1], offset: 47>>
  %window = memref.alloc() : memref<3x3xf32>
  linalg.fill ins(%least : f32) outs(%y : memref<4x20x22xf32>)
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%padded, %window : memref<4x42x46xf32>, memref<3x3xf32>) outs(%y : memref<4x20x22xf32>) {
  ^bb0(%in: f32, %unread: f32, %out: f32):
    %larger = arith.maximumf %out, %in : f32
    linalg.yield %larger : f32
  }
  return
}

// -----

// Every third element: of three vectors, by two shuffles.

#x = affine_map<(c, i, j, k, l) -> (c, i * 3 + k, j * 3 + l)>
#w = affine_map<(c, i, j, k, l) -> (k, l)>
#y = affine_map<(c, i, j, k, l) -> (c, i, j)>

// CHECK-LABEL: func.func @every_third
// CHECK: %[[A:.*]] = vector.load %[[ROW:.*]][%c0] : memref<68xf32>, vector<16xf32>
// CHECK: %[[B:.*]] = vector.load %[[ROW]][%c16]
// CHECK: %[[C:.*]] = vector.load %[[ROW]][%c32]
// CHECK: %[[AB:.*]] = vector.shuffle %[[A]], %[[B]] [0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 31, 31, 31, 31, 31]
// CHECK: vector.shuffle %[[AB]], %[[C]] [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29]
func.func @every_third(%x: memref<4x50x50xf32>, %y: memref<4x16x16xf32>) {
  %window = memref.alloc() : memref<4x5xf32>
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %window : memref<4x50x50xf32>, memref<4x5xf32>) outs(%y : memref<4x16x16xf32>) {
  ^bb0(%in: f32, %unread: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: windows of 2 x 2 have no taps in common, and few.

#x = affine_map<(c, i, j, k, l) -> (c, i * 2 + k, j * 2 + l)>
#w = affine_map<(c, i, j, k, l) -> (k, l)>
#y = affine_map<(c, i, j, k, l) -> (c, i, j)>

// CHECK-LABEL: func.func @small_windows
// CHECK-NOT: memref.alloc
func.func @small_windows(%x: memref<4x40x40xf32>, %y: memref<4x20x20xf32>) {
  %window = memref.alloc() : memref<2x2xf32>
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %window : memref<4x40x40xf32>, memref<2x2xf32>) outs(%y : memref<4x20x20xf32>) {
  ^bb0(%in: f32, %unread: f32, %out: f32):
    %larger = arith.maximumf %out, %in : f32
    linalg.yield %larger : f32
  }
  return
}

// -----

// Must not fire: taps are weighted, as those of a depthwise convolution.

#x = affine_map<(c, i, j, k, l) -> (c, i * 2 + k, j * 2 + l)>
#w = affine_map<(c, i, j, k, l) -> (k, l)>
#y = affine_map<(c, i, j, k, l) -> (c, i, j)>

// CHECK-LABEL: func.func @weighted
// CHECK-NOT: memref.alloc
func.func @weighted(%x: memref<4x41x41xf32>, %w: memref<3x3xf32>, %y: memref<4x20x20xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<4x41x41xf32>, memref<3x3xf32>) outs(%y : memref<4x20x20xf32>) {
  ^bb0(%in: f32, %weight: f32, %out: f32):
    %product = arith.mulf %in, %weight : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// A border of numbers that may be the largest of a window stays: rows of the padded copy are folded.

#x = affine_map<(c, i, j, k, l) -> (c, i * 2 + k, j * 2 + l)>
#w = affine_map<(c, i, j, k, l) -> (k, l)>
#y = affine_map<(c, i, j, k, l) -> (c, i, j)>

// CHECK-LABEL: func.func @border_of_zeros
// CHECK: %[[PADDED:.*]] = memref.alloc() : memref<4x42x46xf32>
// CHECK: vector.load %[[PADDED]][
// CHECK-NOT: vector.load %arg0
func.func @border_of_zeros(%x: memref<4x40x44xf32>, %y: memref<4x20x22xf32>) {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %padded = memref.alloc() : memref<4x42x46xf32>
  linalg.fill ins(%zero : f32) outs(%padded : memref<4x42x46xf32>)
  %inside = memref.subview %padded[0, 1, 1] [4, 40, 44] [1, 1, 1] : memref<4x42x46xf32> to memref<4x40x44xf32, strided<[1932, 46, 1], offset: 47>>
  memref.copy %x, %inside : memref<4x40x44xf32> to memref<4x40x44xf32, strided<[1932, 46, 1], offset: 47>>
  %window = memref.alloc() : memref<3x3xf32>
  linalg.fill ins(%least : f32) outs(%y : memref<4x20x22xf32>)
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%padded, %window : memref<4x42x46xf32>, memref<3x3xf32>) outs(%y : memref<4x20x22xf32>) {
  ^bb0(%in: f32, %unread: f32, %out: f32):
    %larger = arith.maximumf %out, %in : f32
    linalg.yield %larger : f32
  }
  return
}
