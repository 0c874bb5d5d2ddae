// RUN: pipeline-opt %s --split-input-file --transposed-conv-phases | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --transposed-conv-phases --remarks-filter=transposed-conv-phases --verify-diagnostics

// Channels last, as propagate-layouts leaves them: rows of 4 taps in steps of 2 are phases of 2 taps. Nothing moves; the
// weight is read by other indices.

// CHECK-DAG: #[[DATA:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d2 + d5 + d1, d3 + d6, d7)>
// CHECK-DAG: #[[WEIGHT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4 floordiv 32, d5, d1, d6, d7, d4 mod 32)>
// CHECK-DAG: #[[RESULT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d2, d1, d3, d4)>
#data = affine_map<(n, h, w, f, r, s, c) -> (n, h + r, w + s, c)>
#weight = affine_map<(n, h, w, f, r, s, c) -> (f floordiv 32, r, s, c, f mod 32)>
#result = affine_map<(n, h, w, f, r, s, c) -> (n, h, w, f)>

// CHECK-LABEL: func.func @last
// CHECK-SAME: (%[[X:.*]]: tensor<1x5x6x8xf32>, %[[W:.*]]: tensor<1x4x3x8x32xf32>
// CHECK: %[[P:.*]] = tensor.pad %[[X]] low[0, 1, 0, 0] high[0, 1, 0, 0]
// CHECK: tensor<1x5x6x8xf32> to tensor<1x7x6x8xf32>
// CHECK: %[[T:.*]] = tensor.expand_shape %[[W]] {{\[\[}}0], [1, 2], [3], [4], [5]] {{.*}} into tensor<1x2x2x3x8x32xf32>
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} -> tensor<1x5x2x4x32xf32>
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[DATA]], #[[WEIGHT]], #[[RESULT]]]
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
// CHECK-SAME: ins(%[[P]], %[[T]] : {{.*}}) outs(%[[Z]] : {{.*}}) {
// CHECK: %[[J:.*]] = tensor.collapse_shape %[[C]] {{\[\[}}0], [1, 2], [3], [4]] : {{.*}} into tensor<1x10x4x32xf32>
// CHECK: return %[[J]]
func.func @last(%x: tensor<1x5x6x8xf32>, %w: tensor<1x4x3x8x32xf32> {pipeline.weight = "w"}) -> tensor<1x10x4x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x13x6x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x13x6x8xf32>) -> tensor<1x13x6x8xf32>
  %d = tensor.insert_slice %x into %z[0, 2, 0, 0] [1, 5, 6, 8] [1, 2, 1, 1] : tensor<1x5x6x8xf32> into tensor<1x13x6x8xf32>
  %empty = tensor.empty() : tensor<1x10x4x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x10x4x32xf32>) -> tensor<1x10x4x32xf32>
  // expected-remark @below {{computes 2 phases of its result, without zeros between its data}}
  %c = linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%d, %w : tensor<1x13x6x8xf32>, tensor<1x4x3x8x32xf32>) outs(%start : tensor<1x10x4x32xf32>) {
  ^bb0(%in: f32, %tap: f32, %out: f32):
    %product = arith.mulf %in, %tap : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  } -> tensor<1x10x4x32xf32>
  return %c : tensor<1x10x4x32xf32>
}

// -----

// Channels first: they become the innermost dim, in blocks. 3 taps are filled up to 4, which an attribute says; of the
// 10 results that the phases have, 9 are wanted.

