// RUN: pipeline-opt %s --split-input-file --propagate-layouts --remarks-filter=propagate-layouts -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --input-file=%t

// A convolution with three results: vectors along channels would have three elements, those along rows are full. It
// reads with channels first what the convolution before it computes with channels last.

// REMARK: passed: channels last: it saves about {{[0-9]+}} us
// REMARK: missed: channels stay first: its kernels would take {{[0-9]+}} us more, few lanes of vectors being channels

// CHECK-LABEL: func.func @few_results
// CHECK: %[[C:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<1x64x64x64xf32>)
// CHECK: %[[FIRST:.*]] = linalg.transpose ins(%[[C]] : {{.*}}) outs({{.*}}) permutation = [0, 3, 1, 2]
// CHECK: linalg.conv_2d_nchw_fchw {{.*}} ins(%[[FIRST]], %{{.*}}) outs({{.*}} : tensor<1x3x62x62xf32>)
func.func @few_results(%x: tensor<1x32x66x66xf32>, %w: tensor<64x32x3x3xf32> {pipeline.weight = "w"}, %v: tensor<3x64x3x3xf32> {pipeline.weight = "v"}) -> tensor<1x3x62x62xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x64x64xf32>) -> tensor<1x64x64x64xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x32x66x66xf32>, tensor<64x32x3x3xf32>) outs(%f : tensor<1x64x64x64xf32>) -> tensor<1x64x64x64xf32>
  %d = tensor.empty() : tensor<1x3x62x62xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<1x3x62x62xf32>) -> tensor<1x3x62x62xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%c, %v : tensor<1x64x64x64xf32>, tensor<3x64x3x3xf32>) outs(%g : tensor<1x3x62x62xf32>) -> tensor<1x3x62x62xf32>
  return %r : tensor<1x3x62x62xf32>
}

// -----

// Must not stay first: a quarter of the lanes would be empty, but to convert what it reads takes longer.

// REMARK: passed: channels last
// REMARK: passed: channels last

// CHECK-LABEL: func.func @results_that_fill_most
// CHECK: %[[C:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<1x16x16x64xf32>)
// CHECK-NOT: tensor<1x64x16x16xf32>
// CHECK: linalg.generic {{.*}} ins(%[[C]], {{.*}} outs({{.*}} : tensor<1x16x16x24xf32>)
func.func @results_that_fill_most(%x: tensor<1x32x18x18xf32>, %w: tensor<64x32x3x3xf32> {pipeline.weight = "w"}, %v: tensor<24x64x1x1xf32> {pipeline.weight = "v"}) -> tensor<1x24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x16x16xf32>) -> tensor<1x64x16x16xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x32x18x18xf32>, tensor<64x32x3x3xf32>) outs(%f : tensor<1x64x16x16xf32>) -> tensor<1x64x16x16xf32>
  %d = tensor.empty() : tensor<1x24x16x16xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<1x24x16x16xf32>) -> tensor<1x24x16x16xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%c, %v : tensor<1x64x16x16xf32>, tensor<24x64x1x1xf32>) outs(%g : tensor<1x24x16x16xf32>) -> tensor<1x24x16x16xf32>
  %s = tensor.empty() : tensor<1x24xf32>
  %h = linalg.fill ins(%zero : f32) outs(%s : tensor<1x24xf32>) -> tensor<1x24xf32>
  %sums = linalg.generic {indexing_maps = [affine_map<(n, f, i, j) -> (n, f, i, j)>, affine_map<(n, f, i, j) -> (n, f)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%r : tensor<1x24x16x16xf32>) outs(%h : tensor<1x24xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<1x24xf32>
  return %sums : tensor<1x24xf32>
}
