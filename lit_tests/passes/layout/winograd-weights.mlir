// RUN: pipeline-opt %s --winograd-weights | FileCheck %s
// RUN: pipeline-opt %s --winograd-weights=results=4 | FileCheck %s --check-prefix=FOUR

#data = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
#weight = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 32, d4, d5, d6, d3 mod 32)>
#result = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
#strided = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 * 2 + d4, d2 * 2 + d5, d6)>

// The weight is transformed; the body still says what is computed, and does not read the new form.

// CHECK-DAG: #[[POINTS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 32, 0, d6, d3 mod 32)>
// CHECK-LABEL: func.func @conv
// CHECK-SAME: (%[[X:.*]]: tensor<1x30x30x64xf32>, %[[W:.*]]: tensor<2x3x3x64x32xf32>
// CHECK: %[[G:.*]] = arith.constant dense<{{.*}}> : tensor<4x3xf32>
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[G]], %[[G]], %[[W]] : {{.*}}) outs({{.*}} : tensor<2x4x4x64x32xf32>)
// CHECK: %[[U:.*]] = tensor.collapse_shape %[[T]] {{.*}} into tensor<2x16x64x32xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #[[POINTS]], #{{.*}}]
// CHECK-SAME: ins(%[[X]], %[[W]], %[[U]] : {{.*}}) outs({{.*}}) attrs = {pipeline.winograd = 2 : i64}
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK-NEXT: arith.addf %[[OUT]], %[[P]]
// FOUR-LABEL: func.func @conv
// FOUR: tensor<2x36x64x32xf32>
// FOUR: pipeline.winograd = 4
func.func @conv(%x: tensor<1x30x30x64xf32>, %w: tensor<2x3x3x64x32xf32> {pipeline.weight = "w"}) -> tensor<1x28x28x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x28x28x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  %c = linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x30x30x64xf32>, tensor<2x3x3x64x32xf32>) outs(%start : tensor<1x28x28x64xf32>) {
  ^bb0(%in: f32, %tap: f32, %out: f32):
    %product = arith.mulf %in, %tap : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  } -> tensor<1x28x28x64xf32>
  return %c : tensor<1x28x28x64xf32>
}

// Must not fire: a stride of 2.

// CHECK-LABEL: func.func @strided
// CHECK-NOT: pipeline.winograd
func.func @strided(%x: tensor<1x57x57x64xf32>, %w: tensor<2x3x3x64x32xf32> {pipeline.weight = "w"}) -> tensor<1x28x28x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x28x28x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  %c = linalg.generic {indexing_maps = [#strided, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x57x57x64xf32>, tensor<2x3x3x64x32xf32>) outs(%start : tensor<1x28x28x64xf32>) {
  ^bb0(%in: f32, %tap: f32, %out: f32):
    %product = arith.mulf %in, %tap : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  } -> tensor<1x28x28x64xf32>
  return %c : tensor<1x28x28x64xf32>
}

// Must not fire: with f64 a vector has half as many elements, and twice as much has to be moved.

// CHECK-LABEL: func.func @double
// CHECK-NOT: pipeline.winograd
func.func @double(%x: tensor<1x30x30x64xf64>, %w: tensor<2x3x3x64x32xf64> {pipeline.weight = "w"}) -> tensor<1x28x28x64xf64> {
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<1x28x28x64xf64>
  %start = linalg.fill ins(%zero : f64) outs(%empty : tensor<1x28x28x64xf64>) -> tensor<1x28x28x64xf64>
  %c = linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x30x30x64xf64>, tensor<2x3x3x64x32xf64>) outs(%start : tensor<1x28x28x64xf64>) {
  ^bb0(%in: f64, %tap: f64, %out: f64):
    %product = arith.mulf %in, %tap : f64
    %sum = arith.addf %out, %product : f64
    linalg.yield %sum : f64
  } -> tensor<1x28x28x64xf64>
  return %c : tensor<1x28x28x64xf64>
}

// Must not fire: the weight is data.

// CHECK-LABEL: func.func @weight_is_data
// CHECK-NOT: pipeline.winograd
func.func @weight_is_data(%x: tensor<1x30x30x64xf32>, %w: tensor<2x3x3x64x32xf32>) -> tensor<1x28x28x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x28x28x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  %c = linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x30x30x64xf32>, tensor<2x3x3x64x32xf32>) outs(%start : tensor<1x28x28x64xf32>) {
  ^bb0(%in: f32, %tap: f32, %out: f32):
    %product = arith.mulf %in, %tap : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  } -> tensor<1x28x28x64xf32>
  return %c : tensor<1x28x28x64xf32>
}

// Must not fire: one tile of results is not worth transforming a weight of 9 MB for.

// CHECK-LABEL: func.func @one_tile
// CHECK-NOT: pipeline.winograd
func.func @one_tile(%x: tensor<1x4x4x512xf32>, %w: tensor<16x3x3x512x32xf32> {pipeline.weight = "w"}) -> tensor<1x2x2x512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x2x2x512xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x2x2x512xf32>) -> tensor<1x2x2x512xf32>
  %c = linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x4x4x512xf32>, tensor<16x3x3x512x32xf32>) outs(%start : tensor<1x2x2x512xf32>) {
  ^bb0(%in: f32, %tap: f32, %out: f32):
    %product = arith.mulf %in, %tap : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  } -> tensor<1x2x2x512xf32>
  return %c : tensor<1x2x2x512xf32>
}