// CHECK-DAG: #[[DATA:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d3 + d5)>
// CHECK-DAG: #[[WEIGHT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1 floordiv 32, -d2 + 1, d4, d5, d1 mod 32)>
// CHECK-DAG: #[[RESULT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d2, d1)>
// CHECK-LABEL: func.func @first
// CHECK-SAME: (%[[X:.*]]: tensor<1x4x5xf32>, %[[W:.*]]: tensor<64x4x3xf32>
// CHECK: %[[P:.*]] = tensor.pad %[[X]] low[0, 0, 0] high[0, 0, 1]
// CHECK: %[[Q:.*]] = tensor.pad %[[W]] low[0, 0, 0] high[0, 0, 1]
// CHECK: %[[S:.*]] = tensor.expand_shape %[[Q]] {{\[\[}}0, 1], [2], [3, 4]] {{.*}} into tensor<2x32x4x2x2xf32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[S]] : {{.*}}) outs({{.*}} : tensor<2x2x4x2x32xf32>) permutation = [0, 4, 2, 3, 1]
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[DATA]], #[[WEIGHT]], #[[RESULT]]]
// CHECK-SAME: ins(%[[P]], %[[T]] : {{.*}}) outs({{.*}} : tensor<1x5x2x64xf32>) attrs = {pipeline.taps = array<i64: 3, 1, 3>}
// CHECK: %[[J:.*]] = tensor.collapse_shape %[[C]] {{\[\[}}0], [1, 2], [3]] : {{.*}} into tensor<1x10x64xf32>
// CHECK: %[[L:.*]] = tensor.extract_slice %[[J]][0, 0, 0] [1, 9, 64] [1, 1, 1]
// CHECK: %[[R:.*]] = linalg.transpose ins(%[[L]] : {{.*}}) outs({{.*}} : tensor<1x64x9xf32>) permutation = [0, 2, 1]
// CHECK: return %[[R]]
func.func @first(%x: tensor<1x4x5xf32>, %w: tensor<64x4x3xf32> {pipeline.weight = "w"}) -> tensor<1x64x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x11xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x11xf32>) -> tensor<1x4x11xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 4, 5] [1, 1, 2] : tensor<1x4x5xf32> into tensor<1x4x11xf32>
  %empty = tensor.empty() : tensor<1x64x9xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x9xf32>) -> tensor<1x64x9xf32>
  // expected-remark @below {{computes 2 phases of its result, without zeros between its data}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%d, %w : tensor<1x4x11xf32>, tensor<64x4x3xf32>) outs(%start : tensor<1x64x9xf32>) -> tensor<1x64x9xf32>
  return %c : tensor<1x64x9xf32>
}

// -----

// Phases that are in no line: in steps of 3, what they read is told by divisions.

// CHECK-DAG: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d3 + d5 + (d2 + (d2 * 2 + 1) mod 3 - 1) floordiv 3)>
// CHECK-DAG: affine_map<(d0, d1, d2, d3, d4, d5) -> ((d2 * 2 + 1) mod 3, d4, d5, d1)>
// CHECK-LABEL: func.func @three
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1x4x3x9xf32>)
func.func @three(%x: tensor<1x4x5xf32>, %w: tensor<9x4x6xf32> {pipeline.weight = "w"}) -> tensor<1x9x12xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x17xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x17xf32>) -> tensor<1x4x17xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 4, 5] [1, 1, 3] : tensor<1x4x5xf32> into tensor<1x4x17xf32>
  %empty = tensor.empty() : tensor<1x9x12xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x9x12xf32>) -> tensor<1x9x12xf32>
  // expected-remark @below {{computes 3 phases}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%d, %w : tensor<1x4x17xf32>, tensor<9x4x6xf32>) outs(%start : tensor<1x9x12xf32>) -> tensor<1x9x12xf32>
  return %c : tensor<1x9x12xf32>
}

// -----

// Few channels: rows are computed phase by phase, then put side by side. A barrier keeps what follows in whole rows.

// CHECK-DAG: #[[RESULT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func.func @few
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #[[RESULT]]]
// CHECK-SAME: outs({{.*}} : tensor<1x3x2x16xf32>)
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[C]] : {{.*}}) outs({{.*}} : tensor<1x3x16x2xf32>) permutation = [0, 1, 3, 2]
// CHECK: %[[J:.*]] = tensor.collapse_shape %[[T]] {{.*}} into tensor<1x3x32xf32>
// CHECK: %[[B:.*]] = "fusion.barrier"(%[[J]])
// CHECK: return %[[B]]
func.func @few(%x: tensor<1x4x16xf32>, %w: tensor<3x4x2xf32> {pipeline.weight = "w"}) -> tensor<1x3x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x33xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x33xf32>) -> tensor<1x4x33xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 4, 16] [1, 1, 2] : tensor<1x4x16xf32> into tensor<1x4x33xf32>
  %empty = tensor.empty() : tensor<1x3x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x3x32xf32>) -> tensor<1x3x32xf32>
  // expected-remark @below {{computes 2 phases}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%d, %w : tensor<1x4x33xf32>, tensor<3x4x2xf32>) outs(%start : tensor<1x3x32xf32>) -> tensor<1x3x32xf32>
  return %c : tensor<1x3x32xf32>
}

// -----

// A size that is known at run time only: the blocks of a phase are counted, and zeros put behind the data as needed. The
// last block may have too many results.

