// RUN: pipeline-opt %s --split-input-file --merge-scale-shifts | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --merge-scale-shifts --remarks-filter=merge-scale-shifts --verify-diagnostics

// A norm on its own: one multiply and one add, scale and shift from weights.

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d1)>

// CHECK-LABEL: func.func @lone_norm(
// CHECK: %[[SCALE:[0-9]+]] = linalg.generic {{.*}} ins(%arg3, %arg2 :
// CHECK: arith.mulf
// CHECK: %[[MEAN:[0-9]+]] = linalg.generic {{.*}} ins(%arg1, %{{[0-9]+}} :
// CHECK: arith.mulf
// CHECK: %[[SHIFT:[0-9]+]] = linalg.generic {{.*}} ins(%arg4, %[[MEAN]] :
// CHECK: arith.subf
// CHECK: %[[Y:[0-9]+]] = linalg.generic {{.*}} ins(%arg0, %[[SCALE]], %[[SHIFT]] :
// CHECK: %[[P:[0-9]+]] = arith.mulf
// CHECK: arith.addf %[[P]]
// CHECK: return %[[Y]]
func.func @lone_norm(%y: tensor<2x4x4xf32>,
    %m: tensor<4xf32> {pipeline.weight = "m"},
    %rstd: tensor<4xf32> {pipeline.weight = "rstd"},
    %g: tensor<4xf32> {pipeline.weight = "g"},
    %b: tensor<4xf32> {pipeline.weight = "b"}) -> tensor<2x4x4xf32> {
  %e = tensor.empty() : tensor<2x4x4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %m : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.subf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  %1 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %rstd : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  %2 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%1, %g : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  // expected-remark @below {{passed: merged 4 operations per element into 2}}
  %3 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%2, %b : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.addf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  return %3 : tensor<2x4x4xf32>
}

// -----

// Must not fire: a multiply and an add are what they are.

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d1)>

// CHECK-LABEL: func.func @nothing_saved(
// CHECK: %[[P:[0-9]+]] = linalg.generic {{.*}} ins(%arg0, %arg1 :
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg2 :
func.func @nothing_saved(%y: tensor<2x4x4xf32>,
    %s: tensor<4xf32> {pipeline.weight = "s"},
    %t: tensor<4xf32> {pipeline.weight = "t"}) -> tensor<2x4x4xf32> {
  %e = tensor.empty() : tensor<2x4x4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %s : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  %1 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %t : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.addf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  return %1 : tensor<2x4x4xf32>
}

// -----

// Must not fire: constants alone keep the arithmetic as it was written.

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// CHECK-LABEL: func.func @constants(
// CHECK: %[[P:[0-9]+]] = arith.mulf %{{.*}}, %{{.*}} :
// CHECK: arith.mulf %[[P]], %{{.*}} :
func.func @constants(%y: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %e = tensor.empty() : tensor<2x4x4xf32>
  %c2 = arith.constant 2.0 : f32
  %c3 = arith.constant 3.0 : f32
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : tensor<2x4x4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %p = arith.mulf %in, %c2 : f32
    %r = arith.mulf %p, %c3 : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  return %0 : tensor<2x4x4xf32>
}

// -----

// Must not fire: together, numbers along two dims would be one for each pair.

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d1)>
#last = affine_map<(d0, d1, d2) -> (d2)>

// CHECK-LABEL: func.func @two_dims(
// CHECK: %[[P:[0-9]+]] = linalg.generic {{.*}} ins(%arg0, %arg1 :
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg2 :
func.func @two_dims(%y: tensor<2x4x4xf32>,
    %s: tensor<4xf32> {pipeline.weight = "s"},
    %t: tensor<4xf32> {pipeline.weight = "t"}) -> tensor<2x4x4xf32> {
  %e = tensor.empty() : tensor<2x4x4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %s : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  %1 = linalg.generic {indexing_maps = [#all, #last, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %t : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  return %1 : tensor<2x4x4xf32>
}

// -----

// Must not fire: something else reads what is between.

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d1)>

// CHECK-LABEL: func.func @another_user(
// CHECK: %[[P:[0-9]+]] = linalg.generic {{.*}} ins(%arg0, %arg1 :
// CHECK: %[[Q:[0-9]+]] = linalg.generic {{.*}} ins(%[[P]], %arg2 :
// CHECK: return %[[P]], %[[Q]]
func.func @another_user(%y: tensor<2x4x4xf32>,
    %s: tensor<4xf32> {pipeline.weight = "s"},
    %t: tensor<4xf32> {pipeline.weight = "t"}) -> (tensor<2x4x4xf32>, tensor<2x4x4xf32>) {
  %e = tensor.empty() : tensor<2x4x4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %s : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  %1 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %t : tensor<2x4x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%in: f32, %v: f32, %out: f32):
    %r = arith.mulf %in, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x4x4xf32>
  return %0, %1 : tensor<2x4x4xf32>, tensor<2x4x4xf32>
}
