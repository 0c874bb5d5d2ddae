// RUN: pipeline-opt %s --erase-barriers | FileCheck %s
// RUN: pipeline-opt %s --fuse-elementwise --form-groups --erase-barriers | FileCheck %s --check-prefix=GROUPS
// RUN: pipeline-opt %s --hoist-to-prepare --erase-barriers | FileCheck %s --check-prefix=PREPARE

// A barrier leaves its operand; what else there is stays. While it stood, no group reached across: neither across the op
// nor across the mark on an op, which stays. What depends on weights alone is prepared all the same.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[^:]*]]: tensor<4xf32>
// CHECK-NOT: fusion.barrier
// CHECK: %[[E:.*]] = linalg.generic
// CHECK-SAME: ins(%[[X]] :
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[E]] :
// CHECK: attrs = {pipeline.stop_fusion}
// CHECK-NOT: fusion.barrier

// GROUPS: label = "exp"
// GROUPS: label = "neg"
// GROUPS: label = "fused_sin_add"

// PREPARE: func.func {{.*}}@prepare
// PREPARE-NOT: fusion.barrier
// PREPARE: math.sin
// PREPARE: func.func @main
// PREPARE-NOT: math.sin
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32> {pipeline.weight = "w"}) -> tensor<4xf32> {
  %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %b = "fusion.barrier"(%e) : (tensor<4xf32>) -> tensor<4xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%b : tensor<4xf32>) outs(%x : tensor<4xf32>) attrs = {pipeline.stop_fusion} {
  ^bb0(%in: f32, %out: f32):
    %r = arith.negf %in : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %c = "fusion.barrier"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%c : tensor<4xf32>) outs(%c : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = math.sin %in : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %a = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%s, %n : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%l: f32, %m: f32, %out: f32):
    %r = arith.addf %l, %m : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %a : tensor<4xf32>
}
