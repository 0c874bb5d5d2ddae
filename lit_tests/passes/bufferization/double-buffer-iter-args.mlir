// RUN: pipeline-opt %s --double-buffer-iter-args | FileCheck %s
// RUN: pipeline-opt %s --double-buffer-iter-args --remarks-filter=double-buffer-iter-args --verify-diagnostics

#id = affine_map<(d0) -> (d0)>

func.func private @add(%x: tensor<8xf32>, %y: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32>
    attributes {pipeline.kernel = "elementwise"} {
  %r = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%out : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// A round computes into the spare buffer; the places change hands. The initial value is copied once.

// CHECK-LABEL: func.func @recurrence
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>, %[[N:.*]]: index)
// CHECK: %[[POOL:.*]] = memref.alloc() {alignment = 64 : i64} : memref<128xi8>
// CHECK-NEXT: %[[A:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[B:.*]] = arith.constant 64 : index
// CHECK-NEXT: %[[FIRST:.*]] = memref.view %[[POOL]][%[[A]]][] : memref<128xi8> to memref<8xf32>
// CHECK-NEXT: bufferization.materialize_in_destination %[[X]] in restrict writable %[[FIRST]]
// CHECK-NEXT: %[[R:.*]]:2 = scf.for %{{.*}} = %{{.*}} to %[[N]] step %{{.*}} iter_args(%[[CUR:.*]] = %[[A]], %[[SPARE:.*]] = %[[B]]) -> (index, index)
// CHECK-NEXT: %[[HERE:.*]] = memref.view %[[POOL]][%[[CUR]]][]
// CHECK-NEXT: %[[H:.*]] = bufferization.to_tensor %[[HERE]] restrict :
// CHECK-NEXT: %[[THERE:.*]] = memref.view %[[POOL]][%[[SPARE]]][]
// CHECK-NEXT: %[[OUT:.*]] = bufferization.to_tensor %[[THERE]] restrict writable
// CHECK-NEXT: %[[NEXT:.*]] = func.call @add(%[[H]], %[[X]], %[[OUT]])
// CHECK-NEXT: bufferization.materialize_in_destination %[[NEXT]] in restrict writable %[[THERE]]
// CHECK-NEXT: scf.yield %[[SPARE]], %[[CUR]]
// CHECK: %[[LAST:.*]] = memref.view %[[POOL]][%[[R]]#0][]
// CHECK-NEXT: %[[RESULT:.*]] = bufferization.to_tensor %[[LAST]] restrict :
// CHECK-NEXT: return %[[RESULT]]
func.func @recurrence(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{passed: 1 carried tensors take turns in 2 buffers}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %next = func.call @add(%h, %x, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// a, b = b, a + b: the buffer of b is that of a in the next round, that of a is spare. The initial value of a, which
// nobody else reads, is computed into its buffer.

// CHECK-LABEL: func.func @fibonacci
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>, %[[GO:.*]]: tensor<i1>)
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<192xi8>
// CHECK: %[[FIRST:.*]] = bufferization.to_tensor %{{.*}} restrict writable
// CHECK: call @add(%[[X]], %[[X]], %[[FIRST]])
// CHECK: scf.while (%[[A:.*]] = %c0{{.*}}, %[[B:.*]] = %{{.*}}, %[[SPARE:.*]] = %{{.*}}) : (index, index, index)
// CHECK: scf.condition(%{{.*}}) %[[A]], %[[B]], %[[SPARE]]
// CHECK: ^bb0(%[[A:.*]]: index, %[[B:.*]]: index, %[[SPARE:.*]]: index):
// CHECK: call @add
// CHECK: scf.yield %[[B]], %[[SPARE]], %[[A]]
func.func @fibonacci(%x: tensor<8xf32>, %go: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e0 = tensor.empty() : tensor<8xf32>
  %start = func.call @add(%x, %x, %e0) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  // expected-remark @below {{passed: 2 carried tensors take turns in 3 buffers}}
  %r:2 = scf.while (%a = %start, %b = %x) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %c = tensor.extract %go[] : tensor<i1>
    scf.condition(%c) %a, %b : tensor<8xf32>, tensor<8xf32>
  } do {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %sum = func.call @add(%a, %b, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %b, %sum : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// Two carries take over the same value: one of them a copy of it.

// CHECK-LABEL: func.func @same
// CHECK: scf.for
// CHECK: %[[HERE:.*]] = memref.view
// CHECK-NEXT: %[[A:.*]] = bufferization.to_tensor %[[HERE]] restrict :
// CHECK: %[[SUM:.*]] = func.call @add
// CHECK-NEXT: bufferization.materialize_in_destination %[[SUM]] in restrict writable
// CHECK-NEXT: bufferization.materialize_in_destination %[[A]] in restrict writable
// CHECK-NEXT: scf.yield
func.func @same(%x: tensor<8xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>, %n: index)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{passed: 3 carried tensors take turns in 5 buffers}}
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %c = %z)
      -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %sum = func.call @add(%b, %c, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %sum, %a, %a : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Must not fire: what stays the same; what is updated in place; numbers; a size known at run time only, and with it
// what it might share memory with; a while loop that hands on something else than it carries.

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: memref.alloc
func.func @left_alone(%x: tensor<8xf32>, %y: tensor<2xf32>, %d: tensor<?xf32>, %n: index, %go: i1)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<?xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x, %c = %n)
      -> (tensor<8xf32>, tensor<8xf32>, index) {
    %new = tensor.insert_slice %y into %b[%c] [2] [1] : tensor<2xf32> into tensor<8xf32>
    %m = arith.addi %c, %i : index
    scf.yield %a, %new, %m : tensor<8xf32>, tensor<8xf32>, index
  }
  // expected-remark @below {{missed: its carries stay with bufferization: one has a size that is known at run time only}}
  %s:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %d) -> (tensor<8xf32>, tensor<?xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %sum = func.call @add(%a, %x, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %cast = tensor.cast %a : tensor<8xf32> to tensor<?xf32>
    scf.yield %sum, %cast : tensor<8xf32>, tensor<?xf32>
  }
  // expected-remark @below {{missed: its carries stay with bufferization: it hands on what it does not carry}}
  %t = scf.while (%a = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %sum = func.call @add(%a, %x, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.condition(%go) %sum : tensor<8xf32>
  } do {
  ^bb0(%b: tensor<8xf32>):
    scf.yield %b : tensor<8xf32>
  }
  return %r#0, %r#1, %s#0, %s#1, %t : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<?xf32>, tensor<8xf32>
}

// Who gets a buffer from a branch frees it, so what leaves the branch has one of its own; what is read there has not.

// CHECK-LABEL: func.func @leaves
// CHECK: scf.if
// CHECK: %[[POOL:.*]] = memref.alloc() {alignment = 64 : i64} : memref<192xi8>
// CHECK: %[[R:.*]]:3 = scf.for
// CHECK: %[[FIRST:.*]] = memref.view %[[POOL]][%[[R]]#0][]
// CHECK-NEXT: %[[A:.*]] = bufferization.to_tensor %[[FIRST]] restrict :
// CHECK-NEXT: %[[OWN:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT: bufferization.materialize_in_destination %[[A]] in restrict writable %[[OWN]]
// CHECK-NEXT: %[[OUT:.*]] = bufferization.to_tensor %[[OWN]] restrict writable
// CHECK-NEXT: %[[SECOND:.*]] = memref.view %[[POOL]][%[[R]]#1][]
// CHECK-NEXT: %[[B:.*]] = bufferization.to_tensor %[[SECOND]] restrict :
// CHECK-NEXT: tensor.extract %[[B]]
// CHECK-NEXT: scf.yield %[[OUT]]
func.func @leaves(%x: tensor<8xf32>, %c: i1, %n: index, %f: f32) -> (tensor<8xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.if %c -> (tensor<8xf32>, f32) {
    // expected-remark @below {{passed: 2 carried tensors take turns in 3 buffers}}
    %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (tensor<8xf32>, tensor<8xf32>) {
      %e = tensor.empty() : tensor<8xf32>
      %sum = func.call @add(%a, %b, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      scf.yield %b, %sum : tensor<8xf32>, tensor<8xf32>
    }
    %v = tensor.extract %l#1[%c0] : tensor<8xf32>
    scf.yield %l#0, %v : tensor<8xf32>, f32
  } else {
    scf.yield %x, %f : tensor<8xf32>, f32
  }
  return %r#0, %r#1 : tensor<8xf32>, f32
}
