// RUN: pipeline-opt %s --split-input-file --merge-linears | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --merge-linears --remarks-filter=merge-linears --verify-diagnostics

// 3 columns by way of 8 to 2: one product of 3 by 2. The bias between goes through the second weight.

#row = affine_map<(d0, d1) -> (d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @less_work(
// CHECK: %[[SHIFT:[0-9]+]] = linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%arg3, %arg2 :
// CHECK: %[[WEIGHT:[0-9]+]] = linalg.matmul ins(%arg1, %arg3 : tensor<3x8xf32>, tensor<8x2xf32>)
// CHECK: %[[Y:[0-9]+]] = linalg.matmul ins(%arg0, %[[WEIGHT]] : tensor<5x3xf32>, tensor<3x2xf32>)
// CHECK: %[[Z:[0-9]+]] = linalg.generic {{.*}} ins(%[[Y]], %[[SHIFT]] :
// CHECK: return %[[Z]] : tensor<5x2xf32>
func.func @less_work(%x: tensor<5x3xf32>, %v: tensor<3x8xf32> {pipeline.weight = "v"},
    %b: tensor<8xf32> {pipeline.weight = "b"}, %w: tensor<8x2xf32> {pipeline.weight = "w"}) -> tensor<5x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x8xf32>
  %f = tensor.empty() : tensor<5x2xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<5x2xf32>) -> tensor<5x2xf32>
  %y = linalg.matmul ins(%x, %v : tensor<5x3xf32>, tensor<3x8xf32>) outs(%start : tensor<5x8xf32>) -> tensor<5x8xf32>
  %0 = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%y, %b : tensor<5x8xf32>, tensor<8xf32>) outs(%e : tensor<5x8xf32>) {
  ^bb0(%in: f32, %u: f32, %out: f32):
    %r = arith.addf %in, %u : f32
    linalg.yield %r : f32
  } -> tensor<5x8xf32>
  // expected-remark @below {{passed: merged with the product before: 6 multiplications a row for 40}}
  %z = linalg.matmul ins(%0, %w : tensor<5x8xf32>, tensor<8x2xf32>) outs(%init : tensor<5x2xf32>) -> tensor<5x2xf32>
  return %z : tensor<5x2xf32>
}

// -----

// Must not fire: 8 columns by way of 2 to 8 are less work in two steps.

// CHECK-LABEL: func.func @bottleneck(
// CHECK: %[[Y:[0-9]+]] = linalg.matmul ins(%arg0, %arg1 :
// CHECK: linalg.matmul ins(%[[Y]], %arg2 :
func.func @bottleneck(%x: tensor<5x8xf32>, %v: tensor<8x2xf32> {pipeline.weight = "v"},
    %w: tensor<2x8xf32> {pipeline.weight = "w"}) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x2xf32>
  %f = tensor.empty() : tensor<5x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<5x2xf32>) -> tensor<5x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = linalg.matmul ins(%x, %v : tensor<5x8xf32>, tensor<8x2xf32>) outs(%start : tensor<5x2xf32>) -> tensor<5x2xf32>
  // expected-remark @below {{missed: not merged with the product before: 8 * 8 is no less than 32}}
  %z = linalg.matmul ins(%y, %w : tensor<5x2xf32>, tensor<2x8xf32>) outs(%init : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %z : tensor<5x8xf32>
}

// -----

// Must not fire: the first product is a result, too.

// CHECK-LABEL: func.func @another_user(
// CHECK: %[[Y:[0-9]+]] = linalg.matmul ins(%arg0, %arg1 :
// CHECK: linalg.matmul ins(%[[Y]], %arg2 :
func.func @another_user(%x: tensor<5x3xf32>, %v: tensor<3x8xf32> {pipeline.weight = "v"},
    %w: tensor<8x2xf32> {pipeline.weight = "w"}) -> (tensor<5x8xf32>, tensor<5x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x8xf32>
  %f = tensor.empty() : tensor<5x2xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<5x2xf32>) -> tensor<5x2xf32>
  %y = linalg.matmul ins(%x, %v : tensor<5x3xf32>, tensor<3x8xf32>) outs(%start : tensor<5x8xf32>) -> tensor<5x8xf32>
  %z = linalg.matmul ins(%y, %w : tensor<5x8xf32>, tensor<8x2xf32>) outs(%init : tensor<5x2xf32>) -> tensor<5x2xf32>
  return %y, %z : tensor<5x8xf32>, tensor<5x2xf32>
}
