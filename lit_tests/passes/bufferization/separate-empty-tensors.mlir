// RUN: pipeline-opt %s --separate-empty-tensors | FileCheck %s

func.func private @f(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> {
  return %out : tensor<4xf32>
}

func.func private @g(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> {
  return %out : tensor<?xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[^:]*]]: tensor<4xf32>
// CHECK: %[[E:.*]] = tensor.empty() : tensor<4xf32>
// CHECK: %[[A:.*]] = call @f(%[[X]], %[[E]])
// CHECK: %[[F:.*]] = tensor.empty() : tensor<4xf32>
// CHECK: %[[B:.*]] = call @f(%[[A]], %[[F]])
// The loop, not its body, has memory of its own in front.
// CHECK: %[[G:.*]] = tensor.empty() : tensor<4xf32>
// CHECK: scf.for
// CHECK-NOT: tensor.empty
// CHECK: call @f(%{{.*}}, %[[G]])
// CHECK: }
// Memory of unknown size would be allocated once more.
// CHECK: %[[D:.*]] = tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK: %[[S:.*]] = call @g(%{{.*}}, %[[D]])
// CHECK: call @g(%[[S]], %[[D]])
func.func @main(%x: tensor<4xf32>, %y: tensor<?xf32>, %n: index) -> (tensor<4xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %a = call @f(%x, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = call @f(%a, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%s = %b) -> tensor<4xf32> {
    %r = func.call @f(%s, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %r : tensor<4xf32>
  }
  %d = tensor.empty(%n) : tensor<?xf32>
  %t = call @g(%y, %d) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %u = call @g(%t, %d) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %l, %u : tensor<4xf32>, tensor<?xf32>
}

// What a kernel writes to may lie on its stack.

// CHECK-LABEL: func.func @kernel
// CHECK: tensor.empty
// CHECK-NOT: tensor.empty
// CHECK: return
func.func @kernel(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %a = call @f(%x, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = call @f(%a, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// Two results of one call never share memory, in loops neither.

// CHECK-LABEL: func.func @prepare
// CHECK: %[[P:.*]] = tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK-NEXT: %[[Q:.*]] = tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK-NEXT: %[[R:.*]] = tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK-NEXT: call @h(%{{.*}}, %[[R]], %[[Q]], %[[P]])
// CHECK-NOT: tensor.empty
// CHECK: scf.for
// CHECK: %[[S:.*]] = tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK-NEXT: %[[T:.*]] = tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK-NEXT: %[[U:.*]] = tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK-NEXT: func.call @h(%{{.*}}, %[[U]], %[[T]], %[[S]])
// CHECK: return
func.func private @h(tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)

func.func @prepare(%x: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty(%n) : tensor<?xf32>
  %a:3 = call @h(%x, %e, %e, %e)
      : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  %b = call @g(%a#0, %e) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%s = %b) -> tensor<?xf32> {
    %f = tensor.empty(%n) : tensor<?xf32>
    %d:3 = func.call @h(%s, %f, %f, %f)
        : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
    scf.yield %d#2 : tensor<?xf32>
  }
  return %l, %a#1, %a#2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
