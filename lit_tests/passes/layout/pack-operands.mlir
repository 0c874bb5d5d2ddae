// RUN: pipeline-opt %s --split-input-file --pack-operands="columns=4 least-bytes=64 rows=4" --canonicalize | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --pack-operands="columns=4 least-bytes=64 rows=4" --remarks-filter=pack-operands --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --pack-operands="columns=4 bf16-dots=true" --canonicalize | FileCheck %s --check-prefix=PAIRS

// A transposed copy is packed instead of transposed, once for both products that read it.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#t = affine_map<(i, j) -> (j, i)>
#id = affine_map<(i, j) -> (i, j)>

// CHECK-DAG: #[[ORDER:.*]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// CHECK-DAG: #[[PANELS:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d3, d2)>

// CHECK: func.func private @pack_0(%[[W:.*]]: tensor<8x6xf32>, %[[P:.*]]: tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
// CHECK: %[[CUT:.*]] = tensor.expand_shape %[[W]] {{\[\[}}0, 1], [2]] output_shape [2, 4, 6]
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#[[ORDER]], #
// CHECK-SAME: ins(%[[CUT]] : tensor<2x4x6xf32>) outs(%[[P]] : tensor<2x6x4xf32>)
// CHECK-NOT: func.func private @pack

// CHECK: func.func private @product(%{{.*}}: tensor<2x6xf32>, %[[B:.*]]: tensor<2x6x4xf32>, %{{.*}}: tensor<2x8xf32>)
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#{{[^,]*}}, #[[PANELS]], #
func.func private @product(%x: tensor<2x6xf32>, %w: tensor<6x8xf32>, %out: tensor<2x8xf32>) -> tensor<2x8xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{passed: reads an operand in panels of 4 columns, packed in front of it}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x6xf32>, tensor<6x8xf32>) outs(%out : tensor<2x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x8xf32>
  return %p : tensor<2x8xf32>
}

func.func private @transpose(%w: tensor<8x6xf32>, %out: tensor<6x8xf32>) -> tensor<6x8xf32> attributes {pipeline.kernel = "elementwise"} {
  %p = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<8x6xf32>) outs(%out : tensor<6x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<6x8xf32>
  return %p : tensor<6x8xf32>
}

// CHECK: func.func @main(%[[X:.*]]: tensor<2x6xf32>, %[[A:.*]]: tensor<8x6xf32>)
// CHECK-NOT: @transpose
// CHECK: %[[PACKED:.*]] = call @pack_0(%[[A]], %{{.*}}) {pipeline.origins = ["here"]}
// CHECK: call @product(%[[X]], %[[PACKED]],
// CHECK-NOT: call @pack
// CHECK: call @product(%[[X]], %[[PACKED]],
func.func @main(%x: tensor<2x6xf32>, %w: tensor<8x6xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %e = tensor.empty() : tensor<6x8xf32>
  %out = tensor.empty() : tensor<2x8xf32>
  %t = call @transpose(%w, %e) {pipeline.origins = ["here"]} : (tensor<8x6xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %r = call @product(%x, %t, %out) : (tensor<2x6xf32>, tensor<6x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %s = call @product(%x, %t, %out) : (tensor<2x6xf32>, tensor<6x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %r, %s : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// Rows of 4096 bytes conflict in the cache: packed for four rows of the other operand, in front of the loop that does
// not change it. The copy has another reader, and stays. What the loop does change is packed in it.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK: func.func private @product(%{{.*}}: tensor<4x256xf32>, %{{.*}}: tensor<256x256x4xf32>, %{{.*}}: tensor<4x1024xf32>)
func.func private @product(%x: tensor<4x256xf32>, %w: tensor<256x1024xf32>, %out: tensor<4x1024xf32>) -> tensor<4x1024xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{passed: reads an operand in panels of 4 columns, packed in front of it}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x256xf32>, tensor<256x1024xf32>) outs(%out : tensor<4x1024xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x1024xf32>
  return %p : tensor<4x1024xf32>
}

func.func private @step(%w: tensor<256x1024xf32>, %out: tensor<256x1024xf32>) -> tensor<256x1024xf32>

// CHECK: func.func @main(%[[X:.*]]: tensor<4x256xf32>, %[[W:.*]]: tensor<256x1024xf32>
// CHECK: %[[FIXED:.*]] = call @pack_0(%[[W]], %{{.*}})
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %[[W]])
// CHECK:   call @product(%[[X]], %[[FIXED]],
// CHECK:   %[[MOVING:.*]] = func.call @pack_0(%[[V]], %{{.*}})
// CHECK:   call @product(%[[X]], %[[MOVING]],
func.func @main(%x: tensor<4x256xf32>, %w: tensor<256x1024xf32>, %out: tensor<4x1024xf32>, %n: index) -> tensor<4x1024xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%o = %out, %v = %w) -> (tensor<4x1024xf32>, tensor<256x1024xf32>) {
    %p = func.call @product(%x, %w, %o) : (tensor<4x256xf32>, tensor<256x1024xf32>, tensor<4x1024xf32>) -> tensor<4x1024xf32>
    %q = func.call @product(%x, %v, %p) : (tensor<4x256xf32>, tensor<256x1024xf32>, tensor<4x1024xf32>) -> tensor<4x1024xf32>
    %e = tensor.empty() : tensor<256x1024xf32>
    %next = func.call @step(%v, %e) : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<256x1024xf32>
    scf.yield %q, %next : tensor<4x1024xf32>, tensor<256x1024xf32>
  }
  return %r#0 : tensor<4x1024xf32>
}

