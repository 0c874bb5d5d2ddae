// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --remarks-filter=tile-and-vectorize --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=32 registers=16" --canonicalize --cse | FileCheck %s --check-prefix=MASKS

// A matrix product: rows of vectors of the output are the accumulators of one loop over the inner dimension.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: (%[[A:.*]]: memref<5x7xf32>, %[[B:.*]]: memref<7x8xf32>, %[[C:.*]]: memref<5x8xf32>)
// CHECK-COUNT-10: vector.load %[[C]]
// CHECK: scf.for %[[K:[a-z0-9]+]] = %{{.*}} iter_args
// CHECK-DAG: memref.load %[[A]][%{{.*}}, %[[K]]]
// CHECK-DAG: %[[ROW:.*]] = vector.load %[[B]][%[[K]], %{{.*}}] : memref<7x8xf32>, vector<4xf32>
// CHECK: math.fma
// CHECK: scf.yield
// CHECK-COUNT-10: vector.store %{{.*}}, %[[C]]
// CHECK-NEXT: return
func.func @matmul(%a: memref<5x7xf32>, %b: memref<7x8xf32>, %c: memref<5x8xf32>) {
  // expected-remark @below {{passed: tiles of 5 x 2 vectors of 4}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<5x7xf32>, memref<7x8xf32>) outs(%c : memref<5x8xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Of dynamic sizes and in a batch: loops of full tiles, then of the rest, whose vectors are masked.

#a = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#b = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#c = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>

// CHECK-LABEL: func.func @dynamic_batch_matmul
// CHECK-SAME: (%[[A:.*]]: memref<?x?x?xf64>, %[[B:.*]]: memref<?x?x?xf64>, %[[C:.*]]: memref<?x?x?xf64>)
// CHECK-DAG: %[[BATCHES:.*]] = memref.dim %[[A]], %c0
// CHECK: scf.for %[[N:[a-z0-9]+]] = %c0 to %[[BATCHES]]
// CHECK: vector.load %[[C]][%[[N]],
// CHECK: vector.store %{{.*}}, %[[C]][%[[N]],
// CHECK: vector.create_mask
// CHECK: vector.maskedload %[[C]][%[[N]],
// CHECK: vector.maskedstore %[[C]][%[[N]],
func.func @dynamic_batch_matmul(%a: memref<?x?x?xf64>, %b: memref<?x?x?xf64>, %c: memref<?x?x?xf64>) {
  // expected-remark @below {{passed: tiles of 5 x 2 vectors of 2}}
  linalg.generic {indexing_maps = [#a, #b, #c],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?x?xf64>, memref<?x?x?xf64>) outs(%c : memref<?x?x?xf64>) {
  ^bb0(%l: f64, %r: f64, %out: f64):
    %product = arith.mulf %l, %r : f64
    %sum = arith.addf %out, %product : f64
    linalg.yield %sum : f64
  }
  return
}

// -----

// A convolution of stride 2: the second of two vectors ends with the last element that is wanted. Processors with longer
// vectors have masks, and load all elements up to the last one that is wanted at once.

#image = affine_map<(d0, d1, d2) -> (d1 * 2 + d2)>
#weights = affine_map<(d0, d1, d2) -> (d0, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @strided_convolution
// CHECK-SAME: (%[[X:.*]]: memref<17xf32>, %[[W:.*]]: memref<3x3xf32>, %[[Y:.*]]: memref<3x8xf32>)
// CHECK: %[[FIRST:.*]] = vector.load %[[X]][%{{.*}}] : memref<17xf32>, vector<4xf32>
// CHECK: %[[SECOND:.*]] = vector.load %[[X]][%{{.*}}] : memref<17xf32>, vector<4xf32>
// CHECK: vector.shuffle %[[FIRST]], %[[SECOND]] [0, 2, 5, 7]
// CHECK: memref.load %[[W]][%{{.*}}, %{{.*}}]
// MASKS-LABEL: func.func @strided_convolution
// MASKS: %[[MASK:.*]] = vector.constant_mask [15] : vector<16xi1>
// MASKS: %[[ALL:.*]] = vector.maskedload %{{.*}}, %[[MASK]]
// MASKS: vector.deinterleave %[[ALL]]
func.func @strided_convolution(%x: memref<17xf32>, %w: memref<3x3xf32>, %y: memref<3x8xf32>) {
  // expected-remark @below {{passed: tiles of 3 x 2 vectors of 4}}
  linalg.generic {indexing_maps = [#image, #weights, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<17xf32>, memref<3x3xf32>) outs(%y : memref<3x8xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// A convolution of stride 3 loads every third element of the image, one by one or as a gather, and broadcasts the weights.

#image = affine_map<(d0, d1, d2) -> (d1 * 3 + d2)>
#weights = affine_map<(d0, d1, d2) -> (d0, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @gathering_convolution
// CHECK-SAME: (%[[X:.*]]: memref<24xf32>, %[[W:.*]]: memref<3x3xf32>, %[[Y:.*]]: memref<3x8xf32>)
// CHECK-COUNT-4: memref.load %[[X]][%{{.*}}]
// CHECK: vector.from_elements %{{.*}} : vector<4xf32>
// CHECK: memref.load %[[W]][%{{.*}}, %{{.*}}]
// MASKS-LABEL: func.func @gathering_convolution
// MASKS-SAME: (%[[X:.*]]: memref<24xf32>,
// MASKS: %[[STEPS:.*]] = arith.constant dense<[0, 3, 6, 9, 12, 15, 18, 21]> : vector<8xi32>
// MASKS: vector.gather %[[X]][%{{.*}}] [%[[STEPS]]]
func.func @gathering_convolution(%x: memref<24xf32>, %w: memref<3x3xf32>, %y: memref<3x8xf32>) {
  // expected-remark @below {{passed: tiles of 3 x 2 vectors of 4}}
  linalg.generic {indexing_maps = [#image, #weights, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<24xf32>, memref<3x3xf32>) outs(%y : memref<3x8xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// A depthwise convolution: the channel is parallel in all operands.

#image = affine_map<(d0, d1, d2) -> (d0, d1 + d2)>
#weights = affine_map<(d0, d1, d2) -> (d0, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @depthwise
// CHECK-SAME: (%[[X:.*]]: memref<6x10xf32>, %[[W:.*]]: memref<6x3xf32>, %[[Y:.*]]: memref<6x8xf32>)
// CHECK-DAG: vector.load %[[X]]
// CHECK-DAG: memref.load %[[W]][%{{.*}}, %{{.*}}]
func.func @depthwise(%x: memref<6x10xf32>, %w: memref<6x3xf32>, %y: memref<6x8xf32>) {
  // expected-remark @below {{passed: tiles of 3 x 2 vectors of 4}}
  linalg.generic {indexing_maps = [#image, #weights, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<6x10xf32>, memref<6x3xf32>) outs(%y : memref<6x8xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Elementwise: 6 elements are a vector and half of one. The multiplication and the addition are the model's own, so
// they stay two ops although the addition is to the output.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: (%[[X:.*]]: memref<6xf32>, %[[Y:.*]]: memref<6xf32>, %[[S:.*]]: f32)
// CHECK-NOT: math.fma
// CHECK: vector.store %{{.*}}, %[[Y]]
// CHECK: %[[MASK:.*]] = vector.constant_mask [2] : vector<4xi1>
// CHECK-NOT: math.fma
// CHECK: %[[REST:.*]] = vector.maskedload %[[X]][%{{.*}}], %[[MASK]]
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[REST]], %[[SCALE:.*]] : vector<4xf32>
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %[[PRODUCT]]
// CHECK: vector.maskedstore %[[Y]][%{{.*}}], %[[MASK]], %[[SUM]]
func.func @elementwise(%x: memref<6xf32>, %y: memref<6xf32>, %s: f32) {
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<6xf32>) outs(%y : memref<6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %product = arith.mulf %in, %s : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// The lanes that a mask leaves out divide by one, not by the zero that was loaded for them.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @division
// CHECK-SAME: (%[[X:.*]]: memref<3xi32>, %[[Y:.*]]: memref<3xi32>)
// CHECK-DAG: %[[ONES:.*]] = arith.constant dense<1> : vector<4xi32>
// CHECK-DAG: %[[MASK:.*]] = vector.constant_mask [3] : vector<4xi1>
// CHECK: %[[DIVISOR:.*]] = vector.maskedload %[[Y]]
// CHECK: %[[SAFE:.*]] = arith.select %[[MASK]], %[[DIVISOR]], %[[ONES]]
// CHECK: arith.divsi %{{.*}}, %[[SAFE]]
func.func @division(%x: memref<3xi32>, %y: memref<3xi32>) {
  // expected-remark @below {{passed}}
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : memref<3xi32>, memref<3xi32>) outs(%x : memref<3xi32>) {
  ^bb0(%l: i32, %r: i32, %out: i32):
    %quotient = arith.divsi %l, %r : i32
    linalg.yield %quotient : i32
  }
  return
}

// -----

// A row's sum has partial results in the lanes of a vector, which start from the sum of nothing.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @row_sum
// CHECK-SAME: (%[[X:.*]]: memref<3x6xf32>, %[[Y:.*]]: memref<3xf32>)
// CHECK: %[[NOTHING:.*]] = arith.constant dense<-0.000000e+00> : vector<4xf32>
// CHECK: scf.for %[[I:[a-z0-9]+]] = %c0 to %c3
// CHECK: vector.maskedload %[[X]]
// CHECK: arith.select
// CHECK: %[[SUM:.*]] = vector.reduction <add>
// CHECK-NEXT: %[[OLD:.*]] = memref.load %[[Y]][%[[I]]]
// CHECK-NEXT: %[[NEW:.*]] = arith.addf %[[OLD]], %[[SUM]]
// CHECK-NEXT: memref.store %[[NEW]], %[[Y]][%[[I]]]
func.func @row_sum(%x: memref<3x6xf32>, %y: memref<3xf32>) {
  // expected-remark @below {{passed: tiles of 1 x 2 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x6xf32>) outs(%y : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: the second result folds the running value of the first, which no lane has.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @largest_running_sum
// CHECK: linalg.generic
func.func @largest_running_sum(%x: memref<3x6xf32>, %y: memref<3xf32>, %z: memref<3xf32>) {
  // expected-remark @below {{missed: no parallel loop runs along the innermost dimension of the output, and the reduction is no plain fold}}
  linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x6xf32>) outs(%y, %z : memref<3xf32>, memref<3xf32>) {
  ^bb0(%in: f32, %sum: f32, %most: f32):
    %next = arith.addf %in, %sum : f32
    %more = arith.maximumf %next, %most : f32
    linalg.yield %next, %more : f32, f32
  }
  return
}

// -----

// No rows: nothing runs, and nothing divides by their number.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @no_rows
// CHECK-NEXT: return
func.func @no_rows(%a: memref<0x7xf32>, %b: memref<7x8xf32>, %c: memref<0x8xf32>) {
  // expected-remark @below {{passed}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<0x7xf32>, memref<7x8xf32>) outs(%c : memref<0x8xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Small elements: bools are loaded and stored as bytes, and what an edge is left of them is done one by one where an
// output is narrower than what is computed.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @bools
// CHECK-SAME: (%[[X:.*]]: memref<6xf32>, %[[Y:.*]]: memref<6xi1>)
// CHECK: %[[POSITIVE:.*]] = arith.cmpf ogt, %{{.*}} : vector<4xf32>
// CHECK: %[[BYTES:.*]] = builtin.unrealized_conversion_cast %[[Y]] : memref<6xi1> to memref<6xi8>
// CHECK: %[[STORED:.*]] = arith.extui %[[POSITIVE]] : vector<4xi1> to vector<4xi8>
// CHECK: vector.store %[[STORED]], %[[BYTES]][%{{.*}}] : memref<6xi8>, vector<4xi8>
// CHECK: scf.for %{{.*}} = %c4 to %c6 step %c1
// CHECK-NOT: vector.maskedstore
// CHECK: vector.store %{{.*}}, %[[BYTES]][%{{.*}}] : memref<6xi8>, vector<1xi8>
func.func @bools(%x: memref<6xf32>, %y: memref<6xi1>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<6xf32>) outs(%y : memref<6xi1>) {
  ^bb0(%in: f32, %out: i1):
    %positive = arith.cmpf ogt, %in, %zero : f32
    linalg.yield %positive : i1
  }
  return
}

// -----

// A bf16 is held as its bits, which are the upper half of an f32; it is rounded to the nearest one, or the even one.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @bfloats
// CHECK-SAME: (%[[X:.*]]: memref<8xbf16>, %[[Y:.*]]: memref<8xbf16>)
// CHECK-NOT: vector<4xbf16>
// CHECK: %[[BITS:.*]] = vector.load %{{.*}} : memref<8xi16>, vector<4xi16>
// CHECK: %[[WIDE:.*]] = arith.extui %[[BITS]] : vector<4xi16> to vector<4xi32>
// CHECK: %[[UPPER:.*]] = arith.shli %[[WIDE]]
// CHECK: %[[FLOAT:.*]] = arith.bitcast %[[UPPER]] : vector<4xi32> to vector<4xf32>
// CHECK: %[[SUM:.*]] = arith.addf %[[FLOAT]], %[[FLOAT]]
// CHECK: arith.cmpf uno, %[[SUM]], %[[SUM]]
// CHECK: %[[ROUNDED:.*]] = arith.trunci %{{.*}} : vector<4xi32> to vector<4xi16>
// CHECK: vector.store %[[ROUNDED]], %{{.*}} : memref<8xi16>, vector<4xi16>
func.func @bfloats(%x: memref<8xbf16>, %y: memref<8xbf16>) {
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<8xbf16>) outs(%y : memref<8xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %wide = arith.extf %in : bf16 to f32
    %sum = arith.addf %wide, %wide : f32
    %rounded = arith.truncf %sum : f32 to bf16
    linalg.yield %rounded : bf16
  }
  return
}

// -----

// Elements of one byte, as wide as what is computed: their edges are masked.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @bytes
// CHECK: vector.load %{{.*}} : memref<20xi8>, vector<16xi8>
// CHECK: vector.maskedstore %{{.*}} : memref<20xi8>, vector<16xi1>, vector<16xi8>
func.func @bytes(%x: memref<20xi8>) {
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 16}}
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%x : memref<20xi8>) {
  ^bb0(%out: i8):
    %twice = arith.addi %out, %out : i8
    linalg.yield %twice : i8
  }
  return
}

// -----

// Counters are vectors. What is the same for all lanes is computed once, on numbers: here the row of the table.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @counters
// CHECK-SAME: (%[[TABLE:.*]]: memref<9x8xf32>, %[[ROWS:.*]]: memref<6xi64>, %[[Y:.*]]: memref<6x8xf32>)
// CHECK: scf.for %[[I:[a-z0-9]+]] = %c0 to %c6
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c2
// CHECK: %[[AT:.*]] = memref.load %[[ROWS]][%[[I]]] : memref<6xi64>
// CHECK: %[[ROW:.*]] = arith.index_cast %[[AT]] : i64 to index
// CHECK: vector.load %[[TABLE]][%[[ROW]], %{{.*}}] : memref<9x8xf32>, vector<2xf32>
// CHECK: vector.store
func.func @counters(%table: memref<9x8xf32>, %rows: memref<6xi64>, %y: memref<6x8xf32>) {
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 2}}
  linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%rows : memref<6xi64>) outs(%y : memref<6x8xf32>) {
  ^bb0(%at: i64, %out: f32):
    %row = arith.index_cast %at : i64 to index
    %column = linalg.index 1 : index
    %element = memref.load %table[%row, %column] : memref<9x8xf32>
    linalg.yield %element : f32
  }
  return
}

// -----

// What is read backwards is loaded and reversed; elements at other places are loaded one by one: as many as there are,
// each at an index that is converted on its own; under a mask of unknown length together.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @places
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>, %[[TABLE:.*]]: memref<3x5xf32>, %[[I:.*]]: memref<7xi32>, %[[Y:.*]]: memref<8xf32>, %[[Z:.*]]: memref<7xf32>)
// CHECK: %[[LINE:.*]] = vector.load %[[X]]
// CHECK: vector.shuffle %[[LINE]], %{{.*}} [3, 2, 1, 0]
// CHECK: %[[ALL:.*]] = memref.reinterpret_cast %[[TABLE]] to offset: [0], sizes: [{{[0-9]+}}], strides: [1]
// CHECK-COUNT-4: memref.load %[[ALL]]
// CHECK: vector.from_elements
// CHECK-COUNT-3: memref.load %[[ALL]]
// CHECK: vector.from_elements %{{.*}}, %{{.*}}, %{{.*}}, %cst{{.*}} : vector<4xf32>
// CHECK: vector.maskedstore

// CHECK-LABEL: func.func @lanes
// CHECK: scf.for
// CHECK: %[[NARROW:.*]] = vector.load {{.*}} : memref<?xi32>, vector<4xi32>
// CHECK: %[[LANE:.*]] = vector.extract %[[NARROW]][0] : i32 from vector<4xi32>
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[LANE]] : i32 to index
// CHECK: memref.load %{{.*}}[%[[INDEX]]]
// CHECK: vector.from_elements
// CHECK: vector.gather %{{.*}}[%c0] [%{{.*}}], %{{.*}}, %{{.*}} : memref<{{.*}}>, vector<4xindex>
func.func @places(%x: memref<8xf32>, %table: memref<3x5xf32>, %i: memref<7xi32>, %y: memref<8xf32>, %z: memref<7xf32>) {
  %c7 = arith.constant 7 : index
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 4}}
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%y : memref<8xf32>) {
  ^bb0(%out: f32):
    %k = linalg.index 0 : index
    %back = arith.subi %c7, %k : index
    %element = memref.load %x[%back] : memref<8xf32>
    linalg.yield %element : f32
  }
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%i : memref<7xi32>) outs(%z : memref<7xf32>) {
  ^bb0(%at: i32, %out: f32):
    %row = arith.index_cast %at : i32 to index
    %element = memref.load %table[%row, %row] : memref<3x5xf32>
    linalg.yield %element : f32
  }
  return
}
func.func @lanes(%table: memref<5xf32>, %i: memref<?xi32>, %z: memref<?xf32>) {
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%i : memref<?xi32>) outs(%z : memref<?xf32>) {
  ^bb0(%at: i32, %out: f32):
    %row = arith.index_cast %at : i32 to index
    %element = memref.load %table[%row] : memref<5xf32>
    linalg.yield %element : f32
  }
  return
}

