// RUN: pipeline-opt %s --split-input-file --pass-pipeline="builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline,lower-tm-tensor)" | FileCheck %s

// A running sum: one marked loop over the lines, an inner one that carries the sum. The dialect tm_tensor is loaded by
// torch-mlir's pipeline alone, so that the op is written in torch's here.

// CHECK-LABEL: func.func @cumsum
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
// CHECK: %[[R:.*]]:2 = scf.for %[[I:.*]] = {{.*}} iter_args(%[[O:.*]] = %{{.*}}, %[[A:.*]] = %{{.*}}) -> (tensor<4x8xf32>, tensor<4xf32>)
// CHECK: %[[FIRST:.*]] = tensor.extract %[[A]][%[[I]]]
// CHECK: scf.for %[[J:.*]] = {{.*}} iter_args(%{{.*}} = %[[O]], %[[SUM:.*]] = %[[FIRST]])
// CHECK: %[[E:.*]] = tensor.extract %[[X]][%[[I]], %[[J]]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[E]], %[[SUM]]
// CHECK: tensor.insert %[[NEXT]]
// CHECK: pipeline.kernel = "scan"
// CHECK: return %[[R]]#0
func.func @cumsum(%x: !torch.vtensor<[4,8],f32>) -> !torch.vtensor<[4,8],f32> {
  %dim = torch.constant.int 1
  %none = torch.constant.none
  %r = torch.aten.cumsum %x, %dim, %none : !torch.vtensor<[4,8],f32>, !torch.int, !torch.none -> !torch.vtensor<[4,8],f32>
  return %r : !torch.vtensor<[4,8],f32>
}

// -----

// Must not fire: loops that are there stay as they are, unmarked.

// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK-NOT: pipeline.kernel
// CHECK: return
func.func @loop(%n: index, %x: tensor<4xf32>, %v: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<4xf32> {
    %new = tensor.insert %v into %t[%i] : tensor<4xf32>
    scf.yield %new : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
