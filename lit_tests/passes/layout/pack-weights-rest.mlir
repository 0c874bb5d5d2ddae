// RUN: pipeline-opt %s --pack-weights="columns=4 least-bytes=64" --canonicalize | FileCheck %s

// 7 columns are two panels of 4, the last of which has a column of zeros that is never read. The product's own columns
// stay one loop.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[PACKED:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 4, d2, d1 mod 4)>
// CHECK-DAG: #[[ORDER:.*]] = affine_map<(d0, d1, d2) -> (d1, d0, d2)>

// CHECK: func.func private @pack_0(%[[W:.*]]: tensor<6x7xf32>, %[[P:.*]]: tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[FIRST:.*]] = tensor.extract_slice %[[W]][0, 0] [6, 4] [1, 1]
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#[[ORDER]], #
// CHECK: %[[HALF:.*]] = tensor.insert_slice %{{.*}} into %[[P]][0, 0, 0] [1, 6, 4]
// CHECK: linalg.fill ins(%[[ZERO]] : f32)
// CHECK: %[[REST:.*]] = tensor.extract_slice %[[W]][0, 4] [6, 3] [1, 1]
// CHECK: linalg.generic
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 0] [1, 6, 3]
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[1, 0, 0] [1, 6, 4]

// CHECK: func.func private @product(%[[X:.*]]: tensor<5x6xf32>, %[[WEIGHT:.*]]: tensor<2x6x4xf32>, %[[RESULT:.*]]: tensor<5x7xf32>)
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#{{[^,]*}}, #[[PACKED]], #
// CHECK-SAME: ins(%[[X]], %[[WEIGHT]] : tensor<5x6xf32>, tensor<2x6x4xf32>) outs(%[[RESULT]] : tensor<5x7xf32>)
func.func private @product(%x: tensor<5x6xf32>, %w: tensor<6x7xf32>, %out: tensor<5x7xf32>) -> tensor<5x7xf32> attributes {pipeline.kernel = "matmul"} {
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x6xf32>, tensor<6x7xf32>) outs(%out : tensor<5x7xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x7xf32>
  return %p : tensor<5x7xf32>
}

func.func @main(%x: tensor<5x6xf32> {pipeline.argument = 0 : i64}, %w: tensor<6x7xf32> {pipeline.weight = "w"}) -> tensor<5x7xf32> {
  %e = tensor.empty() : tensor<5x7xf32>
  %r = call @product(%x, %w, %e) : (tensor<5x6xf32>, tensor<6x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  return %r : tensor<5x7xf32>
}
