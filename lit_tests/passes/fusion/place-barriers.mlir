// RUN: pipeline-opt %s --place-barriers | FileCheck %s

// Behind each tensor of an op with the mark, also in a branch. Must not fire: the index of such an op is no tensor, and
// the log has no mark.

// CHECK-LABEL: func.func @marks
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<?xf32>)
// CHECK-NOT: pipeline.stop_fusion
// CHECK: %[[N:.*]] = tensor.dim
// CHECK-NEXT: %[[E:.*]] = linalg.exp ins(%[[X]] :
// CHECK-NEXT: %[[B:.*]] = "fusion.barrier"(%[[E]]) : (tensor<?xf32>) -> tensor<?xf32>
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[T:.*]] = linalg.tanh ins(%[[B]] :
// CHECK-NEXT: %[[BT:.*]] = "fusion.barrier"(%[[T]])
// CHECK-NEXT: %[[L:.*]] = linalg.log ins(%[[BT]] :
// CHECK-NEXT: scf.yield %[[L]]
// CHECK-NOT: fusion.barrier
// CHECK: return
func.func @marks(%c: i1, %x: tensor<?xf32>) -> (tensor<?xf32>, index) {
  %zero = arith.constant 0 : index
  %n = tensor.dim {pipeline.stop_fusion} %x, %zero : tensor<?xf32>
  %e = linalg.exp {pipeline.stop_fusion} ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.if %c -> tensor<?xf32> {
    %t = linalg.tanh {pipeline.stop_fusion} ins(%e : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %l = linalg.log ins(%t : tensor<?xf32>) outs(%t : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %l : tensor<?xf32>
  } else {
    scf.yield %e : tensor<?xf32>
  }
  return %r, %n : tensor<?xf32>, index
}
