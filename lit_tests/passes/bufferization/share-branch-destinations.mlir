// RUN: pipeline-opt %s --share-branch-destinations | FileCheck %s
// RUN: pipeline-opt %s --share-branch-destinations --remarks-filter=share-branch-destinations --verify-diagnostics

#id = affine_map<(d0) -> (d0)>

func.func private @neg(%x: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32> attributes {pipeline.kernel = "elementwise"} {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%out : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// Both branches write to one buffer, the inner ones too.

// CHECK-LABEL: func.func @share
// CHECK-SAME: (%[[C:.*]]: i1, %[[D:.*]]: i1, %[[X:.*]]: tensor<8xf32>)
// CHECK: %[[M:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT: %{{.*}} = bufferization.to_tensor %[[M]] restrict writable
// CHECK-NEXT: %[[R:.*]] = scf.if %[[C]]
// CHECK: %[[I:.*]] = scf.if %[[D]]
// CHECK: %[[T1:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK: call @neg(%[[X]], %[[T1]])
// CHECK: } else {
// CHECK: %[[T2:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK: call @neg(%[[X]], %[[T2]])
// CHECK: scf.yield %[[I]]
// CHECK: } else {
// CHECK-NEXT: %[[T3:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK-NEXT: call @neg(%[[X]], %[[T3]])
// CHECK: return %[[R]]
func.func @share(%c: i1, %d: i1, %x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @below {{passed: both branches write to the same memory}}
  %r = scf.if %c -> tensor<8xf32> {
    // expected-remark @below {{passed: both branches write to the same memory}}
    %i = scf.if %d -> tensor<8xf32> {
      %e = tensor.empty() : tensor<8xf32>
      %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      scf.yield %a : tensor<8xf32>
    } else {
      %e = tensor.empty() : tensor<8xf32>
      %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      scf.yield %a : tensor<8xf32>
    }
    scf.yield %i : tensor<8xf32>
  } else {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// A branch that hands on what it computes as another result, too, copies it: that one would lie in shared memory.

// CHECK-LABEL: func.func @copies
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<8xf32>)
// CHECK: %[[M:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT: %[[T:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK-NEXT: scf.if %[[C]]
// CHECK: %[[A:.*]] = func.call @neg
// CHECK-NEXT: %[[A2:.*]] = bufferization.materialize_in_destination %[[A]] in %[[T]]
// CHECK-NEXT: scf.yield %[[A]], %[[A2]]
// CHECK: } else {
// CHECK-NEXT: %[[T2:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK-NEXT: %[[B:.*]] = func.call @neg(%[[X]], %[[T2]])
// CHECK-NEXT: scf.yield %[[X]], %[[B]]
func.func @copies(%c: i1, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-remark @below {{passed: both branches write to the same memory, one a copy}}
  %r:2 = scf.if %c -> (tensor<8xf32>, tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a, %a : tensor<8xf32>, tensor<8xf32>
  } else {
    %e = tensor.empty() : tensor<8xf32>
    %b = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %x, %b : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// Must not fire: neither branch computes; the tensor is shared with another kernel; the size is known at run time only.

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: memref.alloc
func.func @left_alone(%c: i1, %x: tensor<8xf32>, %y: tensor<8xf32>, %d: tensor<?xf32>, %n: index)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<?xf32>) {
  %r = scf.if %c -> tensor<8xf32> {
    scf.yield %x : tensor<8xf32>
  } else {
    scf.yield %y : tensor<8xf32>
  }
  %s = scf.if %c -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %b = func.call @neg(%a, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %b : tensor<8xf32>
  } else {
    scf.yield %y : tensor<8xf32>
  }
  %t = scf.if %c -> tensor<?xf32> {
    %e = tensor.empty(%n) : tensor<?xf32>
    scf.yield %e : tensor<?xf32>
  } else {
    scf.yield %d : tensor<?xf32>
  }
  return %r, %s, %t : tensor<8xf32>, tensor<8xf32>, tensor<?xf32>
}

// Must not fire: copying what a branch hands on costs more than the allocation.

func.func private @zero(%out: tensor<100000xf32>) -> tensor<100000xf32> attributes {pipeline.kernel = "elementwise"} {
  %z = arith.constant 0.0 : f32
  %r = linalg.fill ins(%z : f32) outs(%out : tensor<100000xf32>) -> tensor<100000xf32>
  return %r : tensor<100000xf32>
}

// CHECK-LABEL: func.func @large
// CHECK-NOT: memref.alloc
func.func @large(%c: i1, %x: tensor<100000xf32>, %at: index) -> f32 {
  // expected-remark @below {{missed: one branch hands on a tensor, and copying it moves 400000 bytes}}
  %r = scf.if %c -> tensor<100000xf32> {
    %e = tensor.empty() : tensor<100000xf32>
    %a = func.call @zero(%e) : (tensor<100000xf32>) -> tensor<100000xf32>
    scf.yield %a : tensor<100000xf32>
  } else {
    scf.yield %x : tensor<100000xf32>
  }
  %v = tensor.extract %r[%at] : tensor<100000xf32>
  return %v : f32
}

// Must not fire: a branch hands on a view of what it computes, too; it copies then.

// CHECK-LABEL: func.func @two_results
// CHECK: %[[M:.*]] = memref.alloc() : memref<8xf32>
// CHECK: scf.if
// CHECK-NEXT: %[[E:.*]] = tensor.empty() : tensor<8xf32>
// CHECK-NEXT: %[[A:.*]] = func.call @neg(%{{.*}}, %[[E]])
// CHECK-NEXT: %[[C:.*]] = tensor.cast %[[A]]
// CHECK-NEXT: %[[COPY:.*]] = bufferization.materialize_in_destination %[[A]] in
// CHECK-NEXT: scf.yield %[[C]], %[[COPY]]
// CHECK: func.call @neg(%{{.*}}, %{{.*}})
func.func @two_results(%c: i1, %x: tensor<8xf32>, %d: tensor<?xf32>) -> (tensor<?xf32>, tensor<8xf32>) {
  // expected-remark @below {{passed: both branches write to the same memory, one a copy}}
  %r:2 = scf.if %c -> (tensor<?xf32>, tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %cast = tensor.cast %a : tensor<8xf32> to tensor<?xf32>
    scf.yield %cast, %a : tensor<?xf32>, tensor<8xf32>
  } else {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %d, %a : tensor<?xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<?xf32>, tensor<8xf32>
}

// Must not fire: a branch hands what it computes on twice; the first of both is a copy.

// CHECK-LABEL: func.func @handed_on_twice
// CHECK: %[[M:.*]] = memref.alloc() : memref<8xf32>
// CHECK: %[[T:.*]] = bufferization.to_tensor %[[M]]
// CHECK: %[[N:.*]] = memref.alloc() : memref<8xf32>
// CHECK: scf.if
// CHECK: %[[E:.*]] = bufferization.to_tensor %[[N]]
// CHECK: %[[A:.*]] = func.call @neg(%{{.*}}, %[[E]])
// CHECK: %[[COPY:.*]] = bufferization.materialize_in_destination %[[A]] in %[[T]]
// CHECK: scf.yield %[[COPY]], %[[A]]
func.func @handed_on_twice(%c: i1, %x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-remark @below {{passed: both branches write to the same memory, one a copy}}
  // expected-remark @below {{passed: both branches write to the same memory}}
  %r:2 = scf.if %c -> (tensor<8xf32>, tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a, %a : tensor<8xf32>, tensor<8xf32>
  } else {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %f = tensor.empty() : tensor<8xf32>
    %b = func.call @neg(%y, %f) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a, %b : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// One branch hands on a tensor twice, the other one two tensors: these would have to lie in the same memory.

// CHECK-LABEL: func.func @torn
// CHECK: %[[M:.*]] = memref.alloc() : memref<8xf32>
// CHECK: %[[T:.*]] = bufferization.to_tensor %[[M]]
// CHECK: scf.if
// CHECK: %[[B:.*]] = bufferization.materialize_in_destination %{{.*}} in %[[T]]
// CHECK: scf.yield %{{.*}}, %[[B]]
// CHECK: else
// CHECK: %[[TWICE:.*]] = bufferization.materialize_in_destination %[[X:.*]] in %[[T]]
// CHECK: scf.yield %[[X]], %[[TWICE]]
func.func @torn(%c: i1, %x: tensor<8xf32>, %a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-remark @below {{passed: both branches write to the same memory, both copies}}
  %r:2 = scf.if %c -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %a, %b : tensor<8xf32>, tensor<8xf32>
  } else {
    scf.yield %x, %x : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}
