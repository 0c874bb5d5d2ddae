// RUN: pipeline-opt %s --split-input-file --form-groups | FileCheck %s

// Two groups must not need each other: each of two sums reads a product and what the other one's product gives. The
// first one that forms has its two ops; the other two ops form a group as well only if neither then waits for the other.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @two_groups
// CHECK: %[[P:.*]] = "fusion.group"(%{{.*}}, %{{.*}}, %{{.*}}) ({
// CHECK: label = "matmul"
// CHECK: %[[Q:.*]]:2 = "fusion.group"
// CHECK: label = "fused_matmul_add"
// CHECK: %[[BACK:.*]] = tensor.cast %[[Q]]#0
// CHECK: "fusion.group"(%[[P]], %[[BACK]])
// CHECK: label = "add"
func.func @two_groups(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %init: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %p = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %q = linalg.matmul ins(%b, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %turned = tensor.cast %p : tensor<4x4xf32> to tensor<4x4xf32>
  %back = tensor.cast %q : tensor<4x4xf32> to tensor<4x4xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %back : tensor<4x4xf32>, tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
    linalg.yield %sum : f32
  } -> tensor<4x4xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %turned : tensor<4x4xf32>, tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
    linalg.yield %sum : f32
  } -> tensor<4x4xf32>
  return %r, %s : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Groups come in an order in which each is behind what it needs: the epilogue of the first product reads the second one.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @later_operand
// CHECK: %[[Q:.*]] = "fusion.group"
// CHECK: label = "reduce_add"
// CHECK: "fusion.group"({{.*}}%[[Q]]
// CHECK: label = "fused_matmul_mul"
// CHECK-NOT: "fusion.group"
#row = affine_map<(d0, d1) -> (d0)>
func.func @later_operand(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %init: tensor<4x4xf32>, %line: tensor<4xf32>) -> tensor<4x4xf32> {
  %p = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %q = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<4x4xf32>) outs(%line : tensor<4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %sum = arith.addf %x, %out : f32
    linalg.yield %sum : f32
  } -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<4x4xf32>, tensor<4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %product = arith.mulf %x, %y : f32
    linalg.yield %product : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
