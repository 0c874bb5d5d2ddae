// RUN: pipeline-opt %s --split-input-file --hoist-to-prepare | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --hoist-to-prepare --remarks-filter=hoist-to-prepare --verify-diagnostics

// A transposed weight comes from @prepare; the weight itself is no argument of @main any more.

// CHECK-LABEL: func.func @prepare(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x3xf32> {pipeline.weight = "w"}) -> tensor<3x4xf32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[W]] : tensor<4x3xf32>)
// CHECK: return %[[T]] : tensor<3x4xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x3xf32> {pipeline.argument = 0 : i64},
// CHECK-SAME: %[[Y:[a-z0-9]+]]: tensor<2x4xf32> {pipeline.argument = 1 : i64},
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<3x4xf32> {pipeline.prepared = 0 : i64})
// CHECK-NEXT: linalg.matmul ins(%[[X]], %[[T]] : tensor<2x3xf32>, tensor<3x4xf32>) outs(%[[Y]] : tensor<2x4xf32>)
// expected-remark @below {{passed: @prepare computes 1 tensors from weights and keeps 48 bytes}}
func.func @main(%w: tensor<4x3xf32> {pipeline.weight = "w"}, %x: tensor<2x3xf32> {pipeline.argument = 0 : i64},
    %y: tensor<2x4xf32> {pipeline.argument = 1 : i64}) -> tensor<2x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %t = linalg.transpose ins(%w : tensor<4x3xf32>) outs(%e : tensor<3x4xf32>) permutation = [1, 0]
  %r = linalg.matmul ins(%x, %t : tensor<2x3xf32>, tensor<3x4xf32>) outs(%y : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// What a branch computes from weights is computed once as well. A view of a weight stays: it costs nothing.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @prepare(
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<4xf32> {pipeline.weight = "v"}) -> tensor<4xf32>
// CHECK: linalg.generic {{.*}} ins(%[[V]] : tensor<4xf32>)
// CHECK: math.sqrt
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<2x2xf32> {pipeline.weight = "w"},
// CHECK-SAME: %[[FLAG:[a-z0-9]+]]: i1 {pipeline.argument = 0 : i64},
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<4xf32> {pipeline.prepared = 0 : i64})
// CHECK: scf.if %[[FLAG]]
// CHECK-NEXT: scf.yield %[[P]] : tensor<4xf32>
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[W]]
// CHECK-NEXT: scf.yield %[[FLAT]] : tensor<4xf32>
// expected-remark @below {{passed: @prepare computes 1 tensors from weights and keeps 16 bytes}}
func.func @main(%w: tensor<2x2xf32> {pipeline.weight = "w"}, %v: tensor<4xf32> {pipeline.weight = "v"},
    %flag: i1 {pipeline.argument = 0 : i64}) -> tensor<4xf32> {
  %r = scf.if %flag -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4xf32>
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%v : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %q = math.sqrt %in : f32
      linalg.yield %q : f32
    } -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  } else {
    %flat = tensor.collapse_shape %w [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
    scf.yield %flat : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Must not fire: a broadcast would keep fifty times the weight's bytes.

// CHECK-NOT: @prepare
// CHECK-LABEL: func.func @main(
// CHECK: %[[B:.*]] = linalg.broadcast
// CHECK: return %[[B]]
func.func @main(%w: tensor<4xf32> {pipeline.weight = "w"}) -> tensor<50x4xf32> {
  %e = tensor.empty() : tensor<50x4xf32>
  // expected-remark @below {{missed: its result has 800 bytes, the weights behind it only 16}}
  %b = linalg.broadcast ins(%w : tensor<4xf32>) outs(%e : tensor<50x4xf32>) dimensions = [0]
  return %b : tensor<50x4xf32>
}

// -----

// Must not fire: the model writes to the weight.

// CHECK-NOT: @prepare
// CHECK-LABEL: func.func @main(
// CHECK: linalg.transpose ins(%{{.*}} : tensor<4x3xf32>)
func.func @main(%w: tensor<4x3xf32> {pipeline.weight = "w", pipeline.mutable}) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %t = linalg.transpose ins(%w : tensor<4x3xf32>) outs(%e : tensor<3x4xf32>) permutation = [1, 0]
  return %t : tensor<3x4xf32>
}

// -----

// Must not fire: what comes from constants alone has no weights to be computed from.

// CHECK-NOT: @prepare
// CHECK-LABEL: func.func @main(
// CHECK: linalg.fill
func.func @main(%w: tensor<4xf32> {pipeline.weight = "w"}) -> (tensor<4xf32>, tensor<8xf32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %w, %f : tensor<4xf32>, tensor<8xf32>
}

// -----

// A table that takes functions to compute is computed once, though no weight is behind it.

#line = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @prepare() -> tensor<8xf32>
// CHECK: math.cos
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8xf32> {pipeline.argument = 0 : i64},
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<8xf32> {pipeline.prepared = 0 : i64})
// CHECK: linalg.mul ins(%[[X]], %[[T]] : tensor<8xf32>, tensor<8xf32>)
// expected-remark @below {{passed: @prepare computes 1 tensors from weights and keeps 32 bytes}}
func.func @main(%x: tensor<8xf32> {pipeline.argument = 0 : i64}) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %t = linalg.generic {indexing_maps = [#line], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %c = math.cos %f : f32
    linalg.yield %c : f32
  } -> tensor<8xf32>
  %r = linalg.mul ins(%x, %t : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Must not fire: positions are cheaper to compute in the loop that reads them than to load.

#line = affine_map<(d0) -> (d0)>

// CHECK-NOT: @prepare
// CHECK-LABEL: func.func @main(
// CHECK: linalg.index
func.func @main(%x: tensor<8xf32> {pipeline.argument = 0 : i64}) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %t = linalg.generic {indexing_maps = [#line], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    linalg.yield %f : f32
  } -> tensor<8xf32>
  %r = linalg.mul ins(%x, %t : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
