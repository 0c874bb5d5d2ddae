// RUN: pipeline-opt %s --compute-channels-last=always | FileCheck %s
// RUN: pipeline-opt %s --compute-channels-last --remarks-filter=compute-channels-last -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --check-prefix=COST --input-file=%t

// The weight is transposed, the data stay as they are, and the bias is added to the result as it lies.

// CHECK-DAG: #[[DATA:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d2 * 2 + d6, d3 + d7 * 3)>
// CHECK-DAG: #[[TAPS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d5, d6, d7, d4)>
// CHECK-DAG: #[[RESULT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>
// CHECK-DAG: #[[READ:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4, d2)>

#id = affine_map<(n, g, f, h, w) -> (n, g, f, h, w)>
#channel = affine_map<(n, g, f, h, w) -> (g, f)>

// CHECK-LABEL: func.func @groups
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4x11x11xf32>, %[[W:.*]]: tensor<3x24x4x3x3xf32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[W]] : {{.*}}) outs({{.*}} : tensor<3x4x3x3x24xf32>) permutation = [0, 2, 3, 4, 1]
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[DATA]], #[[TAPS]], #[[RESULT]]]
// CHECK-SAME: ins(%[[X]], %[[T]] : {{.*}}) outs({{.*}} : tensor<2x3x5x5x24xf32>)
// CHECK: linalg.generic {indexing_maps = [#[[READ]], #
// CHECK-SAME: ins(%[[C]],
// CHECK-SAME: outs({{.*}} : tensor<2x3x24x5x5xf32>)
// COST-LABEL: func.func @groups
// COST-NOT: linalg.conv
// REMARK: passed: computes channels last
func.func @groups(%x: tensor<2x3x4x11x11xf32>, %w: tensor<3x24x4x3x3xf32> {pipeline.weight = "w"}, %b: tensor<3x24xf32> {pipeline.weight = "b"}) -> tensor<2x3x24x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x3x24x5x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3x24x5x5xf32>) -> tensor<2x3x24x5x5xf32>
  %c = linalg.conv_2d_ngchw_gfchw {dilations = dense<[1, 3]> : vector<2xi64>, strides = dense<[2, 1]> : vector<2xi64>} ins(%x, %w : tensor<2x3x4x11x11xf32>, tensor<3x24x4x3x3xf32>) outs(%start : tensor<2x3x24x5x5xf32>) -> tensor<2x3x24x5x5xf32>
  %sum = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%c, %b : tensor<2x3x24x5x5xf32>, tensor<3x24xf32>) outs(%empty : tensor<2x3x24x5x5xf32>) {
  ^bb0(%in: f32, %shift: f32, %out: f32):
    %s = arith.addf %in, %shift : f32
    linalg.yield %s : f32
  } -> tensor<2x3x24x5x5xf32>
  return %sum : tensor<2x3x24x5x5xf32>
}

// What reads it as a whole reads a transpose.

// CHECK-LABEL: func.func @volume
// CHECK: %[[C:.*]] = linalg.generic
// CHECK-SAME: outs({{.*}} : tensor<1x4x6x7x32xf32>)
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[C]] : {{.*}}) outs({{.*}} : tensor<1x32x4x6x7xf32>) permutation = [0, 4, 1, 2, 3]
// CHECK: return %[[T]]
func.func @volume(%x: tensor<1x8x6x8x9xf32>, %w: tensor<32x8x3x3x3xf32> {pipeline.weight = "w"}) -> tensor<1x32x4x6x7xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x4x6x7xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x4x6x7xf32>) -> tensor<1x32x4x6x7xf32>
  %c = linalg.conv_3d_ncdhw_fcdhw {dilations = dense<1> : vector<3xi64>, strides = dense<1> : vector<3xi64>} ins(%x, %w : tensor<1x8x6x8x9xf32>, tensor<32x8x3x3x3xf32>) outs(%start : tensor<1x32x4x6x7xf32>) -> tensor<1x32x4x6x7xf32>
  return %c : tensor<1x32x4x6x7xf32>
}

// Must not: long rows fill vectors, too, and channels are few.

// CHECK-LABEL: func.func @line
// COST-LABEL: func.func @line
// COST: linalg.conv_1d_ncw_fcw
// REMARK: missed: channels stay first: it saves about -{{[0-9]+}} us, and a transpose takes 1
func.func @line(%x: tensor<1x8x514xf32>, %w: tensor<12x8x3xf32> {pipeline.weight = "w"}) -> tensor<1x12x512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x12x512xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x12x512xf32>) -> tensor<1x12x512xf32>
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%x, %w : tensor<1x8x514xf32>, tensor<12x8x3xf32>) outs(%start : tensor<1x12x512xf32>) -> tensor<1x12x512xf32>
  return %c : tensor<1x12x512xf32>
}

// Must not: a weight that is an argument; bf16, for which there are dot products; a result that is added to; unknown sizes.

// CHECK-LABEL: func.func @must_not_fire
// CHECK: linalg.conv_1d_ncw_fcw
// CHECK: linalg.conv_1d_ncw_fcw
// CHECK: linalg.conv_1d_ncw_fcw
// CHECK: linalg.conv_1d_ncw_fcw
// REMARK: missed: channels stay first: it is not in f32
// REMARK: missed: channels stay first: it adds to what there is
// REMARK: missed: channels stay first: sizes are not known
func.func @must_not_fire(%x: tensor<1x8x9xf32>, %v: tensor<64x8x3xf32>, %h: tensor<1x8x9xbf16>, %hw: tensor<64x8x3xbf16> {pipeline.weight = "h"}, %w: tensor<64x8x3xf32> {pipeline.weight = "w"}, %y: tensor<1x64x7xf32>, %z: tensor<?x8x9xf32>, %to: tensor<?x64x7xf32>)
    -> (tensor<1x64x7xf32>, tensor<1x64x7xbf16>, tensor<1x64x7xf32>, tensor<?x64x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<1x64x7xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x7xf32>) -> tensor<1x64x7xf32>
  %halves = tensor.empty() : tensor<1x64x7xbf16>
  %begin = linalg.fill ins(%none : bf16) outs(%halves : tensor<1x64x7xbf16>) -> tensor<1x64x7xbf16>
  %a = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%x, %v : tensor<1x8x9xf32>, tensor<64x8x3xf32>) outs(%start : tensor<1x64x7xf32>) -> tensor<1x64x7xf32>
  %b = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%h, %hw : tensor<1x8x9xbf16>, tensor<64x8x3xbf16>) outs(%begin : tensor<1x64x7xbf16>) -> tensor<1x64x7xbf16>
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%x, %w : tensor<1x8x9xf32>, tensor<64x8x3xf32>) outs(%y : tensor<1x64x7xf32>) -> tensor<1x64x7xf32>
  %d = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%z, %w : tensor<?x8x9xf32>, tensor<64x8x3xf32>) outs(%to : tensor<?x64x7xf32>) -> tensor<?x64x7xf32>
  return %a, %b, %c, %d : tensor<1x64x7xf32>, tensor<1x64x7xbf16>, tensor<1x64x7xf32>, tensor<?x64x7xf32>
}
