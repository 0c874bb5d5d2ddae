// RUN: pipeline-opt %s --split-input-file --fold-pads-into-kernels | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --fold-pads-into-kernels --remarks-filter=fold-pads-into-kernels --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --fold-pads-into-kernels=masked-bits=32 | FileCheck %s --check-prefix=WORDS

// A depthwise convolution pads what it reads itself; the kernel that filled the border is gone.

// CHECK-NOT: @fill_0
// CHECK: func.func private @conv(%[[X:.*]]: tensor<1x4x6x20xf32>, %{{.*}}: tensor<4x3x3xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[EMPTY:.*]] = tensor.empty() : tensor<1x4x8x22xf32>
// CHECK: %[[FILLED:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]]
// CHECK: %[[PADDED:.*]] = tensor.insert_slice %[[X]] into %[[FILLED]][0, 0, 1, 1] [1, 4, 6, 20] [1, 1, 1, 1]
// CHECK: linalg.depthwise_conv_2d_nchw_chw
// CHECK-SAME: ins(%[[PADDED]],
func.func private @fill_0(%out: tensor<1x4x8x22xf32>) -> tensor<1x4x8x22xf32> attributes {pipeline.kernel = "elementwise"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<1x4x8x22xf32>) -> tensor<1x4x8x22xf32>
  return %f : tensor<1x4x8x22xf32>
}
func.func private @conv(%x: tensor<1x4x8x22xf32>, %w: tensor<4x3x3xf32>, %out: tensor<1x4x6x20xf32>) -> tensor<1x4x6x20xf32> attributes {pipeline.kernel = "conv"} {
  %r = linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : tensor<1x4x8x22xf32>, tensor<4x3x3xf32>) outs(%out : tensor<1x4x6x20xf32>) -> tensor<1x4x6x20xf32>
  return %r : tensor<1x4x6x20xf32>
}

// CHECK: func.func @main(%[[A:.*]]: tensor<1x4x6x20xf32>, %[[W:.*]]: tensor<4x3x3xf32>)
// CHECK-NOT: tensor.insert_slice
// CHECK: call @conv(%[[A]], %[[W]],
func.func @main(%x: tensor<1x4x6x20xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x6x20xf32> {
  %e = tensor.empty() : tensor<1x4x8x22xf32>
  %f = call @fill_0(%e) : (tensor<1x4x8x22xf32>) -> tensor<1x4x8x22xf32>
  %p = tensor.insert_slice %x into %f[0, 0, 1, 1] [1, 4, 6, 20] [1, 1, 1, 1] : tensor<1x4x6x20xf32> into tensor<1x4x8x22xf32>
  %out = tensor.empty() : tensor<1x4x6x20xf32>
  // expected-remark @below {{passed: pads its operand 0 itself}}
  %r = call @conv(%p, %w, %out) : (tensor<1x4x8x22xf32>, tensor<4x3x3xf32>, tensor<1x4x6x20xf32>) -> tensor<1x4x6x20xf32>
  return %r : tensor<1x4x6x20xf32>
}

// -----

// Must not fire: two calls of a kernel that pad in different ways.

// CHECK: func.func private @pool(%{{.*}}: tensor<1x4x8x22xf32>
func.func private @pool(%x: tensor<1x4x8x22xf32>, %w: tensor<3x3xf32>, %out: tensor<1x4x6x20xf32>) -> tensor<1x4x6x20xf32> attributes {pipeline.kernel = "pooling"} {
  %r = linalg.pooling_nchw_max ins(%x, %w : tensor<1x4x8x22xf32>, tensor<3x3xf32>) outs(%out : tensor<1x4x6x20xf32>) -> tensor<1x4x6x20xf32>
  return %r : tensor<1x4x6x20xf32>
}
func.func @main(%x: tensor<1x4x6x20xf32>, %w: tensor<3x3xf32>) -> (tensor<1x4x6x20xf32>, tensor<1x4x6x20xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x8x22xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x8x22xf32>) -> tensor<1x4x8x22xf32>
  %p = tensor.insert_slice %x into %f[0, 0, 1, 1] [1, 4, 6, 20] [1, 1, 1, 1] : tensor<1x4x6x20xf32> into tensor<1x4x8x22xf32>
  %q = tensor.insert_slice %x into %f[0, 0, 2, 1] [1, 4, 6, 20] [1, 1, 1, 1] : tensor<1x4x6x20xf32> into tensor<1x4x8x22xf32>
  %out = tensor.empty() : tensor<1x4x6x20xf32>
  // expected-remark @below {{missed: reads a padded copy of its operand 0: its calls pad in different ways}}
  %r = call @pool(%p, %w, %out) : (tensor<1x4x8x22xf32>, tensor<3x3xf32>, tensor<1x4x6x20xf32>) -> tensor<1x4x6x20xf32>
  %s = call @pool(%q, %w, %out) : (tensor<1x4x8x22xf32>, tensor<3x3xf32>, tensor<1x4x6x20xf32>) -> tensor<1x4x6x20xf32>
  return %r, %s : tensor<1x4x6x20xf32>, tensor<1x4x6x20xf32>
}

