// RUN: pipeline-opt %s --split-input-file --pack-weights="columns=4 least-bytes=64" --canonicalize | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --pack-weights="columns=4 least-bytes=64" --remarks-filter=pack-weights --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --pack-weights="columns=4 least-bytes=64 bf16-dots=true" --canonicalize | FileCheck %s --check-prefix=PAIRS

// A weight of 8 columns becomes two panels of 4; the bias behind the product and the result are seen as panels.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>

// CHECK-DAG: #[[PACKED:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d3, d2)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[ORDER:.*]] = affine_map<(d0, d1, d2) -> (d1, d0, d2)>

// CHECK: func.func private @pack_0(%[[W:.*]]: tensor<6x8xf32>, %[[P:.*]]: tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
// CHECK-SAME: pipeline.kernel = "elementwise"
// CHECK: %[[CUT:.*]] = tensor.expand_shape %[[W]] {{\[\[}}0], [1, 2]] output_shape [6, 2, 4]
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#[[ORDER]], #
// CHECK-SAME: ins(%[[CUT]] : tensor<6x2x4xf32>) outs(%[[P]] : tensor<2x6x4xf32>)

// CHECK: func.func private @product(%[[X:.*]]: tensor<5x6xf32>, %[[WEIGHT:.*]]: tensor<2x6x4xf32>, %[[BIAS:.*]]: tensor<8xf32>, %[[RESULT:.*]]: tensor<5x8xf32>)
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#{{[^,]*}}, #[[PACKED]], #[[OUT]]]
// CHECK-SAME: ins(%[[X]], %[[WEIGHT]] : tensor<5x6xf32>, tensor<2x6x4xf32>)
// CHECK-DAG: tensor.expand_shape %[[RESULT]] {{\[\[}}0], [1, 2]] output_shape [5, 2, 4]
// CHECK-DAG: tensor.expand_shape %[[BIAS]] {{\[\[}}0, 1]] output_shape [2, 4]
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel"]
// CHECK: arith.addf
// CHECK: tensor.collapse_shape
func.func private @product(%x: tensor<5x6xf32>, %w: tensor<6x8xf32>, %bias: tensor<8xf32>, %out: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {pipeline.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @below {{passed: reads its weight in panels of 4 columns}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x6xf32>, tensor<6x8xf32>) outs(%f : tensor<5x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %bias : tensor<5x8xf32>, tensor<8xf32>) outs(%out : tensor<5x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// CHECK: func.func @prepare(%[[A:.*]]: tensor<6x8xf32> {pipeline.weight = "w"}) -> tensor<2x6x4xf32>
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x6x4xf32>
// CHECK: %[[R:.*]] = call @pack_0(%[[A]], %[[E]])
// CHECK: return %[[R]]

// CHECK: func.func @main(%{{.*}}: tensor<5x6xf32> {pipeline.argument = 0 : i64}, %{{.*}}: tensor<8xf32> {pipeline.weight = "bias"}, %[[PREPARED:.*]]: tensor<2x6x4xf32> {pipeline.prepared = 0 : i64})
// CHECK: call @product(%{{.*}}, %[[PREPARED]],
func.func @main(%x: tensor<5x6xf32> {pipeline.argument = 0 : i64}, %w: tensor<6x8xf32> {pipeline.weight = "w"}, %bias: tensor<8xf32> {pipeline.weight = "bias"}) -> tensor<5x8xf32> {
  %out = tensor.empty() : tensor<5x8xf32>
  %r = call @product(%x, %w, %bias, %out) : (tensor<5x6xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

// Heads: a panel for each; the weight comes from @prepare, through a reshape. Two calls share the packing kernel, and
// what was prepared before, and is not needed any more, goes.

#a = affine_map<(m, h, n, k) -> (m, k)>
#b = affine_map<(m, h, n, k) -> (k, h, n)>
#c = affine_map<(m, h, n, k) -> (m, h, n)>

// CHECK: func.func private @pack_0(%{{.*}}: tensor<6x2x4xf32>, %{{.*}}: tensor<2x6x4xf32>)
// CHECK-NOT: func.func private @pack
// CHECK: func.func private @heads(%{{.*}}: tensor<5x6xf32>, %{{.*}}: tensor<2x6x4xf32>, %{{.*}}: tensor<5x2x4xf32>)
func.func private @heads(%x: tensor<5x6xf32>, %w: tensor<6x2x4xf32>, %out: tensor<5x2x4xf32>) -> tensor<5x2x4xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{passed: reads its weight in panels of 4 columns}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x6xf32>, tensor<6x2x4xf32>) outs(%out : tensor<5x2x4xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x2x4xf32>
  return %p : tensor<5x2x4xf32>
}

// CHECK: func.func @prepare(%[[A:.*]]: tensor<6x8xf32> {pipeline.weight = "w"}, %[[V:.*]]: tensor<6x2x4xf32> {pipeline.weight = "v"}) -> (tensor<2x6x4xf32>, tensor<2x6x4xf32>)
// CHECK: %[[TWO:.*]] = call @pack_0(%[[V]], %{{.*}})
// CHECK: %[[N:.*]] = linalg.exp
// CHECK: %[[HEADS:.*]] = tensor.expand_shape %[[N]] {{\[\[}}0], [1, 2]]
// CHECK: %[[ONE:.*]] = call @pack_0(%[[HEADS]], %{{.*}})
// CHECK: return %[[ONE]], %[[TWO]]
func.func @prepare(%w: tensor<6x8xf32> {pipeline.weight = "w"}) -> tensor<6x8xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %n = linalg.exp ins(%w : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %n : tensor<6x8xf32>
}

// CHECK: func.func @main(%{{.*}}: tensor<5x6xf32>, %[[P:.*]]: tensor<2x6x4xf32> {pipeline.prepared = 0 : i64}, %[[Q:.*]]: tensor<2x6x4xf32> {pipeline.prepared = 1 : i64})
// CHECK: call @heads(%{{.*}}, %[[P]],
// CHECK: call @heads(%{{.*}}, %[[Q]],
func.func @main(%x: tensor<5x6xf32>, %w: tensor<6x8xf32> {pipeline.prepared = 0 : i64}, %v: tensor<6x2x4xf32> {pipeline.weight = "v"}) -> (tensor<5x2x4xf32>, tensor<5x2x4xf32>) {
  %heads = tensor.expand_shape %w [[0], [1, 2]] output_shape [6, 2, 4] : tensor<6x8xf32> into tensor<6x2x4xf32>
  %out = tensor.empty() : tensor<5x2x4xf32>
  %r = call @heads(%x, %heads, %out) : (tensor<5x6xf32>, tensor<6x2x4xf32>, tensor<5x2x4xf32>) -> tensor<5x2x4xf32>
  %s = call @heads(%x, %v, %out) : (tensor<5x6xf32>, tensor<6x2x4xf32>, tensor<5x2x4xf32>) -> tensor<5x2x4xf32>
  return %r, %s : tensor<5x2x4xf32>, tensor<5x2x4xf32>
}

// -----

// A single row.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK: func.func private @one_row(%{{.*}}: tensor<1x6xf32>, %{{.*}}: tensor<2x6x4xf32>
func.func private @one_row(%x: tensor<1x6xf32>, %w: tensor<6x8xf32>, %out: tensor<1x8xf32>) -> tensor<1x8xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{passed: reads its weight in panels of 4 columns}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x6xf32>, tensor<6x8xf32>) outs(%out : tensor<1x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8xf32>
  return %p : tensor<1x8xf32>
}

// CHECK: call @pack_0(
// CHECK: call @one_row(
func.func @main(%x: tensor<1x6xf32>, %w: tensor<6x8xf32> {pipeline.weight = "w"}) -> tensor<1x8xf32> {
  %out = tensor.empty() : tensor<1x8xf32>
  %r = call @one_row(%x, %w, %out) : (tensor<1x6xf32>, tensor<6x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  return %r : tensor<1x8xf32>
}

// -----

// Left alone: a weight that one of two calls does not hand over, or that the model writes to; columns that fill no
// panel; a small weight. Of an attention, both are data, and nothing is said.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-NOT: @pack
// CHECK: func.func private @data(%{{.*}}: tensor<5x6xf32>, %{{.*}}: tensor<6x8xf32>
func.func private @data(%x: tensor<5x6xf32>, %w: tensor<6x8xf32>, %out: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{some call hands the kernel something else than a weight of the model}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x6xf32>, tensor<6x8xf32>) outs(%out : tensor<5x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  return %p : tensor<5x8xf32>
}

// CHECK: func.func private @five_columns(%{{.*}}: tensor<5x6xf32>, %{{.*}}: tensor<6x5xf32>
func.func private @five_columns(%x: tensor<5x6xf32>, %w: tensor<6x5xf32>, %out: tensor<5x5xf32>) -> tensor<5x5xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{its 5 columns would fill too little of 2 panels of 4}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x6xf32>, tensor<6x5xf32>) outs(%out : tensor<5x5xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x5xf32>
  return %p : tensor<5x5xf32>
}

// CHECK: func.func private @small(%{{.*}}: tensor<5x1xf32>, %{{.*}}: tensor<1x8xf32>
func.func private @small(%x: tensor<5x1xf32>, %w: tensor<1x8xf32>, %out: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{it has 32 bytes, fewer than 64}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x1xf32>, tensor<1x8xf32>) outs(%out : tensor<5x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  return %p : tensor<5x8xf32>
}

// CHECK: func.func private @written(%{{.*}}: tensor<5x6xf32>, %{{.*}}: tensor<6x16xf32>
func.func private @written(%x: tensor<5x6xf32>, %w: tensor<6x16xf32>, %out: tensor<5x16xf32>) -> tensor<5x16xf32> attributes {pipeline.kernel = "matmul"} {
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x6xf32>, tensor<6x16xf32>) outs(%out : tensor<5x16xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x16xf32>
  return %p : tensor<5x16xf32>
}

func.func @main(%x: tensor<5x6xf32>, %w: tensor<6x8xf32> {pipeline.weight = "w"}, %d: tensor<6x8xf32>,
    %v: tensor<6x5xf32> {pipeline.weight = "v"}, %y: tensor<5x1xf32>, %u: tensor<1x8xf32> {pipeline.weight = "u"},
    %mutable: tensor<6x16xf32> {pipeline.weight = "m", pipeline.mutable})
    -> (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x5xf32>, tensor<5x8xf32>, tensor<5x16xf32>) {
  %out = tensor.empty() : tensor<5x8xf32>
  %nine = tensor.empty() : tensor<5x5xf32>
  %wide = tensor.empty() : tensor<5x16xf32>
  %0 = call @data(%x, %w, %out) : (tensor<5x6xf32>, tensor<6x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = call @data(%x, %d, %out) : (tensor<5x6xf32>, tensor<6x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %2 = call @five_columns(%x, %v, %nine) : (tensor<5x6xf32>, tensor<6x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
  %3 = call @small(%y, %u, %out) : (tensor<5x1xf32>, tensor<1x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %4 = call @written(%x, %mutable, %wide) : (tensor<5x6xf32>, tensor<6x16xf32>, tensor<5x16xf32>) -> tensor<5x16xf32>
  return %0, %1, %2, %3, %4 : tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x5xf32>, tensor<5x8xf32>, tensor<5x16xf32>
}

// -----

// Pairs of rows of bf16: without the option `bf16-dots` the panels are as those of any other type (tests/kernels has both).

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK: #[[PLAIN:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d3, d2)>
// CHECK: func.func private @product(%{{.*}}: tensor<5x6xbf16>, %{{.*}}: tensor<2x6x4xbf16>
// PAIRS: #[[PAIRS:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d3 floordiv 2, d2 * 2 + d3 mod 2)>
// PAIRS: func.func private @pack_0(%[[W:.*]]: tensor<6x8xbf16>, %[[P:.*]]: tensor<2x3x8xbf16>) -> tensor<2x3x8xbf16>
// PAIRS: %[[CUT:.*]] = tensor.expand_shape %[[W]] {{\[\[}}0, 1], [2, 3]] output_shape [3, 2, 2, 4] : tensor<6x8xbf16> into tensor<3x2x2x4xbf16>
// PAIRS: %[[INTO:.*]] = tensor.expand_shape %[[P]] {{\[\[}}0], [1], [2, 3]] output_shape [2, 3, 4, 2]
// PAIRS: linalg.generic
// PAIRS-SAME: ins(%[[CUT]] : tensor<3x2x2x4xbf16>) outs(%[[INTO]] : tensor<2x3x4x2xbf16>)
// PAIRS: tensor.collapse_shape
// PAIRS: func.func private @product(%[[X:.*]]: tensor<5x6xbf16>, %[[WEIGHT:.*]]: tensor<2x3x8xbf16>
// PAIRS: linalg.generic
// PAIRS-SAME: indexing_maps = [#{{[^,]*}}, #[[PAIRS]],
// PAIRS-SAME: ins(%[[X]], %[[WEIGHT]] : tensor<5x6xbf16>, tensor<2x3x8xbf16>)
func.func private @product(%x: tensor<5x6xbf16>, %w: tensor<6x8xbf16>, %out: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {pipeline.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @below {{passed: reads its weight in panels of 4 columns}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x6xbf16>, tensor<6x8xbf16>) outs(%f : tensor<5x8xf32>) {
  ^bb0(%i: bf16, %j: bf16, %o: f32):
    %ii = arith.extf %i : bf16 to f32
    %jj = arith.extf %j : bf16 to f32
    %m = arith.mulf %ii, %jj : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  return %p : tensor<5x8xf32>
}

func.func @main(%x: tensor<5x6xbf16> {pipeline.argument = 0 : i64}, %w: tensor<6x8xbf16> {pipeline.weight = "w"}) -> tensor<5x8xf32> {
  %e = tensor.empty() : tensor<5x8xf32>
  %r = func.call @product(%x, %w, %e) : (tensor<5x6xbf16>, tensor<6x8xbf16>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

// Must not make pairs: an odd number of rows; and products in f32.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// PAIRS: affine_map<(d0, d1, d2, d3) -> (d1, d3, d2)>
// PAIRS: func.func private @odd(%{{.*}}: tensor<5x7xbf16>, %{{.*}}: tensor<2x7x4xbf16>
// PAIRS: func.func private @floats(%{{.*}}: tensor<5x6xf32>, %{{.*}}: tensor<2x6x4xf32>
func.func private @odd(%x: tensor<5x7xbf16>, %w: tensor<7x8xbf16>, %out: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {pipeline.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @below {{passed: reads its weight in panels of 4 columns}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x7xbf16>, tensor<7x8xbf16>) outs(%f : tensor<5x8xf32>) {
  ^bb0(%i: bf16, %j: bf16, %o: f32):
    %ii = arith.extf %i : bf16 to f32
    %jj = arith.extf %j : bf16 to f32
    %m = arith.mulf %ii, %jj : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  return %p : tensor<5x8xf32>
}

func.func private @floats(%x: tensor<5x6xf32>, %w: tensor<6x8xf32>, %out: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {pipeline.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @below {{passed: reads its weight in panels of 4 columns}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x6xf32>, tensor<6x8xf32>) outs(%f : tensor<5x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  return %p : tensor<5x8xf32>
}

func.func @main(%x: tensor<5x7xbf16> {pipeline.argument = 0 : i64}, %w: tensor<7x8xbf16> {pipeline.weight = "w"}, %y: tensor<5x6xf32> {pipeline.argument = 1 : i64}, %v: tensor<6x8xf32> {pipeline.weight = "v"}) -> (tensor<5x8xf32>, tensor<5x8xf32>) {
  %e = tensor.empty() : tensor<5x8xf32>
  %r = func.call @odd(%x, %w, %e) : (tensor<5x7xbf16>, tensor<7x8xbf16>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %q = func.call @floats(%y, %v, %e) : (tensor<5x6xf32>, tensor<6x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %r, %q : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// Must not make pairs along a window: the loop over it would be an index of no operand.

#a = affine_map<(m, n, c, k) -> (c, m * 2 + k)>
#b = affine_map<(m, n, c, k) -> (c, k, n)>
#c = affine_map<(m, n, c, k) -> (m, n)>

// PAIRS: func.func private @window(%{{.*}}: tensor<3x12xbf16>, %{{.*}}: tensor<2x3x4x4xbf16>
func.func private @window(%x: tensor<3x12xbf16>, %w: tensor<3x4x8xbf16>, %out: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {pipeline.kernel = "conv"} {
  // expected-remark @below {{passed: reads its weight in panels of 4 columns}}
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<3x12xbf16>, tensor<3x4x8xbf16>) outs(%out : tensor<5x8xf32>) {
  ^bb0(%i: bf16, %j: bf16, %o: f32):
    %ii = arith.extf %i : bf16 to f32
    %jj = arith.extf %j : bf16 to f32
    %m = arith.mulf %ii, %jj : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  return %p : tensor<5x8xf32>
}

func.func @main(%x: tensor<3x12xbf16> {pipeline.argument = 0 : i64}, %w: tensor<3x4x8xbf16> {pipeline.weight = "w"}) -> tensor<5x8xf32> {
  %e = tensor.empty() : tensor<5x8xf32>
  %r = func.call @window(%x, %w, %e) : (tensor<3x12xbf16>, tensor<3x4x8xbf16>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

// A convolution whose channels fill no blocks, so that its weight lies in none: panels, the last one not full.

#x = affine_map<(h, n, c, k) -> (c, h + k)>
#w = affine_map<(h, n, c, k) -> (c, k, n)>
#y = affine_map<(h, n, c, k) -> (h, n)>

// CHECK: func.func private @conv(%{{.*}}: tensor<5x12xf32>, %{{.*}}: tensor<2x5x3x4xf32>
// CHECK: call @pack_0(
func.func private @conv(%x: tensor<5x12xf32>, %w: tensor<5x3x7xf32>, %out: tensor<10x7xf32>) -> tensor<10x7xf32> attributes {pipeline.kernel = "conv"} {
  // expected-remark @below {{passed: reads its weight in panels of 4 columns}}
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<5x12xf32>, tensor<5x3x7xf32>) outs(%out : tensor<10x7xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<10x7xf32>
  return %p : tensor<10x7xf32>
}

func.func @main(%x: tensor<5x12xf32> {pipeline.argument = 0 : i64}, %w: tensor<5x3x7xf32> {pipeline.weight = "w"}) -> tensor<10x7xf32> {
  %e = tensor.empty() : tensor<10x7xf32>
  %r = func.call @conv(%x, %w, %e) : (tensor<5x12xf32>, tensor<5x3x7xf32>, tensor<10x7xf32>) -> tensor<10x7xf32>
  return %r : tensor<10x7xf32>
}

// -----

// Must not fire: a weight in blocks of channels lies as it is read.

#x = affine_map<(h, b, n, c, k) -> (c, h + k)>
#w = affine_map<(h, b, n, c, k) -> (b, c, k, n)>
#y = affine_map<(h, b, n, c, k) -> (h, b, n)>

// CHECK: func.func private @blocks(%{{.*}}: tensor<5x12xf32>, %{{.*}}: tensor<2x5x3x4xf32>
// CHECK-NOT: call @pack
func.func private @blocks(%x: tensor<5x12xf32>, %w: tensor<2x5x3x4xf32>, %out: tensor<10x2x4xf32>) -> tensor<10x2x4xf32> attributes {pipeline.kernel = "conv"} {
  // expected-remark @below {{its weight is not packed: it lies as it is read}}
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<5x12xf32>, tensor<2x5x3x4xf32>) outs(%out : tensor<10x2x4xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<10x2x4xf32>
  return %p : tensor<10x2x4xf32>
}

func.func @main(%x: tensor<5x12xf32> {pipeline.argument = 0 : i64}, %w: tensor<2x5x3x4xf32> {pipeline.weight = "w"}) -> tensor<10x2x4xf32> {
  %e = tensor.empty() : tensor<10x2x4xf32>
  %r = func.call @blocks(%x, %w, %e) : (tensor<5x12xf32>, tensor<2x5x3x4xf32>, tensor<10x2x4xf32>) -> tensor<10x2x4xf32>
  return %r : tensor<10x2x4xf32>
}
