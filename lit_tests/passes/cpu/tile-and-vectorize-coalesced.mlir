// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=64 registers=32" --canonicalize --cse | FileCheck %s

// Elements that follow each other are run over in one loop where the innermost one would leave vectors partly empty.

#all = affine_map<(a, b, c) -> (a, b, c)>

// CHECK-LABEL: func.func @taps_of_weights
// CHECK-DAG: %[[X:.*]] = memref.collapse_shape %arg0 {{.*}} : memref<40x3x3xf32> into memref<360xf32>
// CHECK-DAG: %[[Y:.*]] = memref.collapse_shape %arg1 {{.*}} : memref<40x3x3xf32> into memref<360xf32>
// CHECK: scf.for %[[I:.*]] = %c0 to %c352 step %c16
// CHECK: vector.load %[[X]][%[[I]]]
// CHECK: vector.store %{{.*}}, %[[Y]][%[[I]]]
// CHECK: vector.maskedstore %[[Y]]
func.func @taps_of_weights(%x: memref<40x3x3xf32>, %y: memref<40x3x3xf32>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<40x3x3xf32>) outs(%y : memref<40x3x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %negative = arith.negf %in : f32
    linalg.yield %negative : f32
  }
  return
}

// -----

// What has one element for a plane bounds the loops that become one; a size that is not known may be among them.

#all = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>

// CHECK-LABEL: func.func @planes
// CHECK: memref.collapse_shape %arg0 {{\[}}[0], [1], [2, 3]] : memref<2x5x?x7xf32> into memref<2x5x?xf32>
// CHECK: memref.load %arg1
func.func @planes(%x: memref<2x5x?x7xf32>, %bias: memref<5xf32>, %y: memref<2x5x?x7xf32>) {
  linalg.generic {indexing_maps = [#all, #channel, #all],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %bias : memref<2x5x?x7xf32>, memref<5xf32>) outs(%y : memref<2x5x?x7xf32>) {
  ^bb0(%in: f32, %b: f32, %out: f32):
    %sum = arith.addf %in, %b : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

#all = affine_map<(a, b) -> (a, b)>

// CHECK-LABEL: func.func @must_not_fire_for_full_vectors
// CHECK-NOT: memref.collapse_shape
func.func @must_not_fire_for_full_vectors(%x: memref<3x32xf32>, %y: memref<3x32xf32>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<3x32xf32>) outs(%y : memref<3x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %negative = arith.negf %in : f32
    linalg.yield %negative : f32
  }
  return
}

// -----

#all = affine_map<(a, b) -> (a, b)>

// CHECK-LABEL: func.func @must_not_fire_for_rows_apart
// CHECK-NOT: memref.collapse_shape
func.func @must_not_fire_for_rows_apart(%x: memref<9x7xf32, strided<[8, 1]>>, %y: memref<9x7xf32>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<9x7xf32, strided<[8, 1]>>) outs(%y : memref<9x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %negative = arith.negf %in : f32
    linalg.yield %negative : f32
  }
  return
}

// -----

#all = affine_map<(a, b) -> (a, b)>
#rows = affine_map<(a, b) -> (b)>

// CHECK-LABEL: func.func @must_not_fire_across_a_broadcast_or_a_counter
// CHECK-NOT: memref.collapse_shape
func.func @must_not_fire_across_a_broadcast_or_a_counter(%x: memref<9x7xf32>, %r: memref<7xf32>, %y: memref<9x7xf32>, %z: memref<9x7xindex>) {
  linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : memref<9x7xf32>, memref<7xf32>) outs(%y : memref<9x7xf32>) {
  ^bb0(%in: f32, %row: f32, %out: f32):
    %sum = arith.addf %in, %row : f32
    linalg.yield %sum : f32
  }
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%z : memref<9x7xindex>) {
  ^bb0(%out: index):
    %place = linalg.index 1 : index
    linalg.yield %place : index
  }
  return
}

// -----

// The dims that a reduction sums along rows are one; so are those of the op that computes what it reads, and scratch
// between them has the smaller shape, and is not needed.

#all = affine_map<(n, c, h, w) -> (n, c, h, w)>
#rows = affine_map<(n, c, h, w) -> (n)>