// -----

// Must not fire: a convolution that sums over channels, too, and vectors that move in steps of two.

// CHECK: func.func private @conv(%{{.*}}: tensor<1x4x8x22xf32>
func.func private @conv(%x: tensor<1x4x8x22xf32>, %w: tensor<2x4x3x3xf32>, %out: tensor<1x2x6x20xf32>) -> tensor<1x2x6x20xf32> attributes {pipeline.kernel = "conv"} {
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x4x8x22xf32>, tensor<2x4x3x3xf32>) outs(%out : tensor<1x2x6x20xf32>) -> tensor<1x2x6x20xf32>
  return %r : tensor<1x2x6x20xf32>
}
// CHECK: func.func private @strided(%{{.*}}: tensor<1x4x8x22xf32>
func.func private @strided(%x: tensor<1x4x8x22xf32>, %w: tensor<4x2x2xf32>, %out: tensor<1x4x4x11xf32>) -> tensor<1x4x4x11xf32> attributes {pipeline.kernel = "conv"} {
  %r = linalg.depthwise_conv_2d_nchw_chw {strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<1x4x8x22xf32>, tensor<4x2x2xf32>) outs(%out : tensor<1x4x4x11xf32>) -> tensor<1x4x4x11xf32>
  return %r : tensor<1x4x4x11xf32>
}
func.func @main(%x: tensor<1x4x6x20xf32>, %w: tensor<2x4x3x3xf32>, %v: tensor<4x2x2xf32>) -> (tensor<1x2x6x20xf32>, tensor<1x4x4x11xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x8x22xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x8x22xf32>) -> tensor<1x4x8x22xf32>
  %p = tensor.insert_slice %x into %f[0, 0, 1, 1] [1, 4, 6, 20] [1, 1, 1, 1] : tensor<1x4x6x20xf32> into tensor<1x4x8x22xf32>
  %out = tensor.empty() : tensor<1x2x6x20xf32>
  // expected-remark @below {{linalg.conv_2d_nchw_fchw sums over more than windows}}
  %r = call @conv(%p, %w, %out) : (tensor<1x4x8x22xf32>, tensor<2x4x3x3xf32>, tensor<1x2x6x20xf32>) -> tensor<1x2x6x20xf32>
  %half = tensor.empty() : tensor<1x4x4x11xf32>
  // expected-remark @below {{its vectors cannot be loaded under masks}}
  %s = call @strided(%p, %v, %half) : (tensor<1x4x8x22xf32>, tensor<4x2x2xf32>, tensor<1x4x4x11xf32>) -> tensor<1x4x4x11xf32>
  return %r, %s : tensor<1x2x6x20xf32>, tensor<1x4x4x11xf32>
}

// -----

// Bytes, where these are loaded under masks.

#x = affine_map<(n, h, w, c, r, s) -> (n, h + r, w + s, c)>
#t = affine_map<(n, h, w, c, r, s) -> (r, s, c)>
#y = affine_map<(n, h, w, c, r, s) -> (n, h, w, c)>

