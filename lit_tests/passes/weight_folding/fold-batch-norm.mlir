// RUN: pipeline-opt %s --split-input-file --fold-batch-norm --canonicalize --cse --mlir-print-local-scope | FileCheck %s

// A convolution with a bias, and a norm as PyTorch decomposes it: ((conv + b) - mean) * rstd * gamma + beta.

#channel = affine_map<(d0, d1, d2, d3) -> (d1)>
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @conv_bias_norm(
// CHECK-SAME: %[[X:[a-z0-9_]+]]: tensor<2x3x6x6xf32>
// CHECK-SAME: %[[W:[a-z0-9_]+]]: tensor<4x3x3x3xf32>
// CHECK-SAME: %[[B:[a-z0-9_]+]]: tensor<4xf32>
// CHECK-SAME: %[[MEAN:[a-z0-9_]+]]: tensor<4xf32>
// CHECK-SAME: %[[RSTD:[a-z0-9_]+]]: tensor<4xf32>
// CHECK-SAME: %[[GAMMA:[a-z0-9_]+]]: tensor<4xf32>
// CHECK-SAME: %[[BETA:[a-z0-9_]+]]: tensor<4xf32>
// CHECK: %[[C:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[G:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>,
// CHECK-SAME: affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
// CHECK-SAME: ins(%[[GAMMA]], %[[RSTD]] : tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN:[a-z0-9_]+]]: f32, %[[IN1:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF:[a-z0-9_]+]] = arith.mulf %[[IN]], %[[IN1]] : f32
// CHECK: %[[G1:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>,
// CHECK-SAME: affine_map<(d0, d1, d2, d3) -> (d0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
// CHECK-SAME: ins(%[[W]], %[[G]] : tensor<4x3x3x3xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN2:[a-z0-9_]+]]: f32, %[[IN3:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF1:[a-z0-9_]+]] = arith.mulf %[[IN2]], %[[IN3]] : f32
// CHECK: %[[F:[a-z0-9_]+]] = linalg.fill ins(%[[C]] : f32)
// CHECK: %[[G2:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>,
// CHECK-SAME: affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
// CHECK-SAME: ins(%[[B]], %[[G]] : tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN4:[a-z0-9_]+]]: f32, %[[IN5:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF2:[a-z0-9_]+]] = arith.mulf %[[IN4]], %[[IN5]] : f32
// CHECK: %[[G3:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>,
// CHECK-SAME: affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
// CHECK-SAME: ins(%[[MEAN]], %[[G]] : tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN6:[a-z0-9_]+]]: f32, %[[IN7:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF3:[a-z0-9_]+]] = arith.mulf %[[IN6]], %[[IN7]] : f32
// CHECK: %[[G4:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>,
// CHECK-SAME: affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
// CHECK-SAME: ins(%[[BETA]], %[[G3]] : tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN8:[a-z0-9_]+]]: f32, %[[IN9:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[SUBF:[a-z0-9_]+]] = arith.subf %[[IN8]], %[[IN9]] : f32
// CHECK: %[[G5:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>,
// CHECK-SAME: affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
// CHECK-SAME: ins(%[[G2]], %[[G4]] : tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN10:[a-z0-9_]+]]: f32, %[[IN11:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[ADDF:[a-z0-9_]+]] = arith.addf %[[IN10]], %[[IN11]] : f32
// CHECK: %[[CONV:[a-z0-9_]+]] = linalg.conv_2d_nchw_fchw
// CHECK-SAME: ins(%[[X]], %[[G1]] : tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>)
// CHECK-SAME: outs(%[[F]] : tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
// CHECK: %[[G6:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>,
// CHECK-SAME: affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
// CHECK-SAME: ins(%[[CONV]], %[[G5]] : tensor<2x4x4x4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN12:[a-z0-9_]+]]: f32, %[[IN13:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[ADDF1:[a-z0-9_]+]] = arith.addf %[[IN12]], %[[IN13]] : f32
// CHECK: return %[[G6]] : tensor<2x4x4x4xf32>
func.func @conv_bias_norm(%x: tensor<2x3x6x6xf32>, %w: tensor<4x3x3x3xf32> {pipeline.weight = "w"},
    %b: tensor<4xf32> {pipeline.weight = "b"}, %mean: tensor<4xf32> {pipeline.weight = "mean"},
    %rstd: tensor<4xf32> {pipeline.weight = "rstd"}, %gamma: tensor<4xf32> {pipeline.weight = "gamma"},
    %beta: tensor<4xf32> {pipeline.weight = "beta"}) -> tensor<2x4x4x4xf32> {
  %e = tensor.empty() : tensor<2x4x4x4xf32>
  %init = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<2x4x4x4xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>)
      outs(%init : tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %mean : tensor<2x4x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.subf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4x4xf32>
  %1 = linalg.generic {indexing_maps = [#all, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%0, %rstd : tensor<2x4x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4x4xf32>
  %2 = linalg.generic {indexing_maps = [#all, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%1, %gamma : tensor<2x4x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %v, %in : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4x4xf32>
  %3 = linalg.generic {indexing_maps = [#all, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%2, %beta : tensor<2x4x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.addf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4x4xf32>
  return %3 : tensor<2x4x4x4xf32>
}

// -----

// A linear layer whose weight is a constant, divided by numbers from a constant; the matrix product's weight comes first.

#rows = affine_map<(d0, d1) -> (d0)>
#both = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @constants(
// CHECK-SAME: %[[X:[a-z0-9_]+]]: tensor<2x3xf32>
// CHECK: %[[C:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f32
// CHECK: %[[C1:[a-z0-9_]+]] = arith.constant dense<[[1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> :
// CHECK-SAME: tensor<2x2xf32>
// CHECK: %[[C2:[a-z0-9_]+]] = arith.constant dense<[5.000000e+00, 6.000000e+00]> : tensor<2xf32>
// CHECK: %[[C3:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[F:[a-z0-9_]+]] = linalg.fill ins(%[[C3]] : f32)
// CHECK: %[[G:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>,
// CHECK-SAME: affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%[[C2]] : tensor<2xf32>)
// CHECK-NEXT: ^bb0(%[[IN:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[DIVF:[a-z0-9_]+]] = arith.divf %[[C]], %[[IN]] : f32
// CHECK: %[[G1:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
// CHECK-SAME: affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel"]} ins(%[[C1]], %[[G]] : tensor<2x2xf32>, tensor<2xf32>)
// CHECK-NEXT: ^bb0(%[[IN1:[a-z0-9_]+]]: f32, %[[IN2:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF:[a-z0-9_]+]] = arith.mulf %[[IN1]], %[[IN2]] : f32
// CHECK: %[[MATMUL:[a-z0-9_]+]] = linalg.matmul ins(%[[G1]], %[[X]] : tensor<2x2xf32>, tensor<2x3xf32>)
// CHECK-SAME: outs(%[[F]] : tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK: return %[[MATMUL]] : tensor<2x3xf32>
func.func @constants(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %d = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = linalg.matmul ins(%w, %x : tensor<2x2xf32>, tensor<2x3xf32>) outs(%init : tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = linalg.generic {indexing_maps = [#both, #rows, #both], iterator_types = ["parallel", "parallel"]}
      ins(%y, %d : tensor<2x3xf32>, tensor<2xf32>) outs(%e : tensor<2x3xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.divf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Half precision: the factor is applied in f32 and the weight is rounded once; casts between are looked through.

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d1)>

// CHECK-LABEL: func.func @half(
// CHECK-SAME: %[[X:[a-z0-9_]+]]: tensor<2x3x6xf16>
// CHECK-SAME: %[[W:[a-z0-9_]+]]: tensor<4x3x3xf16>
// CHECK-SAME: %[[S:[a-z0-9_]+]]: tensor<4xf16>
// CHECK: %[[C:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[F:[a-z0-9_]+]] = linalg.fill ins(%[[C]] : f32)
// CHECK: %[[G:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
// CHECK-SAME: affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME: ins(%[[W]], %[[S]] : tensor<4x3x3xf16>, tensor<4xf16>)
// CHECK-NEXT: ^bb0(%[[IN:[a-z0-9_]+]]: f16, %[[IN1:[a-z0-9_]+]]: f16, %{{.*}}: f16):
// CHECK: %[[EXTF:[a-z0-9_]+]] = arith.extf %[[IN]] : f16 to f32
// CHECK: %[[EXTF1:[a-z0-9_]+]] = arith.extf %[[IN1]] : f16 to f32
// CHECK: %[[MULF:[a-z0-9_]+]] = arith.mulf %[[EXTF]], %[[EXTF1]] : f32
// CHECK: %[[TRUNCF:[a-z0-9_]+]] = arith.truncf %[[MULF]] : f32 to f16
// CHECK: %[[CONV:[a-z0-9_]+]] = linalg.conv_1d_ncw_fcw ins(%[[X]], %[[G]] : tensor<2x3x6xf16>, tensor<4x3x3xf16>)
// CHECK-SAME: outs(%[[F]] : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
// CHECK: %[[G1:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
// CHECK-SAME: affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME: ins(%[[CONV]] : tensor<2x4x4xf32>)
// CHECK-NEXT: ^bb0(%[[IN2:[a-z0-9_]+]]: f32, %{{.*}}: f16):
// CHECK: %[[TRUNCF1:[a-z0-9_]+]] = arith.truncf %[[IN2]] : f32 to f16
// CHECK: return %[[G1]] : tensor<2x4x4xf16>
func.func @half(%x: tensor<2x3x6xf16>, %w: tensor<4x3x3xf16> {pipeline.weight = "w"},
    %s: tensor<4xf16> {pipeline.weight = "s"}) -> tensor<2x4x4xf16> {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<2x4x4xf32>
  %e = tensor.empty() : tensor<2x4x4xf16>
  %init = linalg.fill ins(%zero : f32) outs(%wide : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %y = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<2x3x6xf16>, tensor<4x3x3xf16>)
      outs(%init : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : tensor<2x4x4xf32>) outs(%e : tensor<2x4x4xf16>) {
  ^bb0(%in: f32, %out: f16):
    %r = arith.truncf %in : f32 to f16
    linalg.yield %r : f16
  } -> tensor<2x4x4xf16>
  %1 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %s : tensor<2x4x4xf16>, tensor<4xf16>) outs(%e : tensor<2x4x4xf16>) {
  ^bb0(%in: f16, %v: f16, %out: f16):
    %r = arith.mulf %in, %v : f16
    linalg.yield %r : f16
  } -> tensor<2x4x4xf16>
  return %1 : tensor<2x4x4xf16>
}

// -----

// Each of two convolutions with one weight gets its own scaled copy.

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d1)>

// CHECK-LABEL: func.func @shared_weight(
// CHECK-SAME: %[[X:[a-z0-9_]+]]: tensor<2x3x6xf32>
// CHECK-SAME: %[[W:[a-z0-9_]+]]: tensor<4x3x3xf32>
// CHECK-SAME: %[[S:[a-z0-9_]+]]: tensor<4xf32>
// CHECK-SAME: %[[T:[a-z0-9_]+]]: tensor<4xf32>
// CHECK: %[[C:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[F:[a-z0-9_]+]] = linalg.fill ins(%[[C]] : f32)
// CHECK: %[[G:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
// CHECK-SAME: affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME: ins(%[[W]], %[[S]] : tensor<4x3x3xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN:[a-z0-9_]+]]: f32, %[[IN1:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF:[a-z0-9_]+]] = arith.mulf %[[IN]], %[[IN1]] : f32
// CHECK: %[[CONV:[a-z0-9_]+]] = linalg.conv_1d_ncw_fcw ins(%[[X]], %[[G]] : tensor<2x3x6xf32>, tensor<4x3x3xf32>)
// CHECK-SAME: outs(%[[F]] : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
// CHECK: %[[G1:[a-z0-9_]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
// CHECK-SAME: affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME: ins(%[[W]], %[[T]] : tensor<4x3x3xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN2:[a-z0-9_]+]]: f32, %[[IN3:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK: %[[MULF1:[a-z0-9_]+]] = arith.mulf %[[IN2]], %[[IN3]] : f32
// CHECK: %[[CONV1:[a-z0-9_]+]] = linalg.conv_1d_ncw_fcw {dilations = dense<1> : tensor<1xi64>}
// CHECK-SAME: ins(%[[X]], %[[G1]] : tensor<2x3x6xf32>, tensor<4x3x3xf32>)
// CHECK-SAME: outs(%[[F]] : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
// CHECK: return %[[CONV]], %[[CONV1]] : tensor<2x4x4xf32>, tensor<2x4x4xf32>
func.func @shared_weight(%x: tensor<2x3x6xf32>, %w: tensor<4x3x3xf32> {pipeline.weight = "w"},
    %s: tensor<4xf32> {pipeline.weight = "s"}, %t: tensor<4xf32> {pipeline.weight = "t"})
    -> (tensor<2x4x4xf32>, tensor<2x4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %y = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<2x3x6xf32>, tensor<4x3x3xf32>)
      outs(%init : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %z = linalg.conv_1d_ncw_fcw {dilations = dense<1> : tensor<1xi64>}
      ins(%x, %w : tensor<2x3x6xf32>, tensor<4x3x3xf32>) outs(%init : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %s : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  %1 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %t : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  return %0, %1 : tensor<2x4x4xf32>, tensor<2x4x4xf32>
}

// The shift is computed behind the convolution, by the op that follows it: all of that moves in front of it.
// CHECK-LABEL: func.func @computed_behind
// CHECK: %[[T2:[a-z0-9_]+]] = linalg.generic {{.*}} ins(%{{[a-z0-9_]+}} : tensor<4xf32>)
// CHECK: %[[CONV:[a-z0-9_]+]] = linalg.conv_1d_ncw_fcw
// CHECK-NEXT: %[[SUM:[a-z0-9_]+]] = linalg.generic
// CHECK-SAME: ins(%[[CONV]], %[[T2]] : tensor<2x4x4xf32>, tensor<4xf32>)
// CHECK: return %[[SUM]]
func.func @computed_behind(%x: tensor<2x3x6xf32>, %w: tensor<4x3x3xf32> {pipeline.weight = "w"},
    %s: tensor<4xf32> {pipeline.weight = "s"}, %t: tensor<4xf32> {pipeline.weight = "t"}) -> tensor<2x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x4xf32>
  %v = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %y = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<2x3x6xf32>, tensor<4x3x3xf32>)
      outs(%init : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %t2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]} ins(%t : tensor<4xf32>) outs(%v : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %s : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %a: f32, %out: f32):
    %r = arith.mulf %in, %a : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  %1 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %t2 : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %a: f32, %out: f32):
    %r = arith.addf %in, %a : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  return %1 : tensor<2x4x4xf32>
}

// -----

// A product of bf16 that is written as one of f32: the scaled weight is rounded, so that it stays one.

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d1)>

// CHECK-LABEL: func.func @product_of_bf16(
// CHECK: arith.mulf
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: %[[ROUNDED:[0-9]+]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4x3x3xbf16>) outs(%{{.*}} : tensor<4x3x3xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.extf
// CHECK: linalg.conv_1d_ncw_fcw ins(%{{.*}}, %[[ROUNDED]] :
// CHECK-NOT: arith.mulf
func.func @product_of_bf16(%x: tensor<2x3x6xbf16>, %w: tensor<4x3x3xbf16> {pipeline.weight = "w"}, %s: tensor<4xf32> {pipeline.weight = "s"}) -> tensor<2x4x4xf32> {
  %ex = tensor.empty() : tensor<2x3x6xf32>
  %ew = tensor.empty() : tensor<4x3x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %data = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x3x6xbf16>) outs(%ex : tensor<2x3x6xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %r = arith.extf %in : bf16 to f32
    linalg.yield %r : f32
  } -> tensor<2x3x6xf32>
  %weight = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<4x3x3xbf16>) outs(%ew : tensor<4x3x3xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %r = arith.extf %in : bf16 to f32
    linalg.yield %r : f32
  } -> tensor<4x3x3xf32>
  %y = linalg.conv_1d_ncw_fcw ins(%data, %weight : tensor<2x3x6xf32>, tensor<4x3x3xf32>)
      outs(%init : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  // expected-remark @below {{passed: folded 1 operation per element into the weights of conv1d}}
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %s : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %a: f32, %out: f32):
    %r = arith.mulf %in, %a : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  return %0 : tensor<2x4x4xf32>
}
