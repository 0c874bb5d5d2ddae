// RUN: pipeline-opt %s --propagate-layouts=always | FileCheck %s
// RUN: pipeline-opt %s --propagate-layouts --remarks-filter=propagate-layouts -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --check-prefix=COST --input-file=%t

// The result has channels last, and so has the data of the second convolution. The first one reads what it is given.

// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d1 + d5, d2 + d6)>
// CHECK-DAG: #[[LAST:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
// CHECK-DAG: #[[RESULT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[BLOCKS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 32, d4, d5, d6, d3 mod 32)>
// CHECK-DAG: #[[TAPS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
// CHECK-DAG: #[[CHANNEL:.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#channel = affine_map<(d0, d1, d2, d3) -> (d1)>
#sum = affine_map<(d0, d1, d2, d3) -> (d0, d1)>

// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: tensor<1x8x10x10xf32>, %[[W:.*]]: tensor<64x8x3x3xf32> {{.*}}, %[[V:.*]]: tensor<5x64x1x1xf32> {{.*}}, %[[B:.*]]: tensor<64xf32> {{.*}})
// CHECK: %[[SPLIT:.*]] = tensor.expand_shape %[[W]] {{.*}} into tensor<2x32x8x3x3xf32>
// CHECK: %[[PACKED:.*]] = linalg.transpose ins(%[[SPLIT]] : {{.*}}) outs({{.*}} : tensor<2x8x3x3x32xf32>) permutation = [0, 2, 3, 4, 1]
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[FIRST]], #[[BLOCKS]], #[[RESULT]]]
// CHECK-SAME: ins(%[[X]], %[[PACKED]] : {{.*}}) outs({{.*}} : tensor<1x8x8x64xf32>)
// CHECK: %[[RELU:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[CHANNEL]], #{{.*}}]
// CHECK-SAME: ins(%[[C]], %[[B]] : tensor<1x8x8x64xf32>, tensor<64xf32>)
// CHECK: %[[ORDERED:.*]] = linalg.transpose ins(%[[V]] : {{.*}}) outs({{.*}} : tensor<1x1x64x5xf32>) permutation = [2, 3, 1, 0]
// CHECK: %[[D:.*]] = linalg.generic {indexing_maps = [#[[LAST]], #[[TAPS]], #[[RESULT]]]
// CHECK-SAME: ins(%[[RELU]], %[[ORDERED]] : {{.*}}) outs({{.*}} : tensor<1x8x8x5xf32>)
// CHECK: %[[OUT:.*]] = linalg.transpose ins(%[[D]] : {{.*}}) outs({{.*}} : tensor<1x5x8x8xf32>) permutation = [0, 3, 1, 2]
// CHECK: return %[[OUT]]
func.func @chain(%x: tensor<1x8x10x10xf32>, %w: tensor<64x8x3x3xf32> {pipeline.weight = "w"}, %v: tensor<5x64x1x1xf32> {pipeline.weight = "v"}, %b: tensor<64xf32> {pipeline.weight = "b"}) -> tensor<1x5x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64x8x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x10x10xf32>, tensor<64x8x3x3xf32>) outs(%start : tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32>
  %relu = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c, %b : tensor<1x64x8x8xf32>, tensor<64xf32>) outs(%empty : tensor<1x64x8x8xf32>) {
  ^bb0(%in: f32, %shift: f32, %out: f32):
    %sum = arith.addf %in, %shift : f32
    %max = arith.maximumf %sum, %zero : f32
    linalg.yield %max : f32
  } -> tensor<1x64x8x8xf32>
  %small = tensor.empty() : tensor<1x5x8x8xf32>
  %begin = linalg.fill ins(%zero : f32) outs(%small : tensor<1x5x8x8xf32>) -> tensor<1x5x8x8xf32>
  %d = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%relu, %v : tensor<1x64x8x8xf32>, tensor<5x64x1x1xf32>) outs(%begin : tensor<1x5x8x8xf32>) -> tensor<1x5x8x8xf32>
  return %d : tensor<1x5x8x8xf32>
}

// Pads, depthwise convolutions, pools and concatenations; a reduction reads the result as it lies.