// CHECK: func.func private @bytes(%{{.*}}: tensor<1x6x6x20xi8>
// WORDS: func.func private @bytes(%{{.*}}: tensor<1x8x8x20xi8>
func.func private @bytes(%x: tensor<1x8x8x20xi8>, %w: tensor<3x3x20xi8>, %out: tensor<1x6x6x20xi32>) -> tensor<1x6x6x20xi32> attributes {pipeline.kernel = "conv"} {
  %r = linalg.generic {indexing_maps = [#x, #t, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x8x8x20xi8>, tensor<3x3x20xi8>) outs(%out : tensor<1x6x6x20xi32>) {
  ^bb0(%a: i8, %b: i8, %o: i32):
    %l = arith.extui %a : i8 to i32
    %m = arith.extsi %b : i8 to i32
    %p = arith.muli %l, %m : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<1x6x6x20xi32>
  return %r : tensor<1x6x6x20xi32>
}
func.func @main(%x: tensor<1x6x6x20xi8>, %w: tensor<3x3x20xi8>) -> tensor<1x6x6x20xi32> {
  %zero = arith.constant 7 : i8
  %e = tensor.empty() : tensor<1x8x8x20xi8>
  %f = linalg.fill ins(%zero : i8) outs(%e : tensor<1x8x8x20xi8>) -> tensor<1x8x8x20xi8>
  %p = tensor.insert_slice %x into %f[0, 1, 1, 0] [1, 6, 6, 20] [1, 1, 1, 1] : tensor<1x6x6x20xi8> into tensor<1x8x8x20xi8>
  %out = tensor.empty() : tensor<1x6x6x20xi32>
  // expected-remark @below {{passed: pads its operand 0 itself}}
  %r = call @bytes(%p, %w, %out) : (tensor<1x8x8x20xi8>, tensor<3x3x20xi8>, tensor<1x6x6x20xi32>) -> tensor<1x6x6x20xi32>
  return %r : tensor<1x6x6x20xi32>
}

// -----

// A pool in steps of two folds whole rows before it picks columns: it goes by a border that changes no maximum.

// CHECK: func.func private @strided_pool(%[[X:.*]]: tensor<1x4x16x40xf32>
// CHECK: tensor.insert_slice %[[X]] into %{{.*}}[0, 0, 1, 1] [1, 4, 16, 40] [1, 1, 1, 1]
func.func private @strided_pool(%x: tensor<1x4x18x42xf32>, %w: tensor<3x3xf32>, %out: tensor<1x4x8x20xf32>) -> tensor<1x4x8x20xf32> attributes {pipeline.kernel = "pooling"} {
  %r = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x4x18x42xf32>, tensor<3x3xf32>) outs(%out : tensor<1x4x8x20xf32>) -> tensor<1x4x8x20xf32>
  return %r : tensor<1x4x8x20xf32>
}
func.func @main(%x: tensor<1x4x16x40xf32>) -> tensor<1x4x8x20xf32> {
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x4x18x42xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<1x4x18x42xf32>) -> tensor<1x4x18x42xf32>
  %p = tensor.insert_slice %x into %f[0, 0, 1, 1] [1, 4, 16, 40] [1, 1, 1, 1] : tensor<1x4x16x40xf32> into tensor<1x4x18x42xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %out = tensor.empty() : tensor<1x4x8x20xf32>
  // expected-remark @below {{passed: pads its operand 0 itself}}
  %r = call @strided_pool(%p, %w, %out) : (tensor<1x4x18x42xf32>, tensor<3x3xf32>, tensor<1x4x8x20xf32>) -> tensor<1x4x8x20xf32>
  return %r : tensor<1x4x8x20xf32>
}

// -----

// Must not fire: a border of zeros may be the largest of its windows.

// CHECK: func.func private @strided_pool(%{{.*}}: tensor<1x4x18x42xf32>
func.func private @strided_pool(%x: tensor<1x4x18x42xf32>, %w: tensor<3x3xf32>, %out: tensor<1x4x8x20xf32>) -> tensor<1x4x8x20xf32> attributes {pipeline.kernel = "pooling"} {
  %r = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x4x18x42xf32>, tensor<3x3xf32>) outs(%out : tensor<1x4x8x20xf32>) -> tensor<1x4x8x20xf32>
  return %r : tensor<1x4x8x20xf32>
}
func.func @main(%x: tensor<1x4x16x40xf32>) -> tensor<1x4x8x20xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x18x42xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x18x42xf32>) -> tensor<1x4x18x42xf32>
  %p = tensor.insert_slice %x into %f[0, 0, 1, 1] [1, 4, 16, 40] [1, 1, 1, 1] : tensor<1x4x16x40xf32> into tensor<1x4x18x42xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %out = tensor.empty() : tensor<1x4x8x20xf32>
  // expected-remark @below {{missed: reads a padded copy of its operand 0: its vectors cannot be loaded under masks}}
  %r = call @strided_pool(%p, %w, %out) : (tensor<1x4x18x42xf32>, tensor<3x3xf32>, tensor<1x4x8x20xf32>) -> tensor<1x4x8x20xf32>
  return %r : tensor<1x4x8x20xf32>
}
