// RUN: pipeline-opt %s --split-input-file --fold-batch-norm --canonicalize --cse --mlir-print-local-scope | FileCheck %s

// What stands between a convolution and its norm: reshapes, transposes, concatenations, slices, zero padding, regions.

// A grouped convolution gives its channels as groups and channels in a group; the factor is split in the same way.

#channel = affine_map<(d0, d1, d2, d3) -> (d1)>
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func.func @grouped(
// CHECK-SAME: %[[X:[a-z0-9_]+]]: tensor<1x2x3x6x6xf32>
// CHECK-SAME: %[[W:[a-z0-9_]+]]: tensor<2x4x3x3x3xf32>
// CHECK-SAME: %[[S:[a-z0-9_]+]]: tensor<8xf32>
// CHECK: %[[C:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[F:[a-z0-9_]+]] = linalg.fill ins(%[[C]] : f32)
// CHECK: %[[EXPAND_SHAPE:[a-z0-9_]+]] = tensor.expand_shape %[[S]] [[0, 1]] output_shape [2, 4] : tensor<8xf32> into
// CHECK-SAME: tensor<2x4xf32>
// CHECK: %[[G:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3,
// CHECK-SAME: d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>,
// CHECK-SAME: affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
// CHECK-SAME: ins(%[[W]], %[[EXPAND_SHAPE]] : tensor<2x4x3x3x3xf32>, tensor<2x4xf32>)
// CHECK-NEXT: ^bb0(%[[IN:[a-z0-9_]+]]: f32, %[[IN1:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF:[a-z0-9_]+]] = arith.mulf %[[IN]], %[[IN1]] : f32
// CHECK: %[[CONV:[a-z0-9_]+]] = linalg.conv_2d_ngchw_gfchw
// CHECK-SAME: ins(%[[X]], %[[G]] : tensor<1x2x3x6x6xf32>, tensor<2x4x3x3x3xf32>)
// CHECK-SAME: outs(%[[F]] : tensor<1x2x4x4x4xf32>) -> tensor<1x2x4x4x4xf32>
// CHECK: %[[COLLAPSE_SHAPE:[a-z0-9_]+]] = tensor.collapse_shape %[[CONV]] [[0], [1, 2], [3], [4]] :
// CHECK-SAME: tensor<1x2x4x4x4xf32> into tensor<1x8x4x4xf32>
// CHECK: return %[[COLLAPSE_SHAPE]] : tensor<1x8x4x4xf32>
func.func @grouped(%x: tensor<1x2x3x6x6xf32>, %w: tensor<2x4x3x3x3xf32> {pipeline.weight = "w"},
    %s: tensor<8xf32> {pipeline.weight = "s"}) -> tensor<1x8x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x4x4xf32>) -> tensor<1x2x4x4x4xf32>
  %y = linalg.conv_2d_ngchw_gfchw ins(%x, %w : tensor<1x2x3x6x6xf32>, tensor<2x4x3x3x3xf32>)
      outs(%init : tensor<1x2x4x4x4xf32>) -> tensor<1x2x4x4x4xf32>
  %flat = tensor.collapse_shape %y [[0], [1, 2], [3], [4]] : tensor<1x2x4x4x4xf32> into tensor<1x8x4x4xf32>
  %out = tensor.empty() : tensor<1x8x4x4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%flat, %s : tensor<1x8x4x4xf32>, tensor<8xf32>) outs(%out : tensor<1x8x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %o: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<1x8x4x4xf32>
  return %0 : tensor<1x8x4x4xf32>
}

// -----

// Linear on rows of a sequence, transposed to channels first; the batch size is not known.