// CHECK-DAG: #[[BLOCKS:.*]] = affine_map<(d0) -> (d0 ceildiv 2)>
// CHECK-DAG: #[[BEHIND:.*]] = affine_map<(d0, d1) -> (d0 - d1)>
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: (%[[X:.*]]: tensor<1x4x?xf32>,
// CHECK: %[[OLD:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<1x9x?xf32>)
// CHECK: %[[COUNT:.*]] = tensor.dim %[[OLD]], %{{.*}}
// CHECK: %[[B:.*]] = affine.apply #[[BLOCKS]](%[[COUNT]])
// CHECK: %[[SIZE:.*]] = tensor.dim %[[X]], %{{.*}}
// CHECK: %[[D:.*]] = affine.apply #[[BEHIND]](%[[B]], %[[SIZE]])
// CHECK: %[[HIGH:.*]] = arith.maxsi %[[D]], %{{.*}}
// CHECK: tensor.pad %[[X]] low[0, 0, 1] high[0, 0, %[[HIGH]]]
// CHECK: %[[C:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<1x?x2x9xf32>)
// CHECK: %[[J:.*]] = tensor.collapse_shape %[[C]] {{.*}} : tensor<1x?x2x9xf32> into tensor<1x?x9xf32>
// CHECK: %[[WANTED:.*]] = tensor.dim %[[OLD]], %{{.*}}
// CHECK: tensor.extract_slice %[[J]][0, 0, 0] [1, %[[WANTED]], 9] [1, 1, 1]
func.func @dynamic(%x: tensor<1x4x?xf32>, %w: tensor<9x4x4xf32> {pipeline.weight = "w"}, %spread: index, %results: index) -> tensor<1x9x?xf32> {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2 : index
  %size = tensor.dim %x, %two : tensor<1x4x?xf32>
  %e = tensor.empty(%spread) : tensor<1x4x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x?xf32>) -> tensor<1x4x?xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 3] [1, 4, %size] [1, 1, 2] : tensor<1x4x?xf32> into tensor<1x4x?xf32>
  %empty = tensor.empty(%results) : tensor<1x9x?xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x9x?xf32>) -> tensor<1x9x?xf32>
  // expected-remark @below {{computes 2 phases}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%d, %w : tensor<1x4x?xf32>, tensor<9x4x4xf32>) outs(%start : tensor<1x9x?xf32>) -> tensor<1x9x?xf32>
  return %c : tensor<1x9x?xf32>
}

// -----

// Must not fire: what is between the elements is no zero.

// CHECK-LABEL: func.func @ones
// CHECK: linalg.conv_1d_ncw_fcw
func.func @ones(%x: tensor<1x4x5xf32>, %w: tensor<9x4x2xf32> {pipeline.weight = "w"}) -> tensor<1x9x10xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<1x4x11xf32>
  %z = linalg.fill ins(%one : f32) outs(%e : tensor<1x4x11xf32>) -> tensor<1x4x11xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 4, 5] [1, 1, 2] : tensor<1x4x5xf32> into tensor<1x4x11xf32>
  %empty = tensor.empty() : tensor<1x9x10xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x9x10xf32>) -> tensor<1x9x10xf32>
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%d, %w : tensor<1x4x11xf32>, tensor<9x4x2xf32>) outs(%start : tensor<1x9x10xf32>) -> tensor<1x9x10xf32>
  return %c : tensor<1x9x10xf32>
}

// -----

// Must not fire: zeros around the elements, none between.

// CHECK-LABEL: func.func @around
// CHECK: linalg.conv_1d_ncw_fcw
func.func @around(%x: tensor<1x4x5xf32>, %w: tensor<9x4x3xf32> {pipeline.weight = "w"}) -> tensor<1x9x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 4, 5] [1, 1, 1] : tensor<1x4x5xf32> into tensor<1x4x7xf32>
  %empty = tensor.empty() : tensor<1x9x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x9x5xf32>) -> tensor<1x9x5xf32>
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%d, %w : tensor<1x4x7xf32>, tensor<9x4x3xf32>) outs(%start : tensor<1x9x5xf32>) -> tensor<1x9x5xf32>
  return %c : tensor<1x9x5xf32>
}

// -----

// Must not fire: taps and steps of 2 both, so that half of the phases have no taps.

