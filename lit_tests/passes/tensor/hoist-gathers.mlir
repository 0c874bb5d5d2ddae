// RUN: pipeline-opt %s --hoist-gathers --canonicalize --cse | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>

// The logarithm of a probability in each row: x - max has another reader, and x lies in memory. What is the same along a
// row is no longer fetched but an input.

// CHECK-LABEL: func.func @log_softmax
// CHECK-SAME: (%[[X:.*]]: tensor<4x64xf32>, %[[MAX:.*]]: tensor<4xf32>, %[[LABELS:.*]]: tensor<4xi64>)
// CHECK: %[[SHIFTED:.*]] = linalg.generic
// CHECK: arith.subf
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[LABELS]], %[[SUM]], %[[MAX]]
// CHECK: ^bb0(%[[LABEL:[^:]*]]: i64, %[[C:[^:]*]]: f32, %[[B:[^:]*]]: f32,
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[J:.*]] = arith.index_cast %[[LABEL]]
// CHECK: %[[A:.*]] = tensor.extract %[[X]][%[[I]], %[[J]]]
// CHECK: %[[D:.*]] = arith.subf %[[A]], %[[B]]
// CHECK: arith.subf %[[D]], %[[C]]
func.func @log_softmax(%x: tensor<4x64xf32>, %max: tensor<4xf32>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x64xf32>
  %r = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %shifted = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%shifted : tensor<4x64xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = math.exp %a : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %log = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%shifted, %sum : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x64xf32>
  %picked = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%labels : tensor<4xi64>) outs(%r : tensor<4xf32>) {
  ^bb0(%label: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %label : i64 to index
    %v = tensor.extract %log[%i, %j] : tensor<4x64xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %picked : tensor<4xf32>
}

// Through reshapes, places are split and merged.

// CHECK-LABEL: func.func @reshaped
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x64xf32>
// CHECK-NOT: math.exp
// CHECK: linalg.generic
// CHECK-DAG: %[[P:.*]] = arith.divui %{{.*}}, %c3
// CHECK-DAG: %[[Q:.*]] = arith.remui %{{.*}}, %c3
// CHECK: %[[V:.*]] = tensor.extract %[[X]][%[[P]], %[[Q]], %{{.*}}]
// CHECK: math.exp %[[V]]
func.func @reshaped(%x: tensor<2x3x64xf32>, %labels: tensor<6xindex>) -> tensor<6xf32> {
  %e = tensor.empty() : tensor<2x3x64xf32>
  %r = tensor.empty() : tensor<6xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x3x64xf32>) outs(%e : tensor<2x3x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<2x3x64xf32>
  %flat = tensor.collapse_shape %f [[0, 1], [2]] : tensor<2x3x64xf32> into tensor<6x64xf32>
  %picked = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%labels : tensor<6xindex>) outs(%r : tensor<6xf32>) {
  ^bb0(%j: index, %o: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %flat[%i, %j] : tensor<6x64xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  return %picked : tensor<6xf32>
}

// Loops that count the dims of what was reshaped are their indices.

// CHECK-LABEL: func.func @split_loops
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x64xf32>
// CHECK-NOT: arith.divui
// CHECK: linalg.generic
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: tensor.extract %[[X]][%[[I]], %[[J]], %{{.*}}]
func.func @split_loops(%x: tensor<2x3x64xf32>, %labels: tensor<2x3xindex>) -> tensor<2x3xf32> {
  %e = tensor.empty() : tensor<2x3x64xf32>
  %r = tensor.empty() : tensor<2x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x3x64xf32>) outs(%e : tensor<2x3x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<2x3x64xf32>
  %flat = tensor.collapse_shape %f [[0, 1], [2]] : tensor<2x3x64xf32> into tensor<6x64xf32>
  %picked = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%labels : tensor<2x3xindex>) outs(%r : tensor<2x3xf32>) {
  ^bb0(%k: index, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = affine.apply affine_map<(d0, d1) -> (d0 * 3 + d1)>(%i, %j)
    %v = tensor.extract %flat[%n, %k] : tensor<6x64xf32>
    linalg.yield %v : f32
  } -> tensor<2x3xf32>
  return %picked : tensor<2x3xf32>
}

// More is fetched than there is.

// CHECK-LABEL: func.func @table
// CHECK: math.exp
// CHECK: tensor.extract
// CHECK-NOT: math.exp
// CHECK: return
func.func @table(%x: tensor<16xf32>, %rows: tensor<64xindex>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %r = tensor.empty() : tensor<64xf32>
  %f = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : tensor<16xf32>) outs(%e : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  %picked = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%rows : tensor<64xindex>) outs(%r : tensor<64xf32>) {
  ^bb0(%j: index, %o: f32):
    %v = tensor.extract %f[%j] : tensor<16xf32>
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %picked : tensor<64xf32>
}

// What is fetched from is a result, and what it is computed from would have to be kept for the gather alone.

// CHECK-LABEL: func.func @kept
// CHECK: math.exp
// CHECK: tensor.extract
// CHECK-NOT: math.exp
// CHECK: return
func.func @kept(%x: tensor<512xf32>, %y: tensor<512xf32>, %rows: tensor<4xindex>) -> (tensor<512xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<512xf32>
  %r = tensor.empty() : tensor<4xf32>
  %z = linalg.add ins(%x, %y : tensor<512xf32>, tensor<512xf32>) outs(%e : tensor<512xf32>) -> tensor<512xf32>
  %f = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%z : tensor<512xf32>) outs(%e : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<512xf32>
  %picked = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%rows : tensor<4xindex>) outs(%r : tensor<4xf32>) {
  ^bb0(%j: index, %o: f32):
    %v = tensor.extract %f[%j] : tensor<512xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %f, %picked : tensor<512xf32>, tensor<4xf32>
}