#channel = affine_map<(d0, d1, d2) -> (d1, 0)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: %[[X:[a-z0-9_]+]]: tensor<?x3xf32>
// CHECK-SAME: %[[X1:[a-z0-9_]+]]: index
// CHECK-SAME: %[[W:[a-z0-9_]+]]: tensor<3x4xf32>
// CHECK-SAME: %[[S:[a-z0-9_]+]]: tensor<4x1xf32>
// CHECK-SAME: %[[T:[a-z0-9_]+]]: tensor<4x1xf32>
// CHECK: %[[C:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[C1:[a-z0-9_]+]] = arith.constant 0 : index
// CHECK: %[[DIM:[a-z0-9_]+]] = tensor.dim %[[X]], %[[C1]] : tensor<?x3xf32>
// CHECK: %[[COLLAPSE_SHAPE:[a-z0-9_]+]] = tensor.collapse_shape %[[S]] [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
// CHECK: %[[G:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
// CHECK-SAME: affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: ins(%[[W]], %[[COLLAPSE_SHAPE]] : tensor<3x4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN:[a-z0-9_]+]]: f32, %[[IN1:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF:[a-z0-9_]+]] = arith.mulf %[[IN]], %[[IN1]] : f32
// CHECK: %[[F:[a-z0-9_]+]] = linalg.fill ins(%[[C]] : f32)
// CHECK: %[[COLLAPSE_SHAPE1:[a-z0-9_]+]] = tensor.collapse_shape %[[T]] [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
// CHECK: %[[MATMUL:[a-z0-9_]+]] = linalg.matmul ins(%[[X]], %[[G]] : tensor<?x3xf32>, tensor<3x4xf32>)
// CHECK-SAME: outs(%[[F]] : tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK: %[[G1:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
// CHECK-SAME: affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: ins(%[[MATMUL]], %[[COLLAPSE_SHAPE1]] : tensor<?x4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN2:[a-z0-9_]+]]: f32, %[[IN3:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[ADDF:[a-z0-9_]+]] = arith.addf %[[IN2]], %[[IN3]] : f32
// CHECK: %[[EXPAND_SHAPE:[a-z0-9_]+]] = tensor.expand_shape %[[G1]] [[0, 1], [2]] output_shape [%[[X1]], 5, 4] :
// CHECK-SAME: tensor<?x4xf32> into tensor<?x5x4xf32>
// CHECK: %[[TRANSPOSE:[a-z0-9_]+]] = linalg.transpose ins(%[[EXPAND_SHAPE]] : tensor<?x5x4xf32>)
// CHECK: return %[[TRANSPOSE]] : tensor<?x4x5xf32>
func.func @transposed(%x: tensor<?x3xf32>, %n: index, %w: tensor<3x4xf32> {pipeline.weight = "w"},
    %s: tensor<4x1xf32> {pipeline.weight = "s"}, %t: tensor<4x1xf32> {pipeline.weight = "t"}) -> tensor<?x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = arith.constant 0 : index
  %m = tensor.dim %x, %rows : tensor<?x3xf32>
  %e = tensor.empty(%m) : tensor<?x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x3xf32>, tensor<3x4xf32>) outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  %z = tensor.expand_shape %y [[0, 1], [2]] output_shape [%n, 5, 4] : tensor<?x4xf32> into tensor<?x5x4xf32>
  %out = tensor.empty(%n) : tensor<?x4x5xf32>
  %first = linalg.transpose ins(%z : tensor<?x5x4xf32>) outs(%out : tensor<?x4x5xf32>) permutation = [0, 2, 1]
  %0 = linalg.generic {indexing_maps = [#all, #channel, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%first, %s, %t : tensor<?x4x5xf32>, tensor<4x1xf32>, tensor<4x1xf32>) outs(%out : tensor<?x4x5xf32>) {
  ^bb0(%in: f32, %v: f32, %u: f32, %o: f32):
    %p = arith.mulf %in, %v : f32
    %r = arith.addf %p, %u : f32
    linalg.yield %r : f32
  } -> tensor<?x4x5xf32>
  return %0 : tensor<?x4x5xf32>
}

// -----

// A norm of the concatenation of two convolutions, cropped: each gets its part of the factor.