// -----

// Left alone: too few rows of the other operand; rows that lie close together; a size that is not known. Of a weight,
// which is pack-weights' to pack, nothing is said.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-NOT: func.func private @pack
func.func private @few(%x: tensor<3x256xf32>, %w: tensor<256x1024xf32>, %out: tensor<3x1024xf32>) -> tensor<3x1024xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{missed: its operand is not packed: 4 rows of the other operand would pay for that, it has 3}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x256xf32>, tensor<256x1024xf32>) outs(%out : tensor<3x1024xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x1024xf32>
  return %p : tensor<3x1024xf32>
}

func.func private @close(%x: tensor<9x6xf32>, %w: tensor<6x8xf32>, %out: tensor<9x8xf32>) -> tensor<9x8xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{missed: its operand is not packed: its rows lie close together, and do not conflict in the cache}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<9x6xf32>, tensor<6x8xf32>) outs(%out : tensor<9x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<9x8xf32>
  return %p : tensor<9x8xf32>
}

func.func private @unknown_rows(%x: tensor<?x256xf32>, %w: tensor<256x1024xf32>, %out: tensor<?x1024xf32>) -> tensor<?x1024xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{missed: its operand is not packed: 4 rows of the other operand would pay for that, it has an unknown number}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x256xf32>, tensor<256x1024xf32>) outs(%out : tensor<?x1024xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x1024xf32>
  return %p : tensor<?x1024xf32>
}

func.func private @weight(%x: tensor<4x256xf32>, %w: tensor<256x1024xf32>, %out: tensor<4x1024xf32>) -> tensor<4x1024xf32> attributes {pipeline.kernel = "matmul"} {
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x256xf32>, tensor<256x1024xf32>) outs(%out : tensor<4x1024xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x1024xf32>
  return %p : tensor<4x1024xf32>
}

