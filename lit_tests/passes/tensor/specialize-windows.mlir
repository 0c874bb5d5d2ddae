// RUN: pipeline-opt %s --specialize-windows --split-input-file | FileCheck %s

// A convolution with its loops in an order of its own.

#x = affine_map<(f, n, c, i, j, h, w) -> (n, c, h + i, w + j)>
#k = affine_map<(f, n, c, i, j, h, w) -> (f, c, i, j)>
#y = affine_map<(f, n, c, i, j, h, w) -> (n, f, h, w)>

// CHECK-LABEL: func.func @conv
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8x8xf32>, %[[W:.*]]: tensor<4x3x3x3xf32>, %[[Y:.*]]: tensor<2x4x6x6xf32>)
// CHECK: %[[C:.*]] = linalg.conv_2d_nchw_fchw
// CHECK-SAME: ins(%[[X]], %[[W]] : tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) outs(%[[Y]] : tensor<2x4x6x6xf32>)
// CHECK: return %[[C]]
func.func @conv(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %y: tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32> {
  %0 = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "reduction",
      "reduction", "reduction", "parallel", "parallel"]}
      ins(%x, %w : tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) outs(%y : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %out, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<2x4x6x6xf32>
  return %0 : tensor<2x4x6x6xf32>
}

// -----

// Groups of one channel each: a depthwise convolution, with strides.

#x = affine_map<(n, g, f, h, w, c, i, j) -> (n, g, c, h * 2 + i, w * 2 + j)>
#k = affine_map<(n, g, f, h, w, c, i, j) -> (g, f, c, i, j)>
#y = affine_map<(n, g, f, h, w, c, i, j) -> (n, g, f, h, w)>

// CHECK-LABEL: func.func @depthwise
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x1x9x9xf32>, %[[W:.*]]: tensor<4x1x1x3x3xf32>, %[[Y:.*]]: tensor<2x4x1x4x4xf32>)
// CHECK-DAG: %[[X1:.*]] = tensor.collapse_shape %[[X]] {{.*}} into tensor<2x4x9x9xf32>
// CHECK-DAG: %[[W1:.*]] = tensor.collapse_shape %[[W]] {{.*}} into tensor<4x3x3xf32>
// CHECK-DAG: %[[Y1:.*]] = tensor.collapse_shape %[[Y]] {{.*}} into tensor<2x4x4x4xf32>
// CHECK: %[[C:.*]] = linalg.depthwise_conv_2d_nchw_chw
// CHECK-SAME: strides = dense<2>
// CHECK-SAME: ins(%[[X1]], %[[W1]] : {{.*}}) outs(%[[Y1]] :
// CHECK: tensor.expand_shape %[[C]] {{.*}} into tensor<2x4x1x4x4xf32>
func.func @depthwise(%x: tensor<2x4x1x9x9xf32>, %w: tensor<4x1x1x3x3xf32>, %y: tensor<2x4x1x4x4xf32>)
    -> tensor<2x4x1x4x4xf32> {
  %0 = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel",
      "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x4x1x9x9xf32>, tensor<4x1x1x3x3xf32>) outs(%y : tensor<2x4x1x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %out, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<2x4x1x4x4xf32>
  return %0 : tensor<2x4x1x4x4xf32>
}

// -----

// A pool over channels that lie innermost.

#x = affine_map<(n, h, w, c, i, j) -> (n, h * 2 + i, w * 2 + j, c)>
#k = affine_map<(n, h, w, c, i, j) -> (i, j)>
#y = affine_map<(n, h, w, c, i, j) -> (n, h, w, c)>

// CHECK-LABEL: func.func @pool
// CHECK: linalg.pooling_nhwc_max
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @pool(%x: tensor<2x8x8x3xf32>, %window: tensor<2x2xf32>, %y: tensor<2x4x4x3xf32>) -> tensor<2x4x4x3xf32> {
  %0 = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel",
      "reduction", "reduction"]}
      ins(%x, %window : tensor<2x8x8x3xf32>, tensor<2x2xf32>) outs(%y : tensor<2x4x4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.maximumf %out, %a : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x4x3xf32>
  return %0 : tensor<2x4x4x3xf32>
}

// -----

// Must not fire: the body does more than a convolution; no window slides; the body reads a number from outside of it.

#x = affine_map<(n, f, h, c, i) -> (n, c, h + i)>
#k = affine_map<(n, f, h, c, i) -> (f, c, i)>
#y = affine_map<(n, f, h, c, i) -> (n, f, h)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: linalg.generic
// CHECK: return
func.func @others(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>, %y: tensor<2x4x6xf32>, %a: tensor<4x8xf32>,
    %b: tensor<8x6xf32>, %ab: tensor<4x6xf32>, %number: f32)
    -> (tensor<2x4x6xf32>, tensor<4x6xf32>, tensor<2x4x6xf32>) {
  %0 = linalg.generic {indexing_maps = [#x, #k, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x3x8xf32>, tensor<4x3x3xf32>) outs(%y : tensor<2x4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %1 = arith.subf %p, %q : f32
    %2 = math.absf %1 : f32
    %3 = arith.addf %out, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<2x4x6xf32>
  %4 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%ab : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %5 = arith.mulf %p, %q : f32
    %6 = arith.addf %out, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<4x6xf32>
  %7 = linalg.generic {indexing_maps = [#x, #k, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x3x8xf32>, tensor<4x3x3xf32>) outs(%y : tensor<2x4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %8 = arith.mulf %p, %number : f32
    %9 = arith.addf %out, %8 : f32
    linalg.yield %9 : f32
  } -> tensor<2x4x6xf32>
  return %0, %4, %7 : tensor<2x4x6xf32>, tensor<4x6xf32>, tensor<2x4x6xf32>
}
