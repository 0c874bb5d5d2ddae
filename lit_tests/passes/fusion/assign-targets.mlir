// RUN: pipeline-opt %s --assign-targets=rules=%S/Inputs/two-targets.yaml | FileCheck %s
// RUN: pipeline-opt %s --assign-targets=rules=%S/Inputs/two-targets.yaml --remarks-filter=assign-targets --verify-diagnostics
// RUN: pipeline-opt %s --assign-targets | FileCheck %s --check-prefix=PLAIN

// The product goes by the table in the file beside, the exp by that in the part; also inside of a branch. What is marked
// keeps its mark. Must not fire: the log belongs to no part, nor does anything by a table without parts.

// CHECK-LABEL: func.func @parts
// CHECK-NEXT: linalg.matmul {pipeline.target = "npu"}
// CHECK-NEXT: scf.if
// CHECK-NEXT: linalg.exp {pipeline.target = "dsp"}
// CHECK: linalg.exp {pipeline.target = "mine"}
// CHECK-NEXT: linalg.log ins

// PLAIN-LABEL: func.func @parts
// PLAIN-NEXT: linalg.matmul ins
// PLAIN-NEXT: scf.if
// PLAIN-NEXT: linalg.exp ins
// PLAIN: linalg.exp {pipeline.target = "mine"}
// PLAIN-NEXT: linalg.log ins
func.func @parts(%c: i1, %a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-remark @below {{goes by the fusion rules of npu}}
  %0 = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = scf.if %c -> tensor<4x4xf32> {
    // expected-remark @below {{goes by the fusion rules of dsp}}
    %e = linalg.exp ins(%0 : tensor<4x4xf32>) outs(%0 : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %e : tensor<4x4xf32>
  } else {
    scf.yield %0 : tensor<4x4xf32>
  }
  %2 = linalg.exp {pipeline.target = "mine"} ins(%1 : tensor<4x4xf32>) outs(%1 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = linalg.log ins(%2 : tensor<4x4xf32>) outs(%2 : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}