func.func @main(%x: tensor<3x256xf32>, %w: tensor<256x1024xf32>, %a: tensor<3x1024xf32>, %y: tensor<9x6xf32>, %v: tensor<6x8xf32>, %b: tensor<9x8xf32>,
                %z: tensor<?x256xf32>, %c: tensor<?x1024xf32>, %q: tensor<4x256xf32>, %u: tensor<256x1024xf32> {pipeline.weight = "u"}, %d: tensor<4x1024xf32>)
    -> (tensor<3x1024xf32>, tensor<9x8xf32>, tensor<?x1024xf32>, tensor<4x1024xf32>) {
  %0 = call @few(%x, %w, %a) : (tensor<3x256xf32>, tensor<256x1024xf32>, tensor<3x1024xf32>) -> tensor<3x1024xf32>
  %1 = call @close(%y, %v, %b) : (tensor<9x6xf32>, tensor<6x8xf32>, tensor<9x8xf32>) -> tensor<9x8xf32>
  %2 = call @unknown_rows(%z, %w, %c) : (tensor<?x256xf32>, tensor<256x1024xf32>, tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %3 = call @weight(%q, %u, %d) : (tensor<4x256xf32>, tensor<256x1024xf32>, tensor<4x1024xf32>) -> tensor<4x1024xf32>
  return %0, %1, %2, %3 : tensor<3x1024xf32>, tensor<9x8xf32>, tensor<?x1024xf32>, tensor<4x1024xf32>
}

// -----

// Pairs of rows pay for fewer rows of the other operand: where they do not lie side by side, each use puts them together.
// The rows of an attention's results stay whole: all columns are one panel, in which a dim of one element stays.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (0, k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// PAIRS-DAG: #[[PAIRS:.*]] = affine_map<(d0, d1, d2) -> (0, d2 floordiv 2, d1 * 2 + d2 mod 2)>
// PAIRS: func.func private @scores(%{{.*}}: tensor<16x6xbf16>, %{{.*}}: tensor<1x3x16xbf16>, %{{.*}}: tensor<16x8xf32>)
// PAIRS: linalg.generic
// PAIRS-SAME: indexing_maps = [#{{[^,]*}}, #[[PAIRS]], #
func.func private @scores(%x: tensor<16x6xbf16>, %w: tensor<1x6x8xbf16>, %out: tensor<16x8xf32>) -> tensor<16x8xf32> attributes {pipeline.kernel = "attention"} {
  // expected-remark @below {{missed: its operand is not packed: it lies as it is read}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x6xbf16>, tensor<1x6x8xbf16>) outs(%out : tensor<16x8xf32>) {
  ^bb0(%i: bf16, %j: bf16, %o: f32):
    %ii = arith.extf %i : bf16 to f32
    %jj = arith.extf %j : bf16 to f32
    %m = arith.mulf %ii, %jj : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x8xf32>
  return %p : tensor<16x8xf32>
}

func.func @main(%x: tensor<16x6xbf16>, %w: tensor<1x6x8xbf16>) -> tensor<16x8xf32> {
  %out = tensor.empty() : tensor<16x8xf32>
  %r = call @scores(%x, %w, %out) : (tensor<16x6xbf16>, tensor<1x6x8xbf16>, tensor<16x8xf32>) -> tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// Must not: fifteen rows are too few.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// PAIRS: func.func private @few_rows(%{{.*}}: tensor<15x6xbf16>, %{{.*}}: tensor<6x8xbf16>,
func.func private @few_rows(%x: tensor<15x6xbf16>, %w: tensor<6x8xbf16>, %out: tensor<15x8xf32>) -> tensor<15x8xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{missed: its operand is not packed: its rows lie close together, and do not conflict in the cache}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<15x6xbf16>, tensor<6x8xbf16>) outs(%out : tensor<15x8xf32>) {
  ^bb0(%i: bf16, %j: bf16, %o: f32):
    %ii = arith.extf %i : bf16 to f32
    %jj = arith.extf %j : bf16 to f32
    %m = arith.mulf %ii, %jj : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<15x8xf32>
  return %p : tensor<15x8xf32>
}

func.func @main(%x: tensor<15x6xbf16>, %w: tensor<6x8xbf16>) -> tensor<15x8xf32> {
  %out = tensor.empty() : tensor<15x8xf32>
  %r = call @few_rows(%x, %w, %out) : (tensor<15x6xbf16>, tensor<6x8xbf16>, tensor<15x8xf32>) -> tensor<15x8xf32>
  return %r : tensor<15x8xf32>
}

// -----

// Must not fire: of one column, sums run along rows; pairs would have them jump.

#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d2, d1)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func private @one_column(
// PAIRS: func.func private @one_column(%{{.*}}: tensor<16x6xbf16>, %{{.*}}: tensor<6x1xbf16>,
func.func private @one_column(%x: tensor<16x6xbf16>, %w: tensor<6x1xbf16>, %out: tensor<16x1xf32>) -> tensor<16x1xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{missed: its operand is not packed: it has 12 bytes, fewer than 64 [pack-operands, linalg.generic]}}
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x6xbf16>, tensor<6x1xbf16>) outs(%out : tensor<16x1xf32>) {
  ^bb0(%i: bf16, %j: bf16, %o: f32):
    %ii = arith.extf %i : bf16 to f32
    %jj = arith.extf %j : bf16 to f32
    %p = arith.mulf %ii, %jj : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<16x1xf32>
  return %r : tensor<16x1xf32>
}

func.func @main(%x: tensor<16x6xbf16>, %w: tensor<6x1xbf16>) -> tensor<16x1xf32> {
  %out = tensor.empty() : tensor<16x1xf32>
  %r = call @one_column(%x, %w, %out) : (tensor<16x6xbf16>, tensor<6x1xbf16>, tensor<16x1xf32>) -> tensor<16x1xf32>
  return %r : tensor<16x1xf32>
}

