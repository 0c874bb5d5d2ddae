// RUN: pipeline-opt %s --split-input-file --collapse-group-loops | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --collapse-group-loops --remarks-filter=collapse-group-loops --verify-diagnostics

// Planes become one dim, channels stay, since one operand has those alone; what a call hands over is collapsed.

#id = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
#plane = affine_map<(n, c, h, w) -> (h, w)>
#none = affine_map<(n, c, h, w) -> ()>

// CHECK: func.func private @planes(%[[X:.*]]: tensor<2x3x35xf32>, %[[C:.*]]: tensor<3xf32>, %[[P:.*]]: tensor<35xf32>, %[[S:.*]]: tensor<f32>, %{{.*}}: tensor<4x4xf32>, %[[R:.*]]: tensor<2x3x35xf32>) -> (tensor<2x3x35xf32>, tensor<2x3x35xf32>)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x3x35xf32>
// CHECK: %[[A:.*]] = linalg.generic {{.*}}ins(%[[X]], %[[C]] : tensor<2x3x35xf32>, tensor<3xf32>) outs(%[[E]] : tensor<2x3x35xf32>)
// CHECK: %[[B:.*]] = linalg.generic {{.*}}ins(%[[A]], %[[P]], %[[S]] : tensor<2x3x35xf32>, tensor<35xf32>, tensor<f32>) outs(%[[R]] : tensor<2x3x35xf32>)
// CHECK: return %[[A]], %[[B]]
// expected-remark @below {{passed: its dims of 2 x 3 x 5 x 7 are 2 x 3 x 35}}
func.func private @planes(%x: tensor<2x3x5x7xf32>, %c: tensor<3xf32>, %p: tensor<5x7xf32>, %s: tensor<f32>, %unread: tensor<4x4xf32>, %r: tensor<2x3x5x7xf32>) -> (tensor<2x3x5x7xf32>, tensor<2x3x5x7xf32>) attributes {pipeline.kernel = "elementwise"} {
  %e = tensor.empty() : tensor<2x3x5x7xf32>
  %a = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %c : tensor<2x3x5x7xf32>, tensor<3xf32>) outs(%e : tensor<2x3x5x7xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    linalg.yield %m : f32
  } -> tensor<2x3x5x7xf32>
  %b = linalg.generic {indexing_maps = [#id, #plane, #none, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a, %p, %s : tensor<2x3x5x7xf32>, tensor<5x7xf32>, tensor<f32>) outs(%r : tensor<2x3x5x7xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %n = arith.addf %m, %k : f32
    linalg.yield %n : f32
  } -> tensor<2x3x5x7xf32>
  return %a, %b : tensor<2x3x5x7xf32>, tensor<2x3x5x7xf32>
}

// CHECK: func.func @main(%[[ARG:.*]]: tensor<2x3x5x7xf32>
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[ARG]] {{\[\[}}0], [1], [2, 3]]
// CHECK: %[[CALL:.*]]:2 = call @planes(%[[FLAT]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {pipeline.origins = ["here"]}
// CHECK: tensor.expand_shape %[[CALL]]#0 {{\[\[}}0], [1], [2, 3]] output_shape [2, 3, 5, 7]
func.func @main(%x: tensor<2x3x5x7xf32>, %c: tensor<3xf32>, %p: tensor<5x7xf32>, %s: tensor<f32>, %u: tensor<4x4xf32>) -> (tensor<2x3x5x7xf32>, tensor<2x3x5x7xf32>) {
  %r = tensor.empty() : tensor<2x3x5x7xf32>
  %v:2 = call @planes(%x, %c, %p, %s, %u, %r) {pipeline.origins = ["here"]} : (tensor<2x3x5x7xf32>, tensor<3xf32>, tensor<5x7xf32>, tensor<f32>, tensor<4x4xf32>, tensor<2x3x5x7xf32>) -> (tensor<2x3x5x7xf32>, tensor<2x3x5x7xf32>)
  return %v#0, %v#1 : tensor<2x3x5x7xf32>, tensor<2x3x5x7xf32>
}

// -----

// Left alone: a row in one of the operands; a size that is not known; a body that asks for its place; a single op.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// CHECK-NOT: collapse_shape
func.func private @row(%x: tensor<4x6xf32>, %c: tensor<6xf32>, %r: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {pipeline.kernel = "elementwise"} {
  %a = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %c : tensor<4x6xf32>, tensor<6xf32>) outs(%r : tensor<4x6xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    linalg.yield %m : f32
  } -> tensor<4x6xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x6xf32>) outs(%r : tensor<4x6xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = math.exp %i : f32
    linalg.yield %m : f32
  } -> tensor<4x6xf32>
  return %b : tensor<4x6xf32>
}

func.func private @unknown(%x: tensor<?x6xf32>, %r: tensor<?x6xf32>) -> tensor<?x6xf32> attributes {pipeline.kernel = "elementwise"} {
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x6xf32>) outs(%r : tensor<?x6xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = math.exp %i : f32
    linalg.yield %m : f32
  } -> tensor<?x6xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<?x6xf32>) outs(%r : tensor<?x6xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = math.exp %i : f32
    linalg.yield %m : f32
  } -> tensor<?x6xf32>
  return %b : tensor<?x6xf32>
}

func.func private @place(%x: tensor<4x6xf32>, %r: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {pipeline.kernel = "elementwise"} {
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%r : tensor<4x6xf32>) {
  ^bb0(%i: f32, %o: f32):
    %d = linalg.index 0 : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %m = arith.addf %i, %f : f32
    linalg.yield %m : f32
  } -> tensor<4x6xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x6xf32>) outs(%r : tensor<4x6xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = math.exp %i : f32
    linalg.yield %m : f32
  } -> tensor<4x6xf32>
  return %b : tensor<4x6xf32>
}

func.func private @single(%x: tensor<4x6xf32>, %r: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {pipeline.kernel = "elementwise"} {
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%r : tensor<4x6xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = math.exp %i : f32
    linalg.yield %m : f32
  } -> tensor<4x6xf32>
  return %b : tensor<4x6xf32>
}

func.func @main(%x: tensor<4x6xf32>, %c: tensor<6xf32>, %y: tensor<?x6xf32>, %r: tensor<4x6xf32>, %s: tensor<?x6xf32>) -> (tensor<4x6xf32>, tensor<?x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = call @row(%x, %c, %r) : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = call @unknown(%y, %s) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %2 = call @place(%x, %r) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = call @single(%x, %r) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0, %1, %2, %3 : tensor<4x6xf32>, tensor<?x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}
