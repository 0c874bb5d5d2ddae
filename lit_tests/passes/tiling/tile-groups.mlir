// RUN: pipeline-opt %s --split-input-file --tile-groups="scratch=64" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-groups="scratch=64" --remarks-filter=tile-groups --verify-diagnostics

// Rows of a reduction and what uses it: one loop over pairs of rows around both, and the row that is left. The exponentials
// lie where the result will be, which is computed from them element by element.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: tensor<5x7xf32>, %[[OUT:.*]]: tensor<5x7xf32>
// CHECK: %[[LOOP:.*]] = scf.for %[[I:[a-z0-9]+]] = %c0 to %c4 step %c2 iter_args(%[[T:.*]] = %[[OUT]])
// CHECK: %[[TILE:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [2, 7] [1, 1]
// CHECK: %[[PLACE:.*]] = tensor.extract_slice %[[T]][%[[I]], 0] [2, 7] [1, 1]
// CHECK: %[[EXP:.*]] = linalg.generic
// CHECK-SAME: ins(%[[TILE]] : tensor<2x7xf32>) outs(%[[PLACE]] : tensor<2x7xf32>)
// CHECK: math.exp
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[EXP]], %{{.*}} : tensor<2x7xf32>, tensor<2xf32>) outs(%[[EXP]] : tensor<2x7xf32>)
// CHECK: arith.divf
// CHECK: tensor.insert_slice %{{.*}} into %[[T]][%[[I]], 0] [2, 7] [1, 1]
// CHECK: scf.yield
// CHECK: tensor.extract_slice %[[X]][4, 0] [1, 7] [1, 1]
// CHECK: tensor.insert_slice %{{.*}} into %[[LOOP]][4, 0] [1, 7] [1, 1]
// expected-remark @below {{passed: tiles of 2 of the loops that its ops have in common}}
func.func @rows(%x: tensor<5x7xf32>, %out: tensor<5x7xf32> {bufferization.writable = true}) -> tensor<5x7xf32> attributes {pipeline.kernel = "reduction"} {
  %zero = arith.constant 0.0 : f32
  %full = tensor.empty() : tensor<5x7xf32>
  %line = tensor.empty() : tensor<5xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x7xf32>) outs(%full : tensor<5x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<5x7xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%line : tensor<5xf32>) -> tensor<5xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<5x7xf32>) outs(%fill : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<5x7xf32>, tensor<5xf32>) outs(%out : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<5x7xf32>
  return %r : tensor<5x7xf32>
}

// -----

// A result of the reduction itself: the fill comes behind the slice of the destination that it fills. Of a loop of
// unknown size, tiles and then single rows. The counter of a loop is that of the tile and what is in front of it.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @dynamic_with_index
// CHECK-SAME: (%[[X:.*]]: tensor<?x7xf32>, %[[SUM:.*]]: tensor<?xf32>, %[[OUT:.*]]: tensor<?xf32>)
// CHECK: tensor.dim %[[X]]
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: %[[PART:.*]] = tensor.extract_slice %{{.*}}[%[[I]]]
// CHECK: linalg.fill ins(%{{.*}}) outs(%[[PART]] :
// CHECK: %[[OWN:.*]] = linalg.index 0
// CHECK: arith.addi %[[OWN]], %[[I]]
// CHECK: scf.for %[[J:[a-z0-9]+]] =
// CHECK: arith.index_cast %[[J]]
// expected-remark @below {{passed: tiles of}}
func.func @dynamic_with_index(%x: tensor<?x7xf32>, %sums: tensor<?xf32>, %out: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) attributes {pipeline.kernel = "reduction"} {
  %zero = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%zero : f32) outs(%sums : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x7xf32>) outs(%fill : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %q = arith.mulf %a, %f : f32
    linalg.yield %q : f32
  } -> tensor<?xf32>
  return %sum, %r : tensor<?xf32>, tensor<?xf32>
}

// -----

// Must not fire: rows, then columns of the same values have no loop in common.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @no_common_loop
// CHECK-NOT: scf.for
// CHECK: return
// expected-remark @below {{missed: its ops have no loop in common}}
func.func @no_common_loop(%x: tensor<5x7xf32>, %rows: tensor<5xf32>, %columns: tensor<7xf32>) -> tensor<7xf32> attributes {pipeline.kernel = "reduction"} {
  %full = tensor.empty() : tensor<5x7xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x7xf32>) outs(%rows : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<5x7xf32>, tensor<5xf32>) outs(%full : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<5x7xf32>
  %r = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%scaled : tensor<5x7xf32>) outs(%columns : tensor<7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>
  return %r : tensor<7xf32>
}

// -----

// Must not fire, silently: one op, a product with its epilogue (which stays in registers), a function that is no kernel,
// and an op that takes single elements of what another one computes, which may lie in any tile.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @one_op
// CHECK-NOT: scf.for
// CHECK-LABEL: func.func @product
// CHECK-NOT: scf.for
// CHECK-LABEL: func.func @no_kernel
// CHECK-NOT: scf.for
// CHECK-LABEL: func.func @single_elements
// CHECK-NOT: scf.for
// CHECK: return
func.func @one_op(%x: tensor<5x7xf32>, %rows: tensor<5xf32>) -> tensor<5xf32> attributes {pipeline.kernel = "reduction"} {
  %zero = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%zero : f32) outs(%rows : tensor<5xf32>) -> tensor<5xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x7xf32>) outs(%fill : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  return %sum : tensor<5xf32>
}