// -----

// A copy of what lies in one place of a larger tensor is packed from there, in the loop that asks for the place.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#t = affine_map<(i, j) -> (j, i)>
#id = affine_map<(i, j) -> (i, j)>

// CHECK: func.func private @pack_0(%[[W:.*]]: tensor<3x8x6xf32>, %[[AT:.*]]: index, %[[P:.*]]: tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[W]][%[[AT]], 0, 0] [1, 8, 6] [1, 1, 1] : tensor<3x8x6xf32> to tensor<8x6xf32>
// CHECK: tensor.expand_shape %[[PART]]

func.func private @product(%x: tensor<2x6xf32>, %w: tensor<6x8xf32>, %out: tensor<2x8xf32>) -> tensor<2x8xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{passed: reads an operand in panels of 4 columns, packed in front of it}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x6xf32>, tensor<6x8xf32>) outs(%out : tensor<2x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x8xf32>
  return %p : tensor<2x8xf32>
}

func.func private @transpose(%w: tensor<3x8x6xf32>, %at: index, %out: tensor<6x8xf32>) -> tensor<6x8xf32> attributes {pipeline.kernel = "elementwise"} {
  %part = tensor.extract_slice %w[%at, 0, 0] [1, 8, 6] [1, 1, 1] : tensor<3x8x6xf32> to tensor<8x6xf32>
  %p = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%part : tensor<8x6xf32>) outs(%out : tensor<6x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<6x8xf32>
  return %p : tensor<6x8xf32>
}

// CHECK: func.func @main(%[[X:.*]]: tensor<2x6xf32>, %[[A:.*]]: tensor<3x8x6xf32> {pipeline.weight = "w"})
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[SUM:.*]] =
// CHECK-NOT: @transpose
// CHECK: %[[PACKED:.*]] = func.call @pack_0(%[[A]], %[[I]], %{{.*}})
// CHECK: func.call @product(%[[X]], %[[PACKED]], %[[SUM]])
func.func @main(%x: tensor<2x6xf32>, %w: tensor<3x8x6xf32> {pipeline.weight = "w"}) -> tensor<2x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<6x8xf32>
  %out = tensor.empty() : tensor<2x8xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %out) -> (tensor<2x8xf32>) {
    %t = func.call @transpose(%w, %i, %e) : (tensor<3x8x6xf32>, index, tensor<6x8xf32>) -> tensor<6x8xf32>
    %s = func.call @product(%x, %t, %sum) : (tensor<2x6xf32>, tensor<6x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    scf.yield %s : tensor<2x8xf32>
  }
  return %r : tensor<2x8xf32>
}

// -----

// A column of a tensor is no part of it in one place of the first dim; the copy stays.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#t = affine_map<(i, j) -> (j, i)>
#id = affine_map<(i, j) -> (i, j)>

func.func private @product(%x: tensor<2x6xf32>, %w: tensor<6x8xf32>, %out: tensor<2x8xf32>) -> tensor<2x8xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{missed: its operand is not packed: its rows lie close together}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x6xf32>, tensor<6x8xf32>) outs(%out : tensor<2x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x8xf32>
  return %p : tensor<2x8xf32>
}

func.func private @transpose(%w: tensor<8x8x6xf32>, %at: index, %out: tensor<6x8xf32>) -> tensor<6x8xf32> attributes {pipeline.kernel = "elementwise"} {
  %part = tensor.extract_slice %w[0, %at, 0] [8, 1, 6] [1, 1, 1] : tensor<8x8x6xf32> to tensor<8x6xf32>
  %p = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%part : tensor<8x6xf32>) outs(%out : tensor<6x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<6x8xf32>
  return %p : tensor<6x8xf32>
}

// CHECK-NOT: func.func private @pack_
// CHECK: func.func @main(%[[X:.*]]: tensor<2x6xf32>, %[[A:.*]]: tensor<8x8x6xf32>, %[[AT:.*]]: index)
// CHECK: call @transpose(%[[A]], %[[AT]],
func.func @main(%x: tensor<2x6xf32>, %w: tensor<8x8x6xf32>, %at: index) -> tensor<2x8xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %out = tensor.empty() : tensor<2x8xf32>
  %t = call @transpose(%w, %at, %e) : (tensor<8x8x6xf32>, index, tensor<6x8xf32>) -> tensor<6x8xf32>
  %s = call @product(%x, %t, %out) : (tensor<2x6xf32>, tensor<6x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}
