// RUN: pipeline-opt %s --add-workspace | FileCheck %s
// RUN: pipeline-opt %s --add-workspace=profile=true | FileCheck %s --check-prefix=TIMED

// Memory for temporaries comes behind the model's arguments, and then that for times; other functions get none.

// CHECK: func.func @main(%{{.*}}: tensor<4xf32> {pipeline.argument = 0 : i64}, %{{.*}}: memref<?xi8> {pipeline.workspace}) -> tensor<4xf32>
// TIMED: func.func @main(%{{.*}}: tensor<4xf32> {{.*}}, %{{.*}}: memref<?xi8> {pipeline.workspace}, %{{.*}}: memref<?xi64> {pipeline.profile}) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32> {pipeline.argument = 0 : i64}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK: func.func @prepare(%{{[^:]*}}: tensor<4xf32>) -> tensor<4xf32>
// TIMED: func.func @prepare(%{{[^:]*}}: tensor<4xf32>) -> tensor<4xf32>
func.func @prepare(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
