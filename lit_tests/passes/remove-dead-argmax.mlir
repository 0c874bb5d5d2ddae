// RUN: pipeline-opt %s --split-input-file --remove-dead-argmax --remarks-filter=remove-dead-argmax 2>&1 | FileCheck %s

// The row maximum of softmax as torch-mlir lowers it: the index beside it is never used.

#rows = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK: dead-argmax.mlir:[[#LINE:]]
// CHECK-LABEL: func.func @row_max
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[MAX:.*]]: tensor<4xf32>, %[[INDEX:.*]]: tensor<4xi64>)
func.func @row_max(%x: tensor<4x8xf32>, %max: tensor<4xf32>, %index: tensor<4xi64>) -> tensor<4xf32> {
  %r:2 = linalg.generic {indexing_maps = [#rows, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%max, %index : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %m: f32, %i: i64):
    %k = linalg.index 1 : index
    %k64 = arith.index_cast %k : index to i64
    %greater = arith.cmpf ogt, %in, %m : f32
    %new = arith.maximumf %in, %m : f32
    %new_index = arith.select %greater, %k64, %i : i64
    linalg.yield %new, %new_index : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#0 : tensor<4xf32>
}