// CHECK-LABEL: func.func @windows
// CHECK-SAME: (%[[X:.*]]: tensor<1x4x6x7xf32>, %[[W:.*]]: tensor<4x3x3xf32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] : {{.*}}) outs({{.*}} : tensor<1x6x7x4xf32>) permutation = [0, 2, 3, 1]
// CHECK: %[[P:.*]] = tensor.pad %[[T]] low[0, 1, 2, 0] high[0, 1, 0, 0]
// CHECK: tensor<1x6x7x4xf32> to tensor<1x8x9x4xf32>
// CHECK: %[[TAPS:.*]] = linalg.transpose ins(%[[W]] : {{.*}}) outs({{.*}} : tensor<3x3x4xf32>) permutation = [1, 2, 0]
// CHECK: %[[C:.*]] = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : {{.*}}, strides = dense<1> : {{.*}}} ins(%[[P]], %[[TAPS]] : {{.*}}) outs({{.*}} : tensor<1x6x7x4xf32>)
// CHECK: %[[M:.*]] = linalg.pooling_nhwc_max {dilations = dense<1> : {{.*}}, strides = dense<2> : {{.*}}} ins(%[[C]], {{.*}}) outs({{.*}} : tensor<1x3x3x4xf32>)
// CHECK: %[[J:.*]] = tensor.concat dim(3) %[[M]], %[[M]] : {{.*}} -> tensor<1x3x3x8xf32>
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%[[J]] : tensor<1x3x3x8xf32>)
func.func @windows(%x: tensor<1x4x6x7xf32>, %w: tensor<4x3x3xf32> {pipeline.weight = "w"}) -> tensor<1x8xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 2] high[0, 0, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x4x6x7xf32> to tensor<1x4x8x9xf32>
  %e = tensor.empty() : tensor<1x4x6x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x6x7xf32>) -> tensor<1x4x6x7xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %w : tensor<1x4x8x9xf32>, tensor<4x3x3xf32>) outs(%f : tensor<1x4x6x7xf32>) -> tensor<1x4x6x7xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %g = tensor.empty() : tensor<1x4x3x3xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %m = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%c, %window : tensor<1x4x6x7xf32>, tensor<2x2xf32>) outs(%h : tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %j = tensor.concat dim(1) %m, %m : (tensor<1x4x3x3xf32>, tensor<1x4x3x3xf32>) -> tensor<1x8x3x3xf32>
  %k = tensor.empty() : tensor<1x8xf32>
  %l = linalg.fill ins(%zero : f32) outs(%k : tensor<1x8xf32>) -> tensor<1x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #sum], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%j : tensor<1x8x3x3xf32>) outs(%l : tensor<1x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<1x8xf32>
  return %sum : tensor<1x8xf32>
}

// Must not fire: the weight is data.

// CHECK-LABEL: func.func @weight_is_data
// CHECK: linalg.conv_2d_nchw_fchw
func.func @weight_is_data(%x: tensor<1x64x8x8xf32>, %w: tensor<64x64x1x1xf32>) -> tensor<1x64x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64x8x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x64x8x8xf32>, tensor<64x64x1x1xf32>) outs(%start : tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32>
  return %c : tensor<1x64x8x8xf32>
}

// Must not fire: elementwise ops alone gain nothing.

// CHECK-LABEL: func.func @elementwise
// CHECK-NOT: linalg.transpose
func.func @elementwise(%x: tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32> {
  %empty = tensor.empty() : tensor<1x64x8x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x64x8x8xf32>) outs(%empty : tensor<1x64x8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %in : f32
    linalg.yield %s : f32
  } -> tensor<1x64x8x8xf32>
  return %r : tensor<1x64x8x8xf32>
}

// Must not fire by itself: a small sum over one channel saves less than the conversion of its result takes.

// REMARK: missed: channels stay first: it saves about 0 us, and conversions take
// CHECK-LABEL: func.func @too_little
// COST-LABEL: func.func @too_little
// COST: linalg.conv_2d_nchw_fchw
func.func @too_little(%x: tensor<1x1x64x64xf32>, %w: tensor<8x1x1x1xf32> {pipeline.weight = "w"}) -> tensor<1x8x64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x8x64x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x64x64xf32>) -> tensor<1x8x64x64xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x1x64x64xf32>, tensor<8x1x1x1xf32>) outs(%start : tensor<1x8x64x64xf32>) -> tensor<1x8x64x64xf32>
  return %c : tensor<1x8x64x64xf32>
}

// What is transposed from channels innermost is not converted: that saves the transpose, as before a Mamba's convolution.

// COST-LABEL: func.func @from_lines
// COST: linalg.depthwise_conv_2d_nhwc_hwc
func.func @from_lines(%x: tensor<1x128x64xf32>, %w: tensor<64x1x4xf32> {pipeline.weight = "w"}) -> tensor<1x64x1x125xf32> {
  %turned = tensor.empty() : tensor<1x64x128xf32>
  %line = linalg.transpose ins(%x : tensor<1x128x64xf32>) outs(%turned : tensor<1x64x128xf32>) permutation = [0, 2, 1]
  %image = tensor.expand_shape %line [[0], [1], [2, 3]] output_shape [1, 64, 1, 128] : tensor<1x64x128xf32> into tensor<1x64x1x128xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64x1x125xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x1x125xf32>) -> tensor<1x64x1x125xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%image, %w : tensor<1x64x1x128xf32>, tensor<64x1x4xf32>) outs(%start : tensor<1x64x1x125xf32>) -> tensor<1x64x1x125xf32>
  return %c : tensor<1x64x1x125xf32>
}

