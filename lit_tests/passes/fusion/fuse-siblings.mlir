// RUN: pipeline-opt %s --split-input-file --fuse-siblings | FileCheck %s

// A sum and a sum of squares of the same rows.

#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @sums
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
// CHECK: %[[R:.*]]:2 = "fusion.group"(%[[X]]) ({
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x8xf32>):
// CHECK: %[[S:.*]]:2 = linalg.generic {{.*}} ins(%[[A]] : tensor<4x8xf32>) outs(%{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32, %[[O:.*]]: f32, %[[Q:.*]]: f32):
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[E]], %[[O]]
// CHECK-NEXT: %[[SQUARE:.*]] = arith.mulf %[[E]], %[[E]]
// CHECK-NEXT: %[[SQUARES:.*]] = arith.addf %[[SQUARE]], %[[Q]]
// CHECK-NEXT: linalg.yield %[[SUM]], %[[SQUARES]]
// CHECK: "fusion.yield"(%[[S]]#0, %[[S]]#1)
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @sums(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "fusion.group"(%x) ({
  ^bb0(%a: tensor<4x8xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<4x8xf32>) outs(%f : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %sum = arith.addf %in, %out : f32
      linalg.yield %sum : f32
    } -> tensor<4xf32>
    "fusion.yield"(%s) : (tensor<4xf32>) -> ()
  }) {kind = "reduction", label = "reduce_add"} : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = "fusion.group"(%x) ({
  ^bb0(%a: tensor<4x8xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<4x8xf32>) outs(%f : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %square = arith.mulf %in, %in : f32
      %sum = arith.addf %square, %out : f32
      linalg.yield %sum : f32
    } -> tensor<4xf32>
    "fusion.yield"(%s) : (tensor<4xf32>) -> ()
  }) {kind = "reduction", label = "fused_mul_reduce_add"} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Must not fire: the second reads what the first computes, by way of a reshape.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @one_after_the_other
// CHECK-COUNT-2: "fusion.group"
func.func @one_after_the_other(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "fusion.group"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %y = math.exp %in : f32
      linalg.yield %y : f32
    } -> tensor<8xf32>
    "fusion.yield"(%s) : (tensor<8xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<8xf32>) -> tensor<8xf32>
  %split = tensor.expand_shape %0 [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %same = tensor.collapse_shape %split [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  %1 = "fusion.group"(%x, %same) ({
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%a, %b : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%in: f32, %other: f32, %out: f32):
      %y = arith.addf %in, %other : f32
      linalg.yield %y : f32
    } -> tensor<8xf32>
    "fusion.yield"(%s) : (tensor<8xf32>) -> ()
  }) {kind = "elementwise", label = "add"} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Must not fire: each differs from the others in its loops, in how its result runs over them, in how it reads the
// tensor, in what it does for each element (a column index has no vector form), in its target, or is marked.

#all = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @refused
// CHECK-COUNT-7: "fusion.group"
func.func @refused(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>,
    tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = "fusion.group"(%x) ({
  ^bb0(%a: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %s = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %y = math.exp %in : f32
      linalg.yield %y : f32
    } -> tensor<4x4xf32>
    "fusion.yield"(%s) : (tensor<4x4xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "fusion.group"(%x) ({
  ^bb0(%a: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4xf32>
    %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<4x4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %y = arith.addf %in, %out : f32
      linalg.yield %y : f32
    } -> tensor<4xf32>
    "fusion.yield"(%s) : (tensor<4xf32>) -> ()
  }) {kind = "reduction", label = "reduce_add"} : (tensor<4x4xf32>) -> tensor<4xf32>
  %2 = "fusion.group"(%x) ({
  ^bb0(%a: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %s = linalg.generic {indexing_maps = [#all, #turned], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %y = math.exp %in : f32
      linalg.yield %y : f32
    } -> tensor<4x4xf32>
    "fusion.yield"(%s) : (tensor<4x4xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "fusion.group"(%x) ({
  ^bb0(%a: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %s = linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %y = math.exp %in : f32
      linalg.yield %y : f32
    } -> tensor<4x4xf32>
    "fusion.yield"(%s) : (tensor<4x4xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "fusion.group"(%x) ({
  ^bb0(%a: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %s = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %i = linalg.index 1 : index
      %n = arith.index_cast %i : index to i64
      %f = arith.sitofp %n : i64 to f32
      %y = arith.addf %in, %f : f32
      linalg.yield %y : f32
    } -> tensor<4x4xf32>
    "fusion.yield"(%s) : (tensor<4x4xf32>) -> ()
  }) {kind = "elementwise", label = "add"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = "fusion.group"(%x) ({
  ^bb0(%a: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %s = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %y = math.sin %in : f32
      linalg.yield %y : f32
    } -> tensor<4x4xf32>
    "fusion.yield"(%s) : (tensor<4x4xf32>) -> ()
  }) {kind = "elementwise", label = "sin", pipeline.target = "cpu"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = "fusion.group"(%x) ({
  ^bb0(%a: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %s = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) attrs = {pipeline.stop_fusion} {
    ^bb0(%in: f32, %out: f32):
      %y = math.cos %in : f32
      linalg.yield %y : f32
    } -> tensor<4x4xf32>
    "fusion.yield"(%s) : (tensor<4x4xf32>) -> ()
  }) {kind = "elementwise", label = "cos"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>,
    tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
