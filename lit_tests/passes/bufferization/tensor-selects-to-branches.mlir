// RUN: pipeline-opt %s --tensor-selects-to-branches | FileCheck %s

// CHECK-LABEL: func.func @tensors
// CHECK-SAME: (%[[P:.*]]: i1, %[[X:.*]]: tensor<?xf32>, %[[Y:.*]]: tensor<?xf32>)
// CHECK: %[[R:.*]] = scf.if %[[P]] -> (tensor<?xf32>) {
// CHECK: scf.yield %[[X]]
// CHECK: } else {
// CHECK: scf.yield %[[Y]]
// CHECK: return %[[R]]
func.func @tensors(%p: i1, %x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %r = arith.select %p, %x, %y : tensor<?xf32>
  return %r : tensor<?xf32>
}

// Numbers are chosen as they are.

// CHECK-LABEL: func.func @numbers
// CHECK-NOT: scf.if
// CHECK: arith.select
func.func @numbers(%p: i1, %x: f32, %y: f32) -> f32 {
  %r = arith.select %p, %x, %y : f32
  return %r : f32
}