// Must not fire: the transpose is there for something else, too; and channels of one that is none are not innermost.

// COST-LABEL: func.func @from_lines_that_are_read
// COST: linalg.depthwise_conv_2d_nchw_chw
func.func @from_lines_that_are_read(%x: tensor<1x128x64xf32>, %w: tensor<64x1x4xf32> {pipeline.weight = "w"}) -> (tensor<1x64x1x125xf32>, tensor<1x64x128xf32>) {
  %turned = tensor.empty() : tensor<1x64x128xf32>
  %line = linalg.transpose ins(%x : tensor<1x128x64xf32>) outs(%turned : tensor<1x64x128xf32>) permutation = [0, 2, 1]
  %image = tensor.expand_shape %line [[0], [1], [2, 3]] output_shape [1, 64, 1, 128] : tensor<1x64x128xf32> into tensor<1x64x1x128xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64x1x125xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x1x125xf32>) -> tensor<1x64x1x125xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%image, %w : tensor<1x64x1x128xf32>, tensor<64x1x4xf32>) outs(%start : tensor<1x64x1x125xf32>) -> tensor<1x64x1x125xf32>
  return %c, %line : tensor<1x64x1x125xf32>, tensor<1x64x128xf32>
}

// COST-LABEL: func.func @from_other_lines
// COST: linalg.depthwise_conv_2d_nchw_chw
func.func @from_other_lines(%x: tensor<64x1x128xf32>, %w: tensor<64x1x4xf32> {pipeline.weight = "w"}) -> tensor<1x64x1x125xf32> {
  %turned = tensor.empty() : tensor<1x64x128xf32>
  %line = linalg.transpose ins(%x : tensor<64x1x128xf32>) outs(%turned : tensor<1x64x128xf32>) permutation = [1, 0, 2]
  %image = tensor.expand_shape %line [[0], [1], [2, 3]] output_shape [1, 64, 1, 128] : tensor<1x64x128xf32> into tensor<1x64x1x128xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64x1x125xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x1x125xf32>) -> tensor<1x64x1x125xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%image, %w : tensor<1x64x1x128xf32>, tensor<64x1x4xf32>) outs(%start : tensor<1x64x1x125xf32>) -> tensor<1x64x1x125xf32>
  return %c : tensor<1x64x1x125xf32>
}

// Data that zeros are put between keeps its channels innermost.

// CHECK-LABEL: func.func @spread
// CHECK: %[[C:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<1x4x5x32xf32>)
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} -> tensor<1x9x13x32xf32>
// CHECK: %[[D:.*]] = tensor.insert_slice %[[C]] into %[[Z]][0, 1, 2, 0] [1, 4, 5, 32] [1, 2, 2, 1] : tensor<1x4x5x32xf32> into tensor<1x9x13x32xf32>
// CHECK: linalg.generic {indexing_maps = [#[[LAST]], #{{.*}}, #[[RESULT]]]{{.*}} ins(%[[D]], %{{.*}} : {{.*}})
func.func @spread(%x: tensor<1x8x4x5xf32>, %w: tensor<32x8x1x1xf32> {pipeline.weight = "w"}, %v: tensor<32x32x2x2xf32> {pipeline.weight = "v"}) -> tensor<1x32x8x12xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x4x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x4x5xf32>) -> tensor<1x32x4x5xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x4x5xf32>, tensor<32x8x1x1xf32>) outs(%start : tensor<1x32x4x5xf32>) -> tensor<1x32x4x5xf32>
  %e = tensor.empty() : tensor<1x32x9x13xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x9x13xf32>) -> tensor<1x32x9x13xf32>
  %d = tensor.insert_slice %c into %z[0, 0, 1, 2] [1, 32, 4, 5] [1, 1, 2, 2] : tensor<1x32x4x5xf32> into tensor<1x32x9x13xf32>
  %large = tensor.empty() : tensor<1x32x8x12xf32>
  %begin = linalg.fill ins(%zero : f32) outs(%large : tensor<1x32x8x12xf32>) -> tensor<1x32x8x12xf32>
  %f = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%d, %v : tensor<1x32x9x13xf32>, tensor<32x32x2x2xf32>) outs(%begin : tensor<1x32x8x12xf32>) -> tensor<1x32x8x12xf32>
  return %f : tensor<1x32x8x12xf32>
}

// The size of what is put between zeros may be known at run time only.

