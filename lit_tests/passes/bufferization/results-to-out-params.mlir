// RUN: pipeline-opt %s --results-to-out-params --split-input-file | FileCheck %s

// Results of known size are written where the caller says, others are handed out; the tensors that come in are not
// written to.

// CHECK: func.func @main(%[[X:.*]]: tensor<4xf32> {bufferization.writable = false}, %[[Y:.*]]: tensor<?xf32> {bufferization.writable = false}, %[[OUT:.*]]: memref<4xf32>) -> tensor<?xf32>
// CHECK-SAME: pipeline.places_of_results = ["parameter", "result"]
// CHECK: bufferization.materialize_in_destination %[[X]] in restrict writable %[[OUT]]
// CHECK: return %[[Y]] : tensor<?xf32>
func.func @main(%x: tensor<4xf32>, %y: tensor<?xf32>) -> (tensor<4xf32>, tensor<?xf32>) {
  return %x, %y : tensor<4xf32>, tensor<?xf32>
}

// CHECK: func.func @prepare(%{{.*}}: tensor<4xf32> {bufferization.writable = false}, %{{.*}}: memref<4xf32>)
// CHECK-SAME: pipeline.places_of_results = ["parameter"]
func.func @prepare(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// Kernels stay as they are.

// CHECK: func.func @kernel(%{{[^:]*}}: tensor<4xf32>) -> tensor<4xf32>
func.func @kernel(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// The new value of an argument goes to the argument.

// CHECK: func.func @main(%[[X:.*]]: memref<4xf32> {{{.*}}pipeline.in_place = 0 : i64{{.*}}}, %[[Y:.*]]: tensor<4xf32> {bufferization.writable = false}
// CHECK-SAME: pipeline.places_of_results = ["argument"]
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[X]]
// CHECK: return{{$}}
func.func @main(%x: tensor<4xf32> {pipeline.in_place = 0 : i64}, %y: tensor<4xf32>) -> tensor<4xf32> {
  return %y : tensor<4xf32>
}
