// RUN: pipeline-opt %s --flush-softmax-underflow | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#kept = affine_map<(d0, d1) -> (d0, 0)>
#left = affine_map<(d0, d1, d2) -> (d0, d2)>
#right = affine_map<(d0, d1, d2) -> (d2, d1)>
#product = affine_map<(d0, d1, d2) -> (d0, d1)>

// exp(d) below 8 * 2**-126 is 0 where a product alone reads the quotients.

// CHECK-LABEL: func.func @attention
// CHECK: %[[D:.*]] = arith.subf
// CHECK-NEXT: %[[E:.*]] = math.exp %[[D]]
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[LIMIT:.*]] = arith.constant -8.525710e+01
// CHECK: %[[LOW:.*]] = arith.cmpf olt, %[[D]], %[[LIMIT]]
// CHECK-NEXT: %[[P:.*]] = arith.select %[[LOW]], %[[ZERO]], %[[E]]
// CHECK-NEXT: linalg.yield %[[P]]
func.func @attention(%x: tensor<4x8xf32>, %v: tensor<8x5xf32>, %m: tensor<4xf32>, %s: tensor<4x1xf32>, %out: tensor<4x8xf32>, %y: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%m : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v0 = arith.maximumf %a, %o : f32
    linalg.yield %v0 : f32
  } -> tensor<4xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<4x8xf32>, tensor<4xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %v0 = math.exp %d : f32
    linalg.yield %v0 : f32
  } -> tensor<4x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<4x8xf32>) outs(%s : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v0 = arith.addf %a, %o : f32
    linalg.yield %v0 : f32
  } -> tensor<4x1xf32>
  %r = linalg.generic {indexing_maps = [#id, #kept, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<4x8xf32>, tensor<4x1xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v0 = arith.divf %a, %b : f32
    linalg.yield %v0 : f32
  } -> tensor<4x8xf32>
  %z = linalg.generic {indexing_maps = [#left, #right, #product], iterator_types = ["parallel", "parallel", "reduction"]} ins(%r, %v : tensor<4x8xf32>, tensor<8x5xf32>) outs(%y : tensor<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %v0 = arith.addf %o, %p : f32
    linalg.yield %v0 : f32
  } -> tensor<4x5xf32>
  return %z : tensor<4x5xf32>
}

// Must not fire: the weights are a result, too, of which somebody may take logarithms.

// CHECK-LABEL: func.func @with_weights
// CHECK-NOT: arith.cmpf
func.func @with_weights(%x: tensor<4x8xf32>, %v: tensor<8x5xf32>, %m: tensor<4xf32>, %s: tensor<4x1xf32>, %out: tensor<4x8xf32>, %y: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x8xf32>) {
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%m : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v0 = arith.maximumf %a, %o : f32
    linalg.yield %v0 : f32
  } -> tensor<4xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<4x8xf32>, tensor<4xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %v0 = math.exp %d : f32
    linalg.yield %v0 : f32
  } -> tensor<4x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<4x8xf32>) outs(%s : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v0 = arith.addf %a, %o : f32
    linalg.yield %v0 : f32
  } -> tensor<4x1xf32>
  %r = linalg.generic {indexing_maps = [#id, #kept, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<4x8xf32>, tensor<4x1xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v0 = arith.divf %a, %b : f32
    linalg.yield %v0 : f32
  } -> tensor<4x8xf32>
  %z = linalg.generic {indexing_maps = [#left, #right, #product], iterator_types = ["parallel", "parallel", "reduction"]} ins(%r, %v : tensor<4x8xf32>, tensor<8x5xf32>) outs(%y : tensor<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %v0 = arith.addf %o, %p : f32
    linalg.yield %v0 : f32
  } -> tensor<4x5xf32>
  return %z, %r : tensor<4x5xf32>, tensor<4x8xf32>
}

// Must not fire: a logarithm stands between the weights and the product.

// CHECK-LABEL: func.func @logarithm
// CHECK-NOT: arith.cmpf
func.func @logarithm(%x: tensor<4x8xf32>, %v: tensor<8x5xf32>, %m: tensor<4xf32>, %s: tensor<4x1xf32>, %out: tensor<4x8xf32>, %y: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%m : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v0 = arith.maximumf %a, %o : f32
    linalg.yield %v0 : f32
  } -> tensor<4xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<4x8xf32>, tensor<4xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %v0 = math.exp %d : f32
    linalg.yield %v0 : f32
  } -> tensor<4x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<4x8xf32>) outs(%s : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v0 = arith.addf %a, %o : f32
    linalg.yield %v0 : f32
  } -> tensor<4x1xf32>
  %r = linalg.generic {indexing_maps = [#id, #kept, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<4x8xf32>, tensor<4x1xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    %v0 = math.log %q : f32
    linalg.yield %v0 : f32
  } -> tensor<4x8xf32>
  %z = linalg.generic {indexing_maps = [#left, #right, #product], iterator_types = ["parallel", "parallel", "reduction"]} ins(%r, %v : tensor<4x8xf32>, tensor<8x5xf32>) outs(%y : tensor<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %v0 = arith.addf %o, %p : f32
    linalg.yield %v0 : f32
  } -> tensor<4x5xf32>
  return %z : tensor<4x5xf32>
}
