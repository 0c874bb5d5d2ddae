// A dialect of a user's, from a plugin: it is parsed, verified, printed, and lowered by a pass beside it.

// RUN: pipeline-opt %s --load-plugin=%S/Inputs/toy.py | pipeline-opt --load-plugin=%S/Inputs/toy.py | FileCheck %s --check-prefix=ROUND
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/toy.py --canonicalize --lower-toy=callee=out --cse | FileCheck %s
// RUN: not pipeline-opt %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: pipeline-opt: error: {{.*}}toy.mlir:22:8: unknown operation 'toy.square'

// ROUND: %[[S:.*]] = "toy.square"(%{{.*}}) : (tensor<4x?xf32>) -> tensor<4x?xf32>
// ROUND: "toy.report"(%[[S]], %[[S]]) : (tensor<4x?xf32>, tensor<4x?xf32>) -> ()

// CHECK: func.func private @out(tensor<4x?xf32>, tensor<4x?xf32>)
// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[X:.*]]: tensor<4x?xf32>)
// CHECK-NEXT: %[[S:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]} ins(%[[X]] : tensor<4x?xf32>) outs(%[[X]] : tensor<4x?xf32>)
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[E]], %[[E]] : f32
// CHECK-NEXT: linalg.yield %[[P]] : f32
// CHECK: call @out(%[[S]], %[[S]]) : (tensor<4x?xf32>, tensor<4x?xf32>) -> ()
func.func @f(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %s = "toy.square"(%x) : (tensor<4x?xf32>) -> tensor<4x?xf32>
  "toy.report"(%s, %s) : (tensor<4x?xf32>, tensor<4x?xf32>) -> ()
  return %s : tensor<4x?xf32>
}
