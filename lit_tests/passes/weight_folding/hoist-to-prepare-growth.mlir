// RUN: pipeline-opt %s --hoist-to-prepare=growth=50 | FileCheck %s
// RUN: pipeline-opt %s --hoist-to-prepare=growth=49 | FileCheck %s --check-prefix=LESS

// The option says how many times the weights' bytes a result may have.

// CHECK-LABEL: func.func @prepare(
// CHECK: linalg.broadcast
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<50x4xf32> {pipeline.prepared = 0 : i64})
// CHECK-NEXT: return %[[B]]

// LESS-NOT: @prepare
// LESS-LABEL: func.func @main(
// LESS: linalg.broadcast
func.func @main(%w: tensor<4xf32> {pipeline.weight = "w"}) -> tensor<50x4xf32> {
  %e = tensor.empty() : tensor<50x4xf32>
  %b = linalg.broadcast ins(%w : tensor<4xf32>) outs(%e : tensor<50x4xf32>) dimensions = [0]
  return %b : tensor<50x4xf32>
}
