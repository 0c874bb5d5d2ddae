// RUN: pipeline-opt %s --split-input-file --fuse-horizontal-contractions | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --fuse-horizontal-contractions=apart | FileCheck %s --check-prefix=APART
// RUN: pipeline-opt %s --split-input-file --fuse-horizontal-contractions --remarks-filter=fuse-horizontal-contractions --verify-diagnostics

// The halves of a gated unit, with biases: one product with the joined weight and bias.

#row = affine_map<(d0, d1) -> (d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @gated(
// CHECK-SAME: %[[X:.*]]: tensor<5x8xf32>, %[[V:[a-z0-9]+]]: tensor<8x3xf32> {{.*}}, %[[W:[a-z0-9]+]]: tensor<8x4xf32> {{.*}}, %[[A:[a-z0-9]+]]: tensor<3xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %[[WEIGHT:.*]] = tensor.concat dim(1) %[[V]], %[[W]]
// CHECK: %[[Y:.*]] = linalg.matmul ins(%[[X]], %[[WEIGHT]] : tensor<5x8xf32>, tensor<8x7xf32>)
// CHECK: %[[BIAS:.*]] = tensor.concat dim(0) %[[A]], %[[B]]
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[BIAS]] : tensor<5x7xf32>, tensor<7xf32>)
// CHECK: %[[L:.*]] = tensor.extract_slice %[[Z]][0, 0] [5, 3] [1, 1]
// CHECK: %[[R:.*]] = tensor.extract_slice %[[Z]][0, 3] [5, 4] [1, 1]
// CHECK-NOT: linalg.matmul
// CHECK: linalg.generic {{.*}} ins(%[[L]], %[[R]] :

// APART-LABEL: func.func @gated(
// APART-COUNT-1: linalg.matmul
// APART-NOT: linalg.matmul
func.func @gated(%x: tensor<5x8xf32>, %v: tensor<8x3xf32> {pipeline.weight = "v"},
    %w: tensor<8x4xf32> {pipeline.weight = "w"}, %a: tensor<3xf32> {pipeline.weight = "a"},
    %b: tensor<4xf32> {pipeline.weight = "b"}) -> tensor<5x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3xf32>
  %f = tensor.empty() : tensor<5x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<5x4xf32>) -> tensor<5x4xf32>
  // expected-remark @below {{passed: joined with 1 other products of the same data}}
  %0 = linalg.matmul ins(%x, %v : tensor<5x8xf32>, tensor<8x3xf32>) outs(%start : tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%0, %a : tensor<5x3xf32>, tensor<3xf32>) outs(%e : tensor<5x3xf32>) {
  ^bb0(%in: f32, %u: f32, %out: f32):
    %r = arith.addf %in, %u : f32
    linalg.yield %r : f32
  } -> tensor<5x3xf32>
  %2 = linalg.matmul ins(%x, %w : tensor<5x8xf32>, tensor<8x4xf32>) outs(%init : tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%2, %b : tensor<5x4xf32>, tensor<4xf32>) outs(%f : tensor<5x4xf32>) {
  ^bb0(%in: f32, %u: f32, %out: f32):
    %r = arith.addf %in, %u : f32
    linalg.yield %r : f32
  } -> tensor<5x4xf32>
  %4 = linalg.generic {indexing_maps = [#all, affine_map<(d0, d1) -> (d0, d1 + 1)>, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%1, %3 : tensor<5x3xf32>, tensor<5x4xf32>) outs(%e : tensor<5x3xf32>) {
  ^bb0(%in: f32, %u: f32, %out: f32):
    %r = arith.mulf %in, %u : f32
    linalg.yield %r : f32
  } -> tensor<5x3xf32>
  return %4 : tensor<5x3xf32>
}

// -----

// Must not fire: results that go different ways, unless they may.

