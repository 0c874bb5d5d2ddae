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

// -----

// A kernel that computes into its destination in another shape is given the caller's memory.

// CHECK: func.func @main(%{{[^:]*}}: tensor<2x4xf32> {{{.*}}}, %[[OUT:[^:]*]]: memref<8xf32>) attributes
// CHECK: %[[PLACE:.*]] = bufferization.to_tensor %[[OUT]]
// CHECK: call @in_rows(%{{.*}}, %[[PLACE]])
func.func @main(%x: tensor<2x4xf32>) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  %y = call @in_rows(%x, %empty) : (tensor<2x4xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

func.func private @in_rows(%x: tensor<2x4xf32>, %out: tensor<8xf32>) -> tensor<8xf32> {
  %rows = tensor.expand_shape %out [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %y = linalg.exp ins(%x : tensor<2x4xf32>) outs(%rows : tensor<2x4xf32>) -> tensor<2x4xf32>
  %flat = tensor.collapse_shape %y [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  return %flat : tensor<8xf32>
}

// -----

// Not one that others read, too, nor one that is handed out in another shape.

// CHECK: func.func @main(%{{[^:]*}}: tensor<2x4xf32> {{{.*}}}, %{{[^:]*}}: memref<8xf32>, %{{[^:]*}}: memref<2x4xf32>)
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<8xf32>
// CHECK: %[[OTHER:.*]] = tensor.empty() : tensor<8xf32>
// CHECK: call @doubled(%{{.*}}, %[[EMPTY]])
// CHECK: call @seen_in_rows(%{{.*}}, %[[OTHER]])
func.func @main(%x: tensor<2x4xf32>) -> (tensor<8xf32>, tensor<2x4xf32>) {
  %empty = tensor.empty() : tensor<8xf32>
  %other = tensor.empty() : tensor<8xf32>
  %y = call @doubled(%x, %empty) : (tensor<2x4xf32>, tensor<8xf32>) -> tensor<8xf32>
  %rows = call @seen_in_rows(%x, %other) : (tensor<2x4xf32>, tensor<8xf32>) -> tensor<2x4xf32>
  return %y, %rows : tensor<8xf32>, tensor<2x4xf32>
}

func.func private @doubled(%x: tensor<2x4xf32>, %out: tensor<8xf32>) -> tensor<8xf32> {
  %rows = tensor.collapse_shape %x [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  %fresh = tensor.empty() : tensor<8xf32>
  %y = linalg.add ins(%rows, %out : tensor<8xf32>, tensor<8xf32>) outs(%fresh : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

func.func private @seen_in_rows(%x: tensor<2x4xf32>, %out: tensor<8xf32>) -> tensor<2x4xf32> {
  %rows = tensor.expand_shape %out [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %y = linalg.exp ins(%x : tensor<2x4xf32>) outs(%rows : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// What a kernel writes parts of is computed in the caller's memory by the kernel before; not where that is read, too.

// CHECK: func.func @main(%{{[^:]*}}: tensor<8xf32> {{{.*}}}, %[[OUT:[^:]*]]: memref<8xf32>, %{{[^:]*}}: memref<8xf32>, %{{[^:]*}}: memref<f32>)
// CHECK: %[[PLACE:.*]] = bufferization.to_tensor %[[OUT]]
// CHECK: %[[OTHER:.*]] = tensor.empty() : tensor<8xf32>
// CHECK: call @exponents(%{{.*}}, %[[PLACE]])
// CHECK: call @exponents(%{{.*}}, %[[OTHER]])
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<f32>) {
  %empty = tensor.empty() : tensor<8xf32>
  %other = tensor.empty() : tensor<8xf32>
  %i = arith.constant 3 : index
  %y = call @exponents(%x, %empty) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %z = call @first_set(%y) : (tensor<8xf32>) -> tensor<8xf32>
  %v = call @exponents(%x, %other) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %e = tensor.extract %v[%i] : tensor<8xf32>
  %s = tensor.from_elements %e : tensor<f32>
  %w = call @first_set(%v) : (tensor<8xf32>) -> tensor<8xf32>
  return %z, %w, %s : tensor<8xf32>, tensor<8xf32>, tensor<f32>
}

func.func private @exponents(%x: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32> {
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%out : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

func.func private @first_set(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %i = arith.constant 0 : index
  %y = tensor.insert %zero into %x[%i] : tensor<8xf32>
  return %y : tensor<8xf32>
}