#channel = affine_map<(d0, d1, d2) -> (d1)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// CHECK-LABEL: func.func @concat(
// CHECK-SAME: %[[X:[a-z0-9_]+]]: tensor<1x3x6xf32>
// CHECK-SAME: %[[W:[a-z0-9_]+]]: tensor<4x3x3xf32>
// CHECK-SAME: %[[V:[a-z0-9_]+]]: tensor<2x3x3xf32>
// CHECK-SAME: %[[S:[a-z0-9_]+]]: tensor<6xf32>
// CHECK: %[[C:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[F:[a-z0-9_]+]] = linalg.fill ins(%[[C]] : f32)
// CHECK: %[[F1:[a-z0-9_]+]] = linalg.fill ins(%[[C]] : f32)
// CHECK: %[[EXTRACT_SLICE:[a-z0-9_]+]] = tensor.extract_slice %[[S]][0] [4] [1] : tensor<6xf32> to tensor<4xf32>
// CHECK: %[[G:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
// CHECK-SAME: affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME: ins(%[[W]], %[[EXTRACT_SLICE]] : tensor<4x3x3xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN:[a-z0-9_]+]]: f32, %[[IN1:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF:[a-z0-9_]+]] = arith.mulf %[[IN]], %[[IN1]] : f32
// CHECK: %[[CONV:[a-z0-9_]+]] = linalg.conv_1d_ncw_fcw ins(%[[X]], %[[G]] : tensor<1x3x6xf32>, tensor<4x3x3xf32>)
// CHECK-SAME: outs(%[[F]] : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
// CHECK: %[[EXTRACT_SLICE1:[a-z0-9_]+]] = tensor.extract_slice %[[S]][4] [2] [1] : tensor<6xf32> to tensor<2xf32>
// CHECK: %[[G1:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
// CHECK-SAME: affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME: ins(%[[V]], %[[EXTRACT_SLICE1]] : tensor<2x3x3xf32>, tensor<2xf32>)
// CHECK-NEXT: ^bb0(%[[IN2:[a-z0-9_]+]]: f32, %[[IN3:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF1:[a-z0-9_]+]] = arith.mulf %[[IN2]], %[[IN3]] : f32
// CHECK: %[[CONV1:[a-z0-9_]+]] = linalg.conv_1d_ncw_fcw
// CHECK-SAME: ins(%[[X]], %[[G1]] : tensor<1x3x6xf32>, tensor<2x3x3xf32>)
// CHECK-SAME: outs(%[[F1]] : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
// CHECK: %[[CONCAT:[a-z0-9_]+]] = tensor.concat dim(1) %[[CONV]], %[[CONV1]] : (tensor<1x4x4xf32>, tensor<1x2x4xf32>)
// CHECK-SAME: -> tensor<1x6x4xf32>
// CHECK: %[[EXTRACT_SLICE2:[a-z0-9_]+]] = tensor.extract_slice %[[CONCAT]][0, 0, 1] [1, 6, 2] [1, 1, 1] :
// CHECK-SAME: tensor<1x6x4xf32> to tensor<1x6x2xf32>
// CHECK: return %[[EXTRACT_SLICE2]] : tensor<1x6x2xf32>
func.func @concat(%x: tensor<1x3x6xf32>, %w: tensor<4x3x3xf32> {pipeline.weight = "w"},
    %v: tensor<2x3x3xf32> {pipeline.weight = "v"}, %s: tensor<6xf32> {pipeline.weight = "s"}) -> tensor<1x6x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x4xf32>
  %f = tensor.empty() : tensor<1x2x4xf32>
  %out = tensor.empty() : tensor<1x6x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%f : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %y = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<1x3x6xf32>, tensor<4x3x3xf32>)
      outs(%init : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %z = linalg.conv_1d_ncw_fcw ins(%x, %v : tensor<1x3x6xf32>, tensor<2x3x3xf32>)
      outs(%start : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %both = tensor.concat dim(1) %y, %z : (tensor<1x4x4xf32>, tensor<1x2x4xf32>) -> tensor<1x6x4xf32>
  %crop = tensor.extract_slice %both[0, 0, 1] [1, 6, 2] [1, 1, 1] : tensor<1x6x4xf32> to tensor<1x6x2xf32>
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%crop, %s : tensor<1x6x2xf32>, tensor<6xf32>) outs(%out : tensor<1x6x2xf32>) {
  ^bb0(%in: f32, %u: f32, %o: f32):
    %r = arith.mulf %in, %u : f32
    linalg.yield %r : f32
  } -> tensor<1x6x2xf32>
  return %0 : tensor<1x6x2xf32>
}

// -----

// The norm stands in a branch, the convolution before it: nothing else reads the convolution's result.

