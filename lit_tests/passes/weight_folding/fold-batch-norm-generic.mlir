// RUN: pipeline-opt %s --split-input-file --split-invariants --fold-batch-norm --canonicalize --cse --mlir-print-local-scope | FileCheck %s

// A norm whose whole arithmetic is in one body, behind a matrix product: the weight is scaled, a shift is left.

#all = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>

// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[X:.*]]: tensor<5x8xf32>, %[[W:.*]]: tensor<8x6xf32>
// CHECK: math.rsqrt
// CHECK: %[[SCALED:.*]] = linalg.generic {{.*}} ins(%[[W]], %{{.*}} : tensor<8x6xf32>, tensor<6xf32>)
// CHECK: arith.mulf
// CHECK: %[[Y:.*]] = linalg.matmul ins(%[[X]], %[[SCALED]] : tensor<5x8xf32>, tensor<8x6xf32>)
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[Y]], %{{.*}} : tensor<5x6xf32>, tensor<6xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
func.func @product(%x: tensor<5x8xf32>, %w: tensor<8x6xf32> {pipeline.weight = "w"},
    %mean: tensor<6xf32> {pipeline.weight = "mean"}, %variance: tensor<6xf32> {pipeline.weight = "variance"},
    %gamma: tensor<6xf32> {pipeline.weight = "gamma"}, %beta: tensor<6xf32> {pipeline.weight = "beta"})
    -> tensor<5x6xf32> {
  %zero = arith.constant 0.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %empty = tensor.empty() : tensor<5x6xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x6xf32>) -> tensor<5x6xf32>
  %y = linalg.matmul ins(%x, %w : tensor<5x8xf32>, tensor<8x6xf32>) outs(%filled : tensor<5x6xf32>) -> tensor<5x6xf32>
  %norm = linalg.generic {indexing_maps = [#all, #column, #column, #column, #column, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%y, %mean, %variance, %gamma, %beta : tensor<5x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>,
        tensor<6xf32>) outs(%empty : tensor<5x6xf32>) {
  ^bb0(%a: f32, %m: f32, %v: f32, %g: f32, %b: f32, %out: f32):
    %0 = arith.subf %a, %m : f32
    %1 = arith.addf %v, %epsilon : f32
    %2 = math.rsqrt %1 : f32
    %3 = arith.mulf %0, %2 : f32
    %4 = arith.mulf %3, %g : f32
    %5 = arith.addf %4, %b : f32
    linalg.yield %5 : f32
  } -> tensor<5x6xf32>
  return %norm : tensor<5x6xf32>
}

// -----

// Behind a named convolution, with a ReLU in the same body, which becomes an op of its own.

#all = affine_map<(n, f, h, w) -> (n, f, h, w)>
#channel = affine_map<(n, f, h, w) -> (f)>

// CHECK-LABEL: func.func @convolution(
// CHECK: %[[Y:.*]] = linalg.conv_2d_nchw_fchw
// CHECK-NEXT: %[[SHIFTED:.*]] = linalg.generic {{.*}} ins(%[[Y]], %{{.*}} : tensor<2x6x4x5xf32>, tensor<6xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
// CHECK: linalg.generic {{.*}} ins(%[[SHIFTED]] : tensor<2x6x4x5xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.maximumf
func.func @convolution(%x: tensor<2x3x6x7xf32>, %w: tensor<6x3x3x3xf32> {pipeline.weight = "w"},
    %scale: tensor<6xf32> {pipeline.weight = "scale"}, %shift: tensor<6xf32> {pipeline.weight = "shift"})
    -> tensor<2x6x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x6x4x5xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x6x4x5xf32>) -> tensor<2x6x4x5xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x3x6x7xf32>, tensor<6x3x3x3xf32>)
      outs(%filled : tensor<2x6x4x5xf32>) -> tensor<2x6x4x5xf32>
  %norm = linalg.generic {indexing_maps = [#all, #channel, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %scale, %shift : tensor<2x6x4x5xf32>, tensor<6xf32>, tensor<6xf32>)
      outs(%empty : tensor<2x6x4x5xf32>) {
  ^bb0(%a: f32, %s: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %s : f32
    %1 = arith.addf %0, %b : f32
    %2 = arith.maximumf %1, %zero : f32
    linalg.yield %2 : f32
  } -> tensor<2x6x4x5xf32>
  return %norm : tensor<2x6x4x5xf32>
}

// -----

// Must not: the scale is no weight.

#all = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>

// CHECK-LABEL: func.func @scaled_by_data(
// CHECK-SAME: %[[X:.*]]: tensor<5x8xf32>, %[[W:.*]]: tensor<8x6xf32>
// CHECK: linalg.matmul ins(%[[X]], %[[W]] :
// CHECK: arith.mulf
func.func @scaled_by_data(%x: tensor<5x8xf32>, %w: tensor<8x6xf32> {pipeline.weight = "w"}, %scale: tensor<6xf32>)
    -> tensor<5x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5x6xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x6xf32>) -> tensor<5x6xf32>
  %y = linalg.matmul ins(%x, %w : tensor<5x8xf32>, tensor<8x6xf32>) outs(%filled : tensor<5x6xf32>) -> tensor<5x6xf32>
  %norm = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%y, %scale : tensor<5x6xf32>, tensor<6xf32>) outs(%empty : tensor<5x6xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %0 = arith.mulf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<5x6xf32>
  return %norm : tensor<5x6xf32>
}

// -----

// Must not: something else reads the product.

#all = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>

// CHECK-LABEL: func.func @read_twice(
// CHECK-SAME: %[[X:.*]]: tensor<5x8xf32>, %[[W:.*]]: tensor<8x6xf32>
// CHECK: linalg.matmul ins(%[[X]], %[[W]] :
// CHECK: arith.mulf
func.func @read_twice(%x: tensor<5x8xf32>, %w: tensor<8x6xf32> {pipeline.weight = "w"},
    %scale: tensor<6xf32> {pipeline.weight = "scale"}) -> (tensor<5x6xf32>, tensor<5x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5x6xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x6xf32>) -> tensor<5x6xf32>
  %y = linalg.matmul ins(%x, %w : tensor<5x8xf32>, tensor<8x6xf32>) outs(%filled : tensor<5x6xf32>) -> tensor<5x6xf32>
  %norm = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%y, %scale : tensor<5x6xf32>, tensor<6xf32>) outs(%empty : tensor<5x6xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %0 = arith.mulf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<5x6xf32>
  return %y, %norm : tensor<5x6xf32>, tensor<5x6xf32>
}