// CHECK-LABEL: func.func @dilated
// CHECK: linalg.conv_1d_ncw_fcw
func.func @dilated(%x: tensor<1x4x5xf32>, %w: tensor<9x4x2xf32> {pipeline.weight = "w"}) -> tensor<1x9x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x11xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x11xf32>) -> tensor<1x4x11xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 4, 5] [1, 1, 2] : tensor<1x4x5xf32> into tensor<1x4x11xf32>
  %empty = tensor.empty() : tensor<1x9x9xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x9x9xf32>) -> tensor<1x9x9xf32>
  // expected-remark @below {{the zeros between its data are multiplied: its dilation and its stride have a factor in common}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<2> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%d, %w : tensor<1x4x11xf32>, tensor<9x4x2xf32>) outs(%start : tensor<1x9x9xf32>) -> tensor<1x9x9xf32>
  return %c : tensor<1x9x9xf32>
}

// -----

// Must not fire: most phases have no tap, and the weight would be four times as large.

// CHECK-LABEL: func.func @one_tap
// CHECK: linalg.conv_1d_ncw_fcw
func.func @one_tap(%x: tensor<1x4x5xf32>, %w: tensor<9x4x1xf32> {pipeline.weight = "w"}) -> tensor<1x9x17xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x17xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x17xf32>) -> tensor<1x4x17xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 0] [1, 4, 5] [1, 1, 4] : tensor<1x4x5xf32> into tensor<1x4x17xf32>
  %empty = tensor.empty() : tensor<1x9x17xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x9x17xf32>) -> tensor<1x9x17xf32>
  // expected-remark @below {{its weight would be 4.0 times as large}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%d, %w : tensor<1x4x17xf32>, tensor<9x4x1xf32>) outs(%start : tensor<1x9x17xf32>) -> tensor<1x9x17xf32>
  return %c : tensor<1x9x17xf32>
}

// -----

// Must not fire: the weight is data.

// CHECK-LABEL: func.func @computed
// CHECK: linalg.conv_1d_ncw_fcw
func.func @computed(%x: tensor<1x4x5xf32>, %w: tensor<9x4x2xf32>) -> tensor<1x9x10xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x11xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x11xf32>) -> tensor<1x4x11xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 4, 5] [1, 1, 2] : tensor<1x4x5xf32> into tensor<1x4x11xf32>
  %empty = tensor.empty() : tensor<1x9x10xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x9x10xf32>) -> tensor<1x9x10xf32>
  // expected-remark @below {{its weight is computed}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%d, %w : tensor<1x4x11xf32>, tensor<9x4x2xf32>) outs(%start : tensor<1x9x10xf32>) -> tensor<1x9x10xf32>
  return %c : tensor<1x9x10xf32>
}

// -----

// Must not fire: its sums start from something else.

// CHECK-LABEL: func.func @init
// CHECK: linalg.conv_1d_ncw_fcw
func.func @init(%x: tensor<1x4x5xf32>, %w: tensor<9x4x2xf32> {pipeline.weight = "w"}, %start: tensor<1x9x10xf32>) -> tensor<1x9x10xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x11xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x11xf32>) -> tensor<1x4x11xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 4, 5] [1, 1, 2] : tensor<1x4x5xf32> into tensor<1x4x11xf32>
  // expected-remark @below {{its sums do not start from zero}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%d, %w : tensor<1x4x11xf32>, tensor<9x4x2xf32>) outs(%start : tensor<1x9x10xf32>) -> tensor<1x9x10xf32>
  return %c : tensor<1x9x10xf32>
}

// -----

// Must not fire: the window does not start at the first element.

#data = affine_map<(n, w, f, c, s) -> (n, c, w + s + 1)>
#weight = affine_map<(n, w, f, c, s) -> (f, c, s)>
#result = affine_map<(n, w, f, c, s) -> (n, w, f)>

// CHECK-LABEL: func.func @late
// CHECK: tensor.insert_slice
// CHECK-NOT: tensor.collapse_shape
func.func @late(%x: tensor<1x4x5xf32>, %w: tensor<9x4x2xf32> {pipeline.weight = "w"}) -> tensor<1x9x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x11xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x11xf32>) -> tensor<1x4x11xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 4, 5] [1, 1, 2] : tensor<1x4x5xf32> into tensor<1x4x11xf32>
  %empty = tensor.empty() : tensor<1x9x9xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x9x9xf32>) -> tensor<1x9x9xf32>
  // expected-remark @below {{its data is read in another way than along a window}}
  %c = linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%d, %w : tensor<1x4x11xf32>, tensor<9x4x2xf32>) outs(%start : tensor<1x9x9xf32>) {
  ^bb0(%in: f32, %tap: f32, %out: f32):
    %product = arith.mulf %in, %tap : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  } -> tensor<1x9x9xf32>
  return %c : tensor<1x9x9xf32>
}