// CHECK-LABEL: func.func @sum_of_squares
// CHECK: %[[X:.*]] = memref.collapse_shape %arg0 {{\[}}[0], [1, 2, 3]] : memref<4x6x7x7xf32> into memref<4x294xf32>
// CHECK-NOT: memref.alloca
// CHECK: scf.for %[[N:.*]] =
// CHECK: scf.for %[[I:.*]] = %c0 to %c256 step %c64
// CHECK: vector.load %[[X]][%[[N]], %[[I]]]
// CHECK: arith.mulf
func.func @sum_of_squares(%x: memref<4x6x7x7xf32>, %sums: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %squares = memref.alloca() : memref<4x6x7x7xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<4x6x7x7xf32>) outs(%squares : memref<4x6x7x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %square = arith.mulf %in, %in : f32
    linalg.yield %square : f32
  }
  linalg.fill ins(%zero : f32) outs(%sums : memref<4xf32>)
  linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction", "reduction", "reduction"]}
      ins(%squares : memref<4x6x7x7xf32>) outs(%sums : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: a part of the rows does not follow the next one.

#all = affine_map<(n, h, w) -> (n, h, w)>
#rows = affine_map<(n, h, w) -> (n)>

// CHECK-LABEL: func.func @must_not_fire_for_parts_of_rows
// CHECK-NOT: memref.collapse_shape
func.func @must_not_fire_for_parts_of_rows(%x: memref<4x7x7xf32, strided<[70, 10, 1]>>, %sums: memref<4xf32>) {
  linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : memref<4x7x7xf32, strided<[70, 10, 1]>>) outs(%sums : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: the loop beside the reduction is no reduction.

#all = affine_map<(n, h, w) -> (n, h, w)>
#rows = affine_map<(n, h, w) -> (n, h)>

// CHECK-LABEL: func.func @must_not_fire_for_results
// CHECK-NOT: memref.collapse_shape
func.func @must_not_fire_for_results(%x: memref<4x7x7xf32>, %sums: memref<4x7xf32>) {
  linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : memref<4x7x7xf32>) outs(%sums : memref<4x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// What is read across vectors may have the loops that become one anywhere: taps that become innermost.

#from = affine_map<(o, i, h, w) -> (o, h, w, i)>
#to = affine_map<(o, i, h, w) -> (o, i, h, w)>

// CHECK-LABEL: func.func @transposed_taps
// CHECK-DAG: memref.collapse_shape %arg0 {{\[}}[0], [1, 2], [3]] : memref<4x3x3x16xf32> into memref<4x9x16xf32>
// CHECK-DAG: memref.collapse_shape %arg1 {{\[}}[0], [1], [2, 3]] : memref<4x16x3x3xf32> into memref<4x16x9xf32>
// CHECK: vector.shuffle
func.func @transposed_taps(%x: memref<4x3x3x16xf32>, %y: memref<4x16x3x3xf32>) {
  linalg.generic {indexing_maps = [#from, #to], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<4x3x3x16xf32>) outs(%y : memref<4x16x3x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// Must not fire: what is read has the taps in another order.

#from = affine_map<(o, i, h, w) -> (o, w, h, i)>
#to = affine_map<(o, i, h, w) -> (o, i, h, w)>

// CHECK-LABEL: func.func @must_not_fire_for_turned_taps
// CHECK-NOT: memref.collapse_shape
func.func @must_not_fire_for_turned_taps(%x: memref<4x3x3x16xf32>, %y: memref<4x16x3x3xf32>) {
  linalg.generic {indexing_maps = [#from, #to], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<4x3x3x16xf32>) outs(%y : memref<4x16x3x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// Elements at computed places, too: the counter of a loop outside of these is that of another one then.

#points = affine_map<(c, h, w) -> (h, w)>
#all = affine_map<(c, h, w) -> (c, h, w)>

// CHECK-LABEL: func.func @places
// CHECK: %[[I:.*]] = memref.collapse_shape %arg0 {{.*}} : memref<9x5xi32> into memref<45xi32>
// CHECK: scf.for %[[C:.*]] = %c0 to %c3
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c16
// CHECK: vector.load %[[I]]
// CHECK: memref.load %arg1[%[[C]], %{{.*}}]
func.func @places(%points: memref<9x5xi32>, %table: memref<3x8xf32>, %y: memref<3x9x5xf32>) {
  linalg.generic {indexing_maps = [#points, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%points : memref<9x5xi32>) outs(%y : memref<3x9x5xf32>) {
  ^bb0(%at: i32, %out: f32):
    %plane = linalg.index 0 : index
    %place = arith.index_cast %at : i32 to index
    %element = memref.load %table[%plane, %place] : memref<3x8xf32>
    linalg.yield %element : f32
  }
  return
}

// -----

#points = affine_map<(h, w) -> (h, w)>

// CHECK-LABEL: func.func @must_not_fire_for_counters_of_these
// CHECK-NOT: memref.collapse_shape
func.func @must_not_fire_for_counters_of_these(%points: memref<9x5xi32>, %table: memref<5x8xf32>, %y: memref<9x5xf32>) {
  linalg.generic {indexing_maps = [#points, #points], iterator_types = ["parallel", "parallel"]}
      ins(%points : memref<9x5xi32>) outs(%y : memref<9x5xf32>) {
  ^bb0(%at: i32, %out: f32):
    %line = linalg.index 1 : index
    %place = arith.index_cast %at : i32 to index
    %element = memref.load %table[%line, %place] : memref<5x8xf32>
    linalg.yield %element : f32
  }
  return
}
