// RUN: pipeline-opt %s --align-while-iter-args | FileCheck %s
// RUN: pipeline-opt %s --align-while-iter-args --remarks-filter=align-while-iter-args --verify-diagnostics

// The flag is carried last: so the tensors have the same numbers in both regions.

// CHECK-LABEL: func.func @flag_first
// CHECK-SAME: (%[[GO:.*]]: i1, %[[X:.*]]: tensor<8xf32>, %[[N:.*]]: i64)
// CHECK: %[[R:.*]]:2 = scf.while (%[[I:.*]] = %[[N]], %[[H:.*]] = %[[X]], %[[FLAG:.*]] = %[[GO]]) : (i64, tensor<8xf32>, i1) -> (i64, tensor<8xf32>)
// CHECK-NEXT: scf.condition(%[[FLAG]]) %[[I]], %[[H]] : i64, tensor<8xf32>
// CHECK: ^bb0(%[[I:.*]]: i64, %[[H:.*]]: tensor<8xf32>):
// CHECK: %[[NEXT:.*]] = arith.subi %[[I]],
// CHECK: %[[MORE:.*]] = arith.cmpi
// CHECK: %[[NEW:.*]] = tensor.insert {{.*}} into %[[H]]
// CHECK: scf.yield %[[NEXT]], %[[NEW]], %[[MORE]] : i64, tensor<8xf32>, i1
// CHECK: return %[[R]]#1
func.func @flag_first(%go: i1, %x: tensor<8xf32>, %n: i64) -> tensor<8xf32> {
  // expected-remark @below {{passed: carries what it hands on in the order in which it does}}
  %r:2 = scf.while (%flag = %go, %i = %n, %h = %x) : (i1, i64, tensor<8xf32>) -> (i64, tensor<8xf32>) {
    scf.condition(%flag) %i, %h : i64, tensor<8xf32>
  } do {
  ^bb0(%i: i64, %h: tensor<8xf32>):
    %one = arith.constant 1 : i64
    %c0 = arith.constant 0 : index
    %f = arith.constant 1.0 : f32
    %next = arith.subi %i, %one : i64
    %more = arith.cmpi sgt, %next, %one : i64
    %new = tensor.insert %f into %h[%c0] : tensor<8xf32>
    scf.yield %more, %next, %new : i1, i64, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}

// A result that is no carry goes behind those that are.

// CHECK-LABEL: func.func @computed_first
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
// CHECK: %[[R:.*]]:2 = scf.while (%[[H:.*]] = %[[X]]) : (tensor<8xf32>) -> (tensor<8xf32>, f32)
// CHECK: scf.condition(%{{.*}}) %[[H]], %[[V:.*]] : tensor<8xf32>, f32
// CHECK: ^bb0(%[[H:.*]]: tensor<8xf32>, %[[W:.*]]: f32):
// CHECK: tensor.insert %[[W]] into %[[H]]
// CHECK: return %[[R]]#1, %[[R]]#0 : f32, tensor<8xf32>
func.func @computed_first(%x: tensor<8xf32>) -> (f32, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  // expected-remark @below {{passed: carries}}
  %r:2 = scf.while (%h = %x) : (tensor<8xf32>) -> (f32, tensor<8xf32>) {
    %v = tensor.extract %h[%c0] : tensor<8xf32>
    %more = arith.cmpf ogt, %v, %zero : f32
    scf.condition(%more) %v, %h : f32, tensor<8xf32>
  } do {
  ^bb0(%w: f32, %h: tensor<8xf32>):
    %d = arith.negf %w : f32
    %new = tensor.insert %w into %h[%c0] : tensor<8xf32>
    scf.yield %new : tensor<8xf32>
  }
  return %r#0, %r#1 : f32, tensor<8xf32>
}

// Must not fire: the numbers are the same, or only those of numbers differ.

// CHECK-LABEL: func.func @as_it_is
// CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (tensor<8xf32>, i1) -> tensor<8xf32>
// CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (i1, i64) -> i64
func.func @as_it_is(%go: i1, %x: tensor<8xf32>, %n: i64) -> (tensor<8xf32>, i64) {
  %r = scf.while (%h = %x, %flag = %go) : (tensor<8xf32>, i1) -> tensor<8xf32> {
    scf.condition(%flag) %h : tensor<8xf32>
  } do {
  ^bb0(%h: tensor<8xf32>):
    %false = arith.constant false
    scf.yield %h, %false : tensor<8xf32>, i1
  }
  %s = scf.while (%flag = %go, %i = %n) : (i1, i64) -> i64 {
    scf.condition(%flag) %i : i64
  } do {
  ^bb0(%i: i64):
    %false = arith.constant false
    scf.yield %false, %i : i1, i64
  }
  return %r, %s : tensor<8xf32>, i64
}
