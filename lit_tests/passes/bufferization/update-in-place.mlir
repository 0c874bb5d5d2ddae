// RUN: pipeline-opt %s --update-in-place | FileCheck %s
// RUN: pipeline-opt %s --update-in-place --remarks-filter=update-in-place --verify-diagnostics

#id = affine_map<(d0) -> (d0)>
#reversed = affine_map<(d0) -> (7 - d0)>

func.func private @neg(%x: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32> attributes {pipeline.kernel = "elementwise"} {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%out : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// The kernel that reads and writes one tensor.

// CHECK-LABEL: func.func private @neg_in_place
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[R:.*]] = linalg.generic
// CHECK-SAME: ins(%[[X]] : tensor<8xf32>) outs(%[[X]] : tensor<8xf32>)
// CHECK: return %[[R]]

func.func private @reverse(%x: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32> attributes {pipeline.kernel = "elementwise"} {
  %r = linalg.generic {indexing_maps = [#reversed, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%out : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// Reads %x in its second op, when its first has written it.

func.func private @twice(%x: tensor<8xf32>, %out: tensor<8xf32>, %other: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {pipeline.kernel = "elementwise"} {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%out : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %r : tensor<8xf32>, tensor<8xf32>) outs(%other : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r, %s : tensor<8xf32>, tensor<8xf32>
}

// A slice is exchanged where it is.

// CHECK-LABEL: func.func @slice
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32> {pipeline.in_place = 0 : i64}, %[[Y:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[R:.*]] = tensor.insert_slice %[[Y]] into %[[X]]
// CHECK-NEXT: return %[[R]]
// expected-remark @below {{passed: argument 0 is updated in place}}
func.func @slice(%x: tensor<8xf32> {pipeline.updated = 0 : i64}, %y: tensor<2xf32>) -> tensor<8xf32> {
  %r = tensor.insert_slice %y into %x[3] [2] [1] : tensor<2xf32> into tensor<8xf32>
  return %r : tensor<8xf32>
}

// A kernel that reads other tensors writes to the argument.

// CHECK-LABEL: func.func @computed
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32> {pipeline.in_place = 0 : i64, pipeline.name = "the sum"}, %[[Y:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[R:.*]] = call @neg(%[[Y]], %[[X]])
// CHECK-NEXT: return %[[R]]
// expected-remark @below {{passed: the sum is updated in place}}
func.func @computed(%x: tensor<8xf32> {pipeline.updated = 0 : i64, pipeline.name = "the sum"}, %y: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = call @neg(%y, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// One that computes each element from the old one takes one tensor for both; in both branches.

// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<8xf32> {pipeline.in_place = 0 : i64}
// CHECK-NEXT: %[[R:.*]] = scf.if %[[C]]
// CHECK-NEXT: %[[A:.*]] = func.call @neg_in_place(%[[X]])
// CHECK-NEXT: scf.yield %[[A]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[B:.*]] = func.call @neg_in_place(%[[X]])
// CHECK-NEXT: scf.yield %[[B]]
// CHECK: return %[[R]]
// expected-remark @below {{passed: argument 1 is updated in place}}
func.func @elementwise(%c: i1, %x: tensor<8xf32> {pipeline.updated = 0 : i64}) -> tensor<8xf32> {
  %r = scf.if %c -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a : tensor<8xf32>
  } else {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// Through a reshape: the kernel writes to the argument in another shape.

// CHECK-LABEL: func.func @reshaped
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32> {pipeline.in_place = 0 : i64}, %[[Y:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[V:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1]] : tensor<2x4xf32> into tensor<8xf32>
// CHECK-NEXT: %[[A:.*]] = call @neg(%[[Y]], %[[V]])
// CHECK-NEXT: %[[R:.*]] = tensor.expand_shape %[[A]]
// CHECK-NEXT: return %[[R]]
// expected-remark @below {{passed: argument 0 is updated in place}}
func.func @reshaped(%x: tensor<2x4xf32> {pipeline.updated = 0 : i64}, %y: tensor<8xf32>) -> tensor<2x4xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = call @neg(%y, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %r = tensor.expand_shape %a [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// Must not fire: the kernel reads other elements of the old value than it writes.

// CHECK-LABEL: func.func @other_elements
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32> {pipeline.in_place = 0 : i64})
// CHECK-NEXT: %[[E:.*]] = tensor.empty()
// CHECK-NEXT: call @reverse(%[[X]], %[[E]])
// expected-remark @below {{missed: argument 0 is updated by a copy: reverse}}
func.func @other_elements(%x: tensor<8xf32> {pipeline.updated = 0 : i64}) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = call @reverse(%x, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// Must not fire: the kernel reads the old value again after it has written.

// CHECK-LABEL: func.func @again
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32> {pipeline.in_place = 0 : i64})
// CHECK: call @twice(%[[X]], %{{.*}}, %{{.*}})
// expected-remark @below {{missed: argument 0 is updated by a copy: twice}}
func.func @again(%x: tensor<8xf32> {pipeline.updated = 0 : i64}) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %r:2 = call @twice(%x, %e, %f) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// Must not fire: the old value is read later, a view of it by the caller, the whole by a kernel.

// CHECK-LABEL: func.func @read_later
// CHECK: %[[E:.*]] = tensor.empty()
// CHECK-NEXT: call @neg(%{{.*}}, %[[E]])
// expected-remark @below {{missed: argument 0 is updated by a copy: the caller}}
func.func @read_later(%x: tensor<8xf32> {pipeline.updated = 0 : i64}, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<2xf32>) {
  %old = tensor.extract_slice %x[1] [2] [1] : tensor<8xf32> to tensor<2xf32>
  %e = tensor.empty() : tensor<8xf32>
  %r = call @neg(%y, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %r, %old : tensor<8xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @read_by_a_kernel
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32> {pipeline.in_place = 0 : i64}, %[[Y:.*]]: tensor<8xf32>)
// CHECK: call @neg(%[[Y]], %{{.*}})
// CHECK: call @neg(%[[X]], %{{.*}})
// expected-remark @below {{missed: argument 0 is updated by a copy: neg}}
func.func @read_by_a_kernel(%x: tensor<8xf32> {pipeline.updated = 0 : i64}, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %r = call @neg(%y, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %s = call @neg(%x, %f) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %r, %s : tensor<8xf32>, tensor<8xf32>
}

// Must not fire: a loop computes it anew in each round.

// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK: tensor.empty()
// CHECK: call @neg
// expected-remark @below {{missed: argument 0 is updated by a copy: a loop computes it anew}}
func.func @loop(%x: tensor<8xf32> {pipeline.updated = 0 : i64}, %n: index) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%h = %x) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%h, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// A loop that inserts does so in the argument.

// CHECK-LABEL: func.func @inserts
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32> {pipeline.in_place = 0 : i64}
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[X]])
// expected-remark @below {{passed: argument 0 is updated in place}}
func.func @inserts(%x: tensor<8xf32> {pipeline.updated = 0 : i64}, %n: index, %y: f32) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%h = %x) -> tensor<8xf32> {
    %a = tensor.insert %y into %h[%i] : tensor<8xf32>
    scf.yield %a : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// Must not fire: two arguments exchange their values. The first is copied to by the runtime; then the second can be.

// CHECK-LABEL: func.func @exchange
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32> {pipeline.in_place = 1 : i64})
// expected-remark @below {{missed: argument 0 is written to by a copy after the call: another argument takes its old value}}
// expected-remark @below {{missed: argument 1 is updated by a copy: it becomes what another argument is}}
func.func @exchange(%x: tensor<8xf32> {pipeline.updated = 0 : i64}, %y: tensor<8xf32> {pipeline.updated = 1 : i64}) -> (tensor<8xf32>, tensor<8xf32>) {
  return %y, %x : tensor<8xf32>, tensor<8xf32>
}

// Must not fire: a result of a size that is known at run time only would be a view of the new value.

// CHECK-LABEL: func.func @unknown_size
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>, %[[Y:.*]]: tensor<2xf32>)
// expected-remark @below {{missed: argument 0 is written to by a copy after the call: a result of unknown size may lie in its memory}}
func.func @unknown_size(%x: tensor<?xf32> {pipeline.updated = 0 : i64}, %y: tensor<2xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %r = tensor.insert_slice %y into %x[3] [2] [1] : tensor<2xf32> into tensor<?xf32>
  return %r, %x : tensor<?xf32>, tensor<?xf32>
}

// Both branches of the second one go back to the first one's result, which is computed in the argument once.

// CHECK-LABEL: func.func @two_branches
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32> {pipeline.in_place = 0 : i64}
// CHECK: scf.if
// CHECK-NEXT: func.call @neg(%{{.*}}, %[[X]])
// expected-remark @below {{passed: argument 0 is updated in place}}
func.func @two_branches(%x: tensor<8xf32> {pipeline.updated = 0 : i64}, %c: i1, %d: i1, %y: tensor<8xf32>, %s: f32) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %v = scf.if %c -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %a = func.call @neg(%y, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  %w = scf.if %d -> tensor<8xf32> {
    %i = tensor.insert %s into %v[%zero] : tensor<8xf32>
    scf.yield %i : tensor<8xf32>
  } else {
    scf.yield %v : tensor<8xf32>
  }
  return %w : tensor<8xf32>
}
