// RUN: pipeline-opt %s | pipeline-opt | FileCheck %s
// RUN: pipeline-opt %s --mlir-print-op-generic | pipeline-opt | FileCheck %s

// CHECK-LABEL: func.func @group
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[N:.*]]: index)
// CHECK-NEXT: %[[R:.*]] = "fusion.group"(%[[X]], %[[N]])
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4xf32>, %{{.*}}: index):
// CHECK-NEXT: %[[E:.*]] = math.exp %[[A]] : tensor<4xf32>
// CHECK-NEXT: "fusion.yield"(%[[E]]) : (tensor<4xf32>) -> ()
// CHECK-NEXT: {kind = "elementwise", label = "exp"} : (tensor<4xf32>, index) -> tensor<4xf32>
// CHECK-NEXT: return %[[R]]
func.func @group(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %r = "fusion.group"(%x, %n) ({
  ^bb0(%a: tensor<4xf32>, %b: index):
    %e = math.exp %a : tensor<4xf32>
    "fusion.yield"(%e) : (tensor<4xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<4xf32>, index) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