// -----

// A fold may count, too: an index is checked along a row.

#id = affine_map<(d0) -> (d0)>
#one = affine_map<(d0) -> ()>

// CHECK-LABEL: func.func @checked
// CHECK: arith.cmpi ult, %{{.*}}, %{{.*}} : vector<2xindex>
// CHECK: vector.reduction <and>
func.func @checked(%i: memref<8xi64>, %held: memref<i1>) {
  %c9 = arith.constant 9 : index
  // expected-remark @below {{passed: tiles of 1 x 4 vectors of 2}}
  linalg.generic {indexing_maps = [#id, #one], iterator_types = ["reduction"]} ins(%i : memref<8xi64>) outs(%held : memref<i1>) {
  ^bb0(%at: i64, %out: i1):
    %place = arith.index_cast %at : i64 to index
    %inside = arith.cmpi ult, %place, %c9 : index
    %both = arith.andi %out, %inside : i1
    linalg.yield %both : i1
  }
  return
}

// -----

// Must not fire, each for its reason.

#id = affine_map<(d0) -> (d0)>
#diagonal = affine_map<(d0) -> (d0, d0)>

// CHECK-LABEL: func.func @refused
// CHECK-COUNT-6: linalg.generic
func.func @refused(%h: memref<6xf8E5M2>, %f: memref<6xf32>, %d: memref<6x6xf32>,
    %strided: memref<6xf32, strided<[2]>>, %t: tensor<6xf32>) -> tensor<6xf32> {
  // expected-remark @below {{missed: elements of f8E5M2 are not vectorized}}
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%h : memref<6xf8E5M2>) {
  ^bb0(%out: f8E5M2):
    linalg.yield %out : f8E5M2
  }
  // expected-remark @below {{missed: an operand's innermost dimension is strided}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%strided : memref<6xf32, strided<[2]>>) outs(%f : memref<6xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  // expected-remark @below {{missed: a table's innermost dimension is strided}}
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%f : memref<6xf32>) {
  ^bb0(%out: f32):
    %k = linalg.index 0 : index
    %element = memref.load %strided[%k] : memref<6xf32, strided<[2]>>
    linalg.yield %element : f32
  }
  // expected-remark @below {{missed: no parallel loop runs along the innermost dimension of the output, and the reduction is no plain fold}}
  linalg.generic {indexing_maps = [#diagonal, #id], iterator_types = ["parallel"]}
      ins(%d : memref<6x6xf32>) outs(%f : memref<6xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  // expected-remark @below {{missed: arith.negf computes with a bf16}}
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%f : memref<6xf32>) {
  ^bb0(%out: f32):
    %half = arith.truncf %out : f32 to bf16
    %negative = arith.negf %half : bf16
    %back = arith.extf %negative : bf16 to f32
    linalg.yield %back : f32
  }
  // expected-remark @below {{missed: it is not on buffers}}
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%t : tensor<6xf32>) {
  ^bb0(%out: f32):
    %neg = arith.negf %out : f32
    linalg.yield %neg : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}
