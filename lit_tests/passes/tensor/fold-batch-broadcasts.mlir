// RUN: pipeline-opt %s --fold-batch-broadcasts | FileCheck %s
// RUN: pipeline-opt %s --fold-batch-broadcasts --remarks-filter=fold-batch-broadcasts --verify-diagnostics

#kn = affine_map<(d0, d1, d2) -> (d1, d2)>
#bk = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// The rows of all matrices of the batch are multiplied with one matrix.

// CHECK-LABEL: func.func @last_tokens
// CHECK-SAME: (%[[X:.*]]: tensor<2x1x32xf32>, %[[W:.*]]: tensor<32x97xf32>
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2]] : tensor<2x1x32xf32> into tensor<2x32xf32>
// CHECK: %[[Y:.*]] = linalg.matmul ins(%[[ROWS]], %[[W]] : tensor<2x32xf32>, tensor<32x97xf32>)
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0, 1], [2]] output_shape [2, 1, 97]
func.func @last_tokens(%x: tensor<2x1x32xf32>, %w: tensor<32x97xf32>, %e: tensor<2x32x97xf32>, %o: tensor<2x1x97xf32>)
    -> tensor<2x1x97xf32> {
  %b = linalg.generic {indexing_maps = [#kn, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<32x97xf32>) outs(%e : tensor<2x32x97xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x32x97xf32>
  // expected-remark @below {{passed: reads one matrix for the whole batch}}
  %r = linalg.batch_matmul ins(%x, %b : tensor<2x1x32xf32>, tensor<2x32x97xf32>) outs(%o : tensor<2x1x97xf32>) -> tensor<2x1x97xf32>
  return %r : tensor<2x1x97xf32>
}

// CHECK-LABEL: func.func @any_length
// CHECK-SAME: (%[[X:.*]]: tensor<?x?x32xf32>, %[[W:.*]]: tensor<32x97xf32>
// CHECK: tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2]] : tensor<?x?x32xf32> into tensor<?x32xf32>
// CHECK: linalg.matmul
// CHECK: tensor.expand_shape {{.*}} : tensor<?x97xf32> into tensor<?x?x97xf32>
func.func @any_length(%x: tensor<?x?x32xf32>, %w: tensor<32x97xf32>, %e: tensor<?x32x97xf32>, %o: tensor<?x?x97xf32>)
    -> tensor<?x?x97xf32> {
  %b = linalg.broadcast ins(%w : tensor<32x97xf32>) outs(%e : tensor<?x32x97xf32>) dimensions = [0]
  // expected-remark @below {{passed: reads one matrix for the whole batch}}
  %r = linalg.batch_matmul ins(%x, %b : tensor<?x?x32xf32>, tensor<?x32x97xf32>) outs(%o : tensor<?x?x97xf32>) -> tensor<?x?x97xf32>
  return %r : tensor<?x?x97xf32>
}

// Must not fire: matrices that differ, a batch of one, rows that are repeated, a transposed factor.

// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-4: linalg.batch_matmul
// CHECK-NOT: linalg.matmul
func.func @left_alone(%x: tensor<2x3x8xf32>, %v: tensor<2x8x5xf32>, %w: tensor<8x5xf32>, %one: tensor<1x3x8xf32>,
    %e1: tensor<1x8x5xf32>, %rows: tensor<2x8xf32>, %e: tensor<2x8x5xf32>, %t: tensor<5x8xf32>, %et: tensor<2x5x8xf32>,
    %o: tensor<2x3x5xf32>, %o1: tensor<1x3x5xf32>)
    -> (tensor<2x3x5xf32>, tensor<1x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>) {
  %a = linalg.batch_matmul ins(%x, %v : tensor<2x3x8xf32>, tensor<2x8x5xf32>) outs(%o : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %b1 = linalg.broadcast ins(%w : tensor<8x5xf32>) outs(%e1 : tensor<1x8x5xf32>) dimensions = [0]
  %b = linalg.batch_matmul ins(%one, %b1 : tensor<1x3x8xf32>, tensor<1x8x5xf32>) outs(%o1 : tensor<1x3x5xf32>) -> tensor<1x3x5xf32>
  %c1 = linalg.generic {indexing_maps = [#bk, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%rows : tensor<2x8xf32>) outs(%e : tensor<2x8x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x8x5xf32>
  %c = linalg.batch_matmul ins(%x, %c1 : tensor<2x3x8xf32>, tensor<2x8x5xf32>) outs(%o : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %d1 = linalg.broadcast ins(%t : tensor<5x8xf32>) outs(%et : tensor<2x5x8xf32>) dimensions = [0]
  %d = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>,
      affine_map<(b, m, n, k) -> (b, m, n)>] ins(%x, %d1 : tensor<2x3x8xf32>, tensor<2x5x8xf32>) outs(%o : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %a, %b, %c, %d : tensor<2x3x5xf32>, tensor<1x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>
}
