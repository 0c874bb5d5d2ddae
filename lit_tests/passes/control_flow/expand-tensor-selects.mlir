// RUN: pipeline-opt %s --expand-tensor-selects | FileCheck %s
// RUN: pipeline-opt %s --expand-tensor-selects --remarks-filter=expand-tensor-selects --verify-diagnostics

// A small one fuses; one that a loop carries shares memory with nothing.

// CHECK-LABEL: func.func @elements
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>, %[[P:.*]]: tensor<9999xf32>, %[[Q:.*]]: tensor<9999xf32>, %{{.*}}: index)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[Y]] :
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.select %[[C]], %[[A]], %[[B]] : f32
// CHECK: scf.for {{.*}} iter_args(%[[H:.*]] = %[[P]])
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[Q]], %[[H]] :
// CHECK: scf.yield %[[N]]
func.func @elements(%c: i1, %x: tensor<4xf32>, %y: tensor<4xf32>, %p: tensor<9999xf32>, %q: tensor<9999xf32>, %n: index)
    -> (tensor<4xf32>, tensor<9999xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{passed: chooses element by element}}
  %s = arith.select %c, %x, %y : tensor<4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %p) -> tensor<9999xf32> {
    // expected-remark @below {{passed: chooses element by element}}
    %next = arith.select %c, %q, %h : tensor<9999xf32>
    scf.yield %next : tensor<9999xf32>
  }
  return %s, %r : tensor<4xf32>, tensor<9999xf32>
}

// What is updated, and has a size that is known at run time only, is a copy.

// CHECK-LABEL: func.func @copy
// CHECK: %[[S:.*]] = arith.select
// CHECK-NEXT: %[[T:.*]] = bufferization.alloc_tensor() copy(%[[S]])
// CHECK-NEXT: tensor.insert %{{.*}} into %[[T]]
func.func @copy(%c: i1, %x: tensor<?xf32>, %y: tensor<?xf32>, %v: f32) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  // expected-remark @below {{passed: its result is copied: it may be written to}}
  %s = arith.select %c, %x, %y : tensor<?xf32>
  %r = tensor.insert %v into %s[%c0] : tensor<?xf32>
  return %r : tensor<?xf32>
}

// Must not fire: a large one that is only read; numbers; conditions of each element.

// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-3: arith.select
// CHECK-NOT: bufferization.alloc_tensor
// CHECK: linalg.exp
func.func @left_alone(%c: i1, %x: tensor<9999xf32>, %y: tensor<9999xf32>, %u: f32, %m: tensor<4xi1>, %k: tensor<4xf32>)
    -> (tensor<9999xf32>, f32, tensor<4xf32>) {
  // expected-remark @below {{missed: chooses an address: its result is only read}}
  %s = arith.select %c, %x, %y : tensor<9999xf32>
  %v = arith.select %c, %u, %u : f32
  %w = arith.select %m, %k, %k : tensor<4xi1>, tensor<4xf32>
  %e = tensor.empty() : tensor<9999xf32>
  %r = linalg.exp ins(%s : tensor<9999xf32>) outs(%e : tensor<9999xf32>) -> tensor<9999xf32>
  return %r, %v, %w : tensor<9999xf32>, f32, tensor<4xf32>
}