func.func @product(%x: tensor<8x8xf32>, %out: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {pipeline.kernel = "matmul"} {
  %0 = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%out : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.exp ins(%0 : tensor<8x8xf32>) outs(%out : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

func.func @no_kernel(%x: tensor<8x8xf32>, %out: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = linalg.exp ins(%x : tensor<8x8xf32>) outs(%out : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.log ins(%0 : tensor<8x8xf32>) outs(%out : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

func.func @single_elements(%x: tensor<100xf32>, %places: tensor<100xindex>, %out: tensor<100xf32>) -> tensor<100xf32> attributes {pipeline.kernel = "elementwise"} {
  %empty = tensor.empty() : tensor<100xf32>
  %0 = linalg.exp ins(%x : tensor<100xf32>) outs(%empty : tensor<100xf32>) -> tensor<100xf32>
  %1 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%places : tensor<100xindex>) outs(%out : tensor<100xf32>) {
  ^bb0(%i: index, %o: f32):
    %e = tensor.extract %0[%i] : tensor<100xf32>
    linalg.yield %e : f32
  } -> tensor<100xf32>
  return %1 : tensor<100xf32>
}

// -----

// The parts of a concatenation are put into a tile of it; the loop along which they lie stays whole.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @concat
// CHECK-SAME: (%[[A:.*]]: tensor<4x3xf32>, %[[B:.*]]: tensor<4x5xf32>, %[[OUT:.*]]: tensor<4x8xf32>
// CHECK-DAG: %[[PART:.*]] = tensor.empty() : tensor<1x3xf32>
// CHECK-DAG: %[[WHOLE:.*]] = tensor.empty() : tensor<1x8xf32>
// CHECK: scf.for %[[I:[a-z0-9]+]] = %c0 to %c4 step %c1 iter_args(%[[T:.*]] = %[[OUT]])
// CHECK: %[[X:.*]] = tensor.extract_slice %[[A]][%[[I]], 0] [1, 3] [1, 1]
// CHECK: %[[N:.*]] = linalg.generic
// CHECK-SAME: ins(%[[X]] : tensor<1x3xf32>) outs(%[[PART]] : tensor<1x3xf32>)
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %[[N]] into %[[WHOLE]][0, 0] [1, 3] [1, 1]
// CHECK: %[[Y:.*]] = tensor.extract_slice %[[B]][%[[I]], 0] [1, 5] [1, 1]
// CHECK: %[[BOTH:.*]] = tensor.insert_slice %[[Y]] into %[[FIRST]][0, 3] [1, 5] [1, 1]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[BOTH]] : tensor<1x8xf32>)
// CHECK: tensor.insert_slice %{{.*}} into %[[T]][%[[I]], 0] [1, 8] [1, 1]
// expected-remark @below {{passed: tiles of 1 of the loops that its ops have in common}}
func.func @concat(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>, %out: tensor<4x8xf32> {bufferization.writable = true}) -> tensor<4x8xf32> attributes {pipeline.kernel = "elementwise"} {
  %ea = tensor.empty() : tensor<4x3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x3xf32>) outs(%ea : tensor<4x3xf32>) {
  ^bb0(%x: f32, %o: f32):
    %v = arith.negf %x : f32
    linalg.yield %v : f32
  } -> tensor<4x3xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = tensor.insert_slice %n into %e[0, 0] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x8xf32>
  %1 = tensor.insert_slice %b into %0[0, 3] [4, 5] [1, 1] : tensor<4x5xf32> into tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<4x8xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %v = math.exp %x : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// Sums of columns and what uses them have more scratch: each row of a tile lies elsewhere. A part is some whole vectors.

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @columns
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}}
// CHECK: tensor<4x16xf32>
// expected-remark @below {{passed: tiles of 16 of the loops that its ops have in common}}
func.func @columns(%x: tensor<4x1000xf32>, %s: tensor<1000xf32>, %out: tensor<4x1000xf32>) -> tensor<4x1000xf32> attributes {pipeline.kernel = "reduction"} {
  %full = tensor.empty() : tensor<4x1000xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x1000xf32>) outs(%full : tensor<4x1000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<4x1000xf32>
  %sums = tensor.empty() : tensor<1000xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%exp : tensor<4x1000xf32>) outs(%sums : tensor<1000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<1000xf32>
  %r = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<4x1000xf32>, tensor<1000xf32>) outs(%out : tensor<4x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<4x1000xf32>
  return %r : tensor<4x1000xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#line = affine_map<(d0) -> (d0)>

// There is no tile of what has no elements.
// CHECK-LABEL: func.func @empty
// CHECK-NOT: scf.for
// expected-remark @below {{missed: one of its loops runs no round}}
func.func @empty(%x: tensor<0x?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> attributes {pipeline.kernel = "reduction"} {
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<0x?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]}
      ins(%sum : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