#channel = affine_map<(d0, d1) -> (d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>
#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @branch(
// CHECK-SAME: %[[X:[a-z0-9_]+]]: i1
// CHECK-SAME: %[[X1:[a-z0-9_]+]]: tensor<2x3xf32>
// CHECK-SAME: %[[X2:[a-z0-9_]+]]: tensor<2x4xf32>
// CHECK-SAME: %[[W:[a-z0-9_]+]]: tensor<3x4xf32>
// CHECK-SAME: %[[VAR:[a-z0-9_]+]]: tensor<4xf32>
// CHECK: %[[C:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[F:[a-z0-9_]+]] = linalg.fill ins(%[[C]] : f32)
// CHECK: %[[G:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>,
// CHECK-SAME: affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%[[VAR]] : tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[RSQRT:[a-z0-9_]+]] = math.rsqrt %[[IN]] : f32
// CHECK: %[[G1:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
// CHECK-SAME: affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel"]} ins(%[[W]], %[[G]] : tensor<3x4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN1:[a-z0-9_]+]]: f32, %[[IN2:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF:[a-z0-9_]+]] = arith.mulf %[[IN1]], %[[IN2]] : f32
// CHECK: %[[MATMUL:[a-z0-9_]+]] = linalg.matmul ins(%[[X1]], %[[G1]] : tensor<2x3xf32>, tensor<3x4xf32>)
// CHECK-SAME: outs(%[[F]] : tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK: %[[SELECT:[a-z0-9_]+]] = arith.select %[[X]], %[[MATMUL]], %[[X2]] : tensor<2x4xf32>
// CHECK: return %[[SELECT]] : tensor<2x4xf32>
func.func @branch(%flag: i1, %x: tensor<2x3xf32>, %d: tensor<2x4xf32>, %w: tensor<3x4xf32> {pipeline.weight = "w"},
    %var: tensor<4xf32> {pipeline.weight = "var"}) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x4xf32>) outs(%init : tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = scf.if %flag -> tensor<2x4xf32> {
    %c = tensor.empty() : tensor<4xf32>
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%var : tensor<4xf32>) outs(%c : tensor<4xf32>) {
    ^bb0(%in: f32, %o: f32):
      %r = math.rsqrt %in : f32
      linalg.yield %r : f32
    } -> tensor<4xf32>
    %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel"]}
        ins(%y, %s : tensor<2x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4xf32>) {
    ^bb0(%in: f32, %u: f32, %o: f32):
      %r = arith.mulf %in, %u : f32
      linalg.yield %r : f32
    } -> tensor<2x4xf32>
    scf.yield %0 : tensor<2x4xf32>
  } else {
    scf.yield %d : tensor<2x4xf32>
  }
  return %z : tensor<2x4xf32>
}

// -----

// In the body of a loop as outside.

#channel = affine_map<(d0, d1) -> (d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @loop(
// CHECK-SAME: %[[X:[a-z0-9_]+]]: tensor<2x4xf32>
// CHECK-SAME: %[[X1:[a-z0-9_]+]]: index
// CHECK-SAME: %[[W:[a-z0-9_]+]]: tensor<4x4xf32>
// CHECK-SAME: %[[S:[a-z0-9_]+]]: tensor<4xf32>
// CHECK: %[[C:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[C1:[a-z0-9_]+]] = arith.constant 0 : index
// CHECK: %[[C2:[a-z0-9_]+]] = arith.constant 1 : index
// CHECK: %[[FOR:[a-z0-9_]+]] = scf.for %[[ITER:[a-z0-9_]+]] = %[[C1]] to %[[X1]] step %[[C2]]
// CHECK-SAME: iter_args(%[[ITER1:[a-z0-9_]+]] = %[[X]]) -> (tensor<2x4xf32>)
// CHECK: %[[F:[a-z0-9_]+]] = linalg.fill ins(%[[C]] : f32)
// CHECK: %[[G:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
// CHECK-SAME: affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel"]} ins(%[[W]], %[[S]] : tensor<4x4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN:[a-z0-9_]+]]: f32, %[[IN1:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF:[a-z0-9_]+]] = arith.mulf %[[IN]], %[[IN1]] : f32
// CHECK: %[[MATMUL:[a-z0-9_]+]] = linalg.matmul ins(%[[ITER1]], %[[G]] : tensor<2x4xf32>, tensor<4x4xf32>)
// CHECK-SAME: outs(%[[F]] : tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK: scf.yield %[[MATMUL]] : tensor<2x4xf32>
// CHECK: return %[[FOR]] : tensor<2x4xf32>
func.func @loop(%x: tensor<2x4xf32>, %n: index, %w: tensor<4x4xf32> {pipeline.weight = "w"},
    %s: tensor<4xf32> {pipeline.weight = "s"}) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = scf.for %i = %c0 to %n step %c1 iter_args(%now = %x) -> tensor<2x4xf32> {
    %e = tensor.empty() : tensor<2x4xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
    %y = linalg.matmul ins(%now, %w : tensor<2x4xf32>, tensor<4x4xf32>)
        outs(%init : tensor<2x4xf32>) -> tensor<2x4xf32>
    %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel"]}
        ins(%y, %s : tensor<2x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4xf32>) {
    ^bb0(%in: f32, %u: f32, %o: f32):
      %r = arith.mulf %in, %u : f32
      linalg.yield %r : f32
    } -> tensor<2x4xf32>
    scf.yield %0 : tensor<2x4xf32>
  }
  return %z : tensor<2x4xf32>
}