// CHECK-LABEL: func.func @apart(
// CHECK-COUNT-2: linalg.matmul
// APART-LABEL: func.func @apart(
// APART: %[[Y:.*]] = linalg.matmul {{.*}} -> tensor<5x7xf32>
// APART-DAG: %[[L:.*]] = tensor.extract_slice %[[Y]][0, 0] [5, 3] [1, 1]
// APART-DAG: %[[R:.*]] = tensor.extract_slice %[[Y]][0, 3] [5, 4] [1, 1]
// APART: return %[[L]], %[[R]]
func.func @apart(%x: tensor<5x8xf32>, %v: tensor<8x3xf32> {pipeline.weight = "v"},
    %w: tensor<8x4xf32> {pipeline.weight = "w"}) -> (tensor<5x3xf32>, tensor<5x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3xf32>
  %f = tensor.empty() : tensor<5x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<5x4xf32>) -> tensor<5x4xf32>
  // expected-remark @below {{missed: not joined with 1 other products of the same data: their results go different ways}}
  %0 = linalg.matmul ins(%x, %v : tensor<5x8xf32>, tensor<8x3xf32>) outs(%start : tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<5x8xf32>, tensor<8x4xf32>) outs(%init : tensor<5x4xf32>) -> tensor<5x4xf32>
  return %0, %1 : tensor<5x3xf32>, tensor<5x4xf32>
}

// -----

// Must not fire: a weight with another use, one that is large, one that is data, other data, a sum with data, a mark.

#all = affine_map<(d0, d1) -> (d0, d1)>

// APART-LABEL: func.func @refused(
// APART-COUNT-9: linalg.matmul
func.func @refused(%x: tensor<5x8xf32>, %y: tensor<5x8xf32>, %z: tensor<2x300xf32>, %n: tensor<8x3xf32>,
    %v: tensor<8x3xf32> {pipeline.weight = "v"}, %w: tensor<8x3xf32> {pipeline.weight = "w"},
    %u: tensor<8x3xf32> {pipeline.weight = "u"}, %large: tensor<300x60xf32> {pipeline.weight = "a"},
    %larger: tensor<300x70xf32> {pipeline.weight = "b"})
    -> (tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>,
        tensor<5x3xf32>, tensor<2x60xf32>, tensor<2x70xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %e60 = tensor.empty() : tensor<2x60xf32>
  %start60 = linalg.fill ins(%zero : f32) outs(%e60 : tensor<2x60xf32>) -> tensor<2x60xf32>
  %e70 = tensor.empty() : tensor<2x70xf32>
  %start70 = linalg.fill ins(%zero : f32) outs(%e70 : tensor<2x70xf32>) -> tensor<2x70xf32>
  // expected-remark @below {{missed: not joined with 1 other products of the same data: a weight has another use, for which it would be kept twice}}
  %0 = linalg.matmul ins(%x, %v : tensor<5x8xf32>, tensor<8x3xf32>) outs(%start : tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<5x8xf32>, tensor<8x3xf32>) outs(%start : tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = linalg.matmul ins(%y, %v : tensor<5x8xf32>, tensor<8x3xf32>) outs(%start : tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = linalg.matmul ins(%x, %n : tensor<5x8xf32>, tensor<8x3xf32>) outs(%start : tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = linalg.matmul ins(%x, %u : tensor<5x8xf32>, tensor<8x3xf32>) outs(%0 : tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = linalg.matmul {pipeline.stop_fusion} ins(%x, %u : tensor<5x8xf32>, tensor<8x3xf32>) outs(%start : tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = linalg.matmul {pipeline.stop_fusion} ins(%x, %u : tensor<5x8xf32>, tensor<8x3xf32>) outs(%start : tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @below {{missed: not joined with 1 other products of the same data: their weights have 156000 bytes, more than 131072}}
  %7 = linalg.matmul ins(%z, %large : tensor<2x300xf32>, tensor<300x60xf32>) outs(%start60 : tensor<2x60xf32>) -> tensor<2x60xf32>
  %8 = linalg.matmul ins(%z, %larger : tensor<2x300xf32>, tensor<300x70xf32>) outs(%start70 : tensor<2x70xf32>) -> tensor<2x70xf32>
  return %1, %2, %3, %4, %5, %6, %0, %7, %8 : tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>,
    tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<2x60xf32>, tensor<2x70xf32>
}
