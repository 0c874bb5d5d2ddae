// RUN: pipeline-opt %s --split-input-file --form-groups | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --form-groups --remarks-filter=form-groups --verify-diagnostics

// Must not fire, and says why. A barrier between a product and its epilogue.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @barrier
// CHECK: label = "matmul"
// CHECK: fusion.barrier
// CHECK: label = "exp"
func.func @barrier(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %init: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %product = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %stopped = "fusion.barrier"(%product) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark @below {{a barrier stands between the two}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%stopped : tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %exp = math.exp %x : f32
    linalg.yield %exp : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// An op outside of the group stands between two of its ops: the sum of the product and of what tensor.pad makes of it.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @cycle
// CHECK: %[[P:.*]] = "fusion.group"
// CHECK: label = "matmul"
// CHECK: %[[PAD:.*]] = tensor.pad %[[P]]
// CHECK: "fusion.group"(%[[P]], %{{.*}})
// CHECK: label = "add"
func.func @cycle(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %init: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %product = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %padded = tensor.pad %product low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x4xf32> to tensor<5x4xf32>
  %cut = tensor.extract_slice %padded[0, 0] [4, 4] [1, 1] : tensor<5x4xf32> to tensor<4x4xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  // expected-remark @below {{an op outside of the group stands between them}}
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%product, %cut : tensor<4x4xf32>, tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
    linalg.yield %sum : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// Rows of a product's result that are broadcast have one loop more than the product.

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#inner = affine_map<(d0, d1, d2) -> (d1, d2)>

// CHECK-LABEL: func.func @broadcast
// CHECK: label = "matmul"
// CHECK: label = "exp"
func.func @broadcast(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %init: tensor<4x4xf32>) -> tensor<3x4x4xf32> {
  %product = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %empty = tensor.empty() : tensor<3x4x4xf32>
  // expected-remark @below {{its loops are not those of the anchor}}
  %r = linalg.generic {indexing_maps = [#inner, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%product : tensor<4x4xf32>) outs(%empty : tensor<3x4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %exp = math.exp %x : f32
    linalg.yield %exp : f32
  } -> tensor<3x4x4xf32>
  return %r : tensor<3x4x4xf32>
}

// -----

// What reads a product as it is and transposed would need elements of two tiles at a time.

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @two_ways
// CHECK: label = "matmul"
// CHECK: label = "add"
func.func @two_ways(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %init: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %product = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  // expected-remark @below {{they have fewer loops in common than the group has}}
  %r = linalg.generic {indexing_maps = [#id, #t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%product, %product : tensor<4x4xf32>, tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
    linalg.yield %sum : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// Sums of rows, then of columns: the second one needs all rows of the first's input. What is between them goes to the
// last one.

#id = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
#columns = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @rows_then_columns
// CHECK: label = "reduce_add"
// CHECK: label = "fused_mul_reduce_add"
func.func @rows_then_columns(%x: tensor<4x6xf32>, %row: tensor<4xf32>, %column: tensor<6xf32>) -> tensor<6xf32> {
  %sums = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x6xf32>) outs(%row : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %sum = arith.addf %out, %a : f32
    linalg.yield %sum : f32
  } -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4x6xf32>
  // expected-remark @below {{is not in a group with its producer, linalg.generic: it is in another group already}}
  %scaled = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sums : tensor<4x6xf32>, tensor<4xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %product = arith.mulf %a, %b : f32
    linalg.yield %product : f32
  } -> tensor<4x6xf32>
  // expected-remark @+2 {{reduction group of 2 ops}}
  // expected-remark @below {{passed: is in one reduction group with its producer, linalg.generic}}
  %r = linalg.generic {indexing_maps = [#id, #columns], iterator_types = ["reduction", "parallel"]}
      ins(%scaled : tensor<4x6xf32>) outs(%column : tensor<6xf32>) {
  ^bb0(%a: f32, %out: f32):
    %sum = arith.addf %out, %a : f32
    linalg.yield %sum : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}
