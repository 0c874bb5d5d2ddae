// RUN: pipeline-opt %s --split-input-file --form-groups | FileCheck %s

// A product, its bias and a GELU: one group. The bias row is an operand; what the group hands on stays inside.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @product_bias_gelu
// CHECK-SAME: (%[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8x6xf32>, %[[BIAS:.*]]: tensor<6xf32>, %[[INIT:.*]]: tensor<4x6xf32>)
// CHECK: %[[R:.*]] = "fusion.group"(%[[A]], %[[B]], %[[INIT]], %[[BIAS]]) ({
// CHECK: linalg.matmul
// CHECK: math.erf
// CHECK: }) {kind = "matmul", label = "fused_matmul_add_gelu"}
// CHECK-NEXT: return %[[R]]
func.func @product_bias_gelu(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %bias: tensor<6xf32>, %init: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %product = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 1.41421354 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%product, %bias : tensor<4x6xf32>, tensor<6xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
    %scaled = arith.divf %sum, %root : f32
    %erf = math.erf %scaled : f32
    %shifted = arith.addf %erf, %one : f32
    %halved = arith.mulf %shifted, %half : f32
    %gelu = arith.mulf %sum, %halved : f32
    linalg.yield %gelu : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// A convolution, the scale and shift of a norm by channel, a relu: the convolution is the anchor.

#id = affine_map<(n, f, h, w) -> (n, f, h, w)>
#channel = affine_map<(n, f, h, w) -> (f)>

// CHECK-LABEL: func.func @convolution
// CHECK: "fusion.group"
// CHECK: linalg.conv_2d_nchw_fchw
// CHECK: linalg.generic
// CHECK: }) {kind = "conv", label = "fused_conv2d_mul_add_relu"}
// CHECK-NOT: "fusion.group"
func.func @convolution(%x: tensor<1x3x9x9xf32>, %w: tensor<8x3x3x3xf32>, %scale: tensor<8xf32>, %shift: tensor<8xf32>, %init: tensor<1x8x7x7xf32>) -> tensor<1x8x7x7xf32> {
  %zero = arith.constant 0.0 : f32
  %conv = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>) outs(%init : tensor<1x8x7x7xf32>) -> tensor<1x8x7x7xf32>
  %empty = tensor.empty() : tensor<1x8x7x7xf32>
  %r = linalg.generic {indexing_maps = [#id, #channel, #channel, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%conv, %scale, %shift : tensor<1x8x7x7xf32>, tensor<8xf32>, tensor<8xf32>) outs(%empty : tensor<1x8x7x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %mul = arith.mulf %a, %b : f32
    %add = arith.addf %mul, %c : f32
    %positive = arith.cmpf ugt, %add, %zero : f32
    %relu = arith.select %positive, %add, %zero : f32
    linalg.yield %relu : f32
  } -> tensor<1x8x7x7xf32>
  return %r : tensor<1x8x7x7xf32>
}

// -----

// A depthwise convolution too, with the channel last.

#id = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (c)>

// CHECK-LABEL: func.func @depthwise
// CHECK: "fusion.group"
// CHECK: linalg.depthwise_conv_2d_nhwc_hwc
// CHECK: linalg.generic
// CHECK: }) {kind = "conv", label = "fused_depthwise_conv2d_mul"}
// CHECK-NOT: "fusion.group"
func.func @depthwise(%x: tensor<1x9x9x8xf32>, %w: tensor<3x3x8xf32>, %scale: tensor<8xf32>, %init: tensor<1x7x7x8xf32>) -> tensor<1x7x7x8xf32> {
  %conv = linalg.depthwise_conv_2d_nhwc_hwc ins(%x, %w : tensor<1x9x9x8xf32>, tensor<3x3x8xf32>) outs(%init : tensor<1x7x7x8xf32>) -> tensor<1x7x7x8xf32>
  %empty = tensor.empty() : tensor<1x7x7x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%conv, %scale : tensor<1x7x7x8xf32>, tensor<8xf32>) outs(%empty : tensor<1x7x7x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %mul = arith.mulf %a, %b : f32
    linalg.yield %mul : f32
  } -> tensor<1x7x7x8xf32>
  return %r : tensor<1x7x7x8xf32>
}

// -----

// A pool and what follows it.

#id = affine_map<(n, c, h, w) -> (n, c, h, w)>

// CHECK-LABEL: func.func @pool
// CHECK: "fusion.group"
// CHECK: linalg.pooling_nchw_max
// CHECK: math.exp
// CHECK: }) {kind = "pooling", label = "fused_pool_exp"}
// CHECK-NOT: "fusion.group"
func.func @pool(%x: tensor<1x3x8x8xf32>, %window: tensor<2x2xf32>, %init: tensor<1x3x7x7xf32>) -> tensor<1x3x7x7xf32> {
  %pool = linalg.pooling_nchw_max ins(%x, %window : tensor<1x3x8x8xf32>, tensor<2x2xf32>) outs(%init : tensor<1x3x7x7xf32>) -> tensor<1x3x7x7xf32>
  %empty = tensor.empty() : tensor<1x3x7x7xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%pool : tensor<1x3x7x7xf32>) outs(%empty : tensor<1x3x7x7xf32>) {
  ^bb0(%a: f32, %out: f32):
    %exp = math.exp %a : f32
    linalg.yield %exp : f32
  } -> tensor<1x3x7x7xf32>
  return %r : tensor<1x3x7x7xf32>
}

// -----

// A residual add of another product: it goes to the last one, as an epilogue; the first one stays by itself.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @residual
// CHECK: %[[FIRST:.*]] = "fusion.group"
// CHECK: label = "matmul"
// CHECK: "fusion.group"(%[[FIRST]],
// CHECK: linalg.matmul
// CHECK: linalg.generic
// CHECK: label = "fused_matmul_add"
// CHECK-NOT: "fusion.group"
func.func @residual(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %init: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %first = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %second = linalg.matmul ins(%first, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%first, %second : tensor<4x4xf32>, tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
    linalg.yield %sum : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// A second result: what the group hands on is read outside too, so the group yields both.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @second_result
// CHECK: %[[R:.*]]:2 = "fusion.group"
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[E:.*]] = linalg.generic
// CHECK: "fusion.yield"(%[[P]], %[[E]])
// CHECK-NEXT: }) {kind = "matmul", label = "fused_matmul_exp"}
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
func.func @second_result(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %init: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %product = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%product : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %exp = math.exp %x : f32
    linalg.yield %exp : f32
  } -> tensor<4x4xf32>
  return %product, %r : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// An epilogue that reads the product transposed has its loops in another order.

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @transposing_epilogue
// CHECK: label = "fused_matmul_exp"
// CHECK-NOT: "fusion.group"
func.func @transposing_epilogue(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %init: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %product = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %empty = tensor.empty() : tensor<6x4xf32>
  %r = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%product : tensor<4x6xf32>) outs(%empty : tensor<6x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %exp = math.exp %x : f32
    linalg.yield %exp : f32
  } -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}