// CHECK-LABEL: func.func @spread_batch
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 2, 0] [%{{.*}}, 4, 5, 32] [1, 1, 2, 1] : tensor<?x4x5x32xf32> into tensor<?x4x13x32xf32>
func.func @spread_batch(%x: tensor<?x8x4x5xf32>, %w: tensor<32x8x1x1xf32> {pipeline.weight = "w"}) -> tensor<?x32x4x13xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8x4x5xf32>
  %empty = tensor.empty(%n) : tensor<?x32x4x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x32x4x5xf32>) -> tensor<?x32x4x5xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<?x8x4x5xf32>, tensor<32x8x1x1xf32>) outs(%start : tensor<?x32x4x5xf32>) -> tensor<?x32x4x5xf32>
  %e = tensor.empty(%n) : tensor<?x32x4x13xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32x4x13xf32>) -> tensor<?x32x4x13xf32>
  %d = tensor.insert_slice %c into %z[0, 0, 0, 2] [%n, 32, 4, 5] [1, 1, 1, 2] : tensor<?x32x4x5xf32> into tensor<?x32x4x13xf32>
  return %d : tensor<?x32x4x13xf32>
}

// Must not fire for what is put into another tensor: that keeps its layout.

// CHECK-LABEL: func.func @inserted
// CHECK: %[[T:.*]] = linalg.transpose {{.*}} permutation = [0, 3, 1, 2]
// CHECK: tensor.insert_slice %[[T]] into %{{.*}}[0, 0, 1, 2] [1, 32, 4, 5] [1, 1, 2, 2] : tensor<1x32x4x5xf32> into tensor<1x32x9x13xf32>
func.func @inserted(%x: tensor<1x8x4x5xf32>, %w: tensor<32x8x1x1xf32> {pipeline.weight = "w"}, %z: tensor<1x32x9x13xf32>) -> tensor<1x32x9x13xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x4x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x4x5xf32>) -> tensor<1x32x4x5xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x4x5xf32>, tensor<32x8x1x1xf32>) outs(%start : tensor<1x32x4x5xf32>) -> tensor<1x32x4x5xf32>
  %d = tensor.insert_slice %c into %z[0, 0, 1, 2] [1, 32, 4, 5] [1, 1, 2, 2] : tensor<1x32x4x5xf32> into tensor<1x32x9x13xf32>
  return %d : tensor<1x32x9x13xf32>
}

// Parts of an image have its layout, and so has an image that is put together from parts.

// CHECK-LABEL: func.func @parts
// CHECK: %[[C:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<1x4x6x32xf32>)
// CHECK: %[[A:.*]] = tensor.extract_slice %[[C]][0, 0, 0, 0] [1, 4, 2, 32] [1, 1, 1, 1] : tensor<1x4x6x32xf32> to tensor<1x4x2x32xf32>
// CHECK: %[[B:.*]] = tensor.extract_slice %[[C]][0, 0, 2, 8] [1, 4, 4, 16] [1, 1, 1, 1] : tensor<1x4x6x32xf32> to tensor<1x4x4x16xf32>
// CHECK: %[[E:.*]] = tensor.empty() : tensor<1x4x8x32xf32>
// CHECK: %[[F:.*]] = tensor.insert_slice %[[A]] into %[[E]][0, 0, 0, 0] [1, 4, 2, 32] [1, 1, 3, 1]
// CHECK: tensor.insert_slice %[[B]] into %[[F]][0, 0, 4, 16] [1, 4, 4, 16] [1, 1, 1, 1]
func.func @parts(%x: tensor<1x8x4x6xf32>, %w: tensor<32x8x1x1xf32> {pipeline.weight = "w"}) -> tensor<1x32x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x4x6xf32>) -> tensor<1x32x4x6xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x4x6xf32>, tensor<32x8x1x1xf32>) outs(%start : tensor<1x32x4x6xf32>) -> tensor<1x32x4x6xf32>
  %a = tensor.extract_slice %c[0, 0, 0, 0] [1, 32, 4, 2] [1, 1, 1, 1] : tensor<1x32x4x6xf32> to tensor<1x32x4x2xf32>
  %b = tensor.extract_slice %c[0, 8, 0, 2] [1, 16, 4, 4] [1, 1, 1, 1] : tensor<1x32x4x6xf32> to tensor<1x16x4x4xf32>
  %e = tensor.empty() : tensor<1x32x4x8xf32>
  %f = tensor.insert_slice %a into %e[0, 0, 0, 0] [1, 32, 4, 2] [1, 1, 1, 3] : tensor<1x32x4x2xf32> into tensor<1x32x4x8xf32>
  %g = tensor.insert_slice %b into %f[0, 16, 0, 4] [1, 16, 4, 4] [1, 1, 1, 1] : tensor<1x16x4x4xf32> into tensor<1x32x4x8xf32>
  return %g : tensor<1x32x4x8xf32>
}
