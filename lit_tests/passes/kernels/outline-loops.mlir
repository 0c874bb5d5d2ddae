// RUN: pipeline-opt %s --split-input-file --outline-loops="calls=2 work=64 scratch=256" --allow-unregistered-dialect | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --outline-loops="calls=2 work=64 scratch=256" --allow-unregistered-dialect --remarks-filter=outline-loops --verify-diagnostics

// The loop goes with the calls in it; what it reads and where it writes are arguments. Its constants are its own.

// CHECK: func.func private @loop_add(%[[H0:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>, %[[OUT:.*]]: tensor<8xf32>) -> tensor<8xf32>
// CHECK-SAME: pipeline.kernel = "loop", pipeline.ops = ["linalg.add"], pipeline.words = ["add"]
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C5:.*]] = arith.constant 5 : index
// CHECK: %[[R:.*]] = scf.for %{{.*}} = %[[C0]] to %[[C5]] step %[[C1]] iter_args(%[[H:.*]] = %[[H0]])
// CHECK-NEXT: %[[E:.*]] = tensor.empty()
// CHECK-NEXT: %[[S:.*]] = func.call @add(%[[H]], %[[Y]], %[[E]])
// CHECK-NEXT: scf.yield %[[S]]
// CHECK: %[[C:.*]] = linalg.copy {{.*}}ins(%[[R]] : tensor<8xf32>) outs(%[[OUT]] : tensor<8xf32>)
// CHECK-NEXT: return %[[C]]
// CHECK: func.func @recurrence(%[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<8xf32>
// CHECK-NEXT: %[[R:.*]] = call @loop_add(%[[X]], %[[Y]], %[[E]])
// CHECK-SAME: pipeline.origins = {{\[\["add", "net.py:1"]]}}
// CHECK-NEXT: return %[[R]]
func.func private @add(%x: tensor<8xf32>, %y: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.add"], pipeline.words = ["add"]} {
  %r = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%out : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @recurrence(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  // expected-remark @below {{passed: one kernel, loop_add, for 1 calls of kernels in each round}}
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %x) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = func.call @add(%h, %y, %e) {pipeline.origins = [["add", "net.py:1"]]} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// What is updated in place is returned as it is, and has an argument of its own. A carry that never changes is what it
// was before, numbers are returned as such, and a check may be noted.

// CHECK: func.func private @loop_add(%[[LEFT:.*]]: i64, %[[Y:.*]]: tensor<8xf32>, %[[STATUS:.*]]: memref<1xi64>, %[[ROWS:.*]]: tensor<4x8xf32>) -> (i64, tensor<4x8xf32>)
// CHECK: scf.while (%{{.*}} = %[[LEFT]], %{{.*}} = %[[ROWS]], %{{.*}} = %[[Y]])
// CHECK-NOT: linalg.copy
// CHECK: func.func @rows(%[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<8xf32>, %[[N:.*]]: i64, %[[STATUS:.*]]: memref<1xi64>)
// CHECK-NEXT: %[[R:.*]]:2 = call @loop_add(%[[N]], %[[Y]], %[[STATUS]], %[[X]])
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1, %[[Y]]
func.func private @add(%x: tensor<8xf32>, %y: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.add"], pipeline.words = ["add"]} {
  %r = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%out : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @rows(%x: tensor<4x8xf32>, %y: tensor<8xf32>, %n: i64, %status: memref<1xi64>) -> (i64, tensor<4x8xf32>, tensor<8xf32>) {
  // expected-remark @below {{passed: one kernel, loop_add,}}
  %r:3 = scf.while (%left = %n, %rows = %x, %kept = %y) : (i64, tensor<4x8xf32>, tensor<8xf32>) -> (i64, tensor<4x8xf32>, tensor<8xf32>) {
    %zero = arith.constant 0 : i64
    %more = arith.cmpi sgt, %left, %zero : i64
    scf.condition(%more) %left, %rows, %kept : i64, tensor<4x8xf32>, tensor<8xf32>
  } do {
  ^bb0(%left: i64, %rows: tensor<4x8xf32>, %kept: tensor<8xf32>):
    %one = arith.constant 1 : i64
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %next = arith.subi %left, %one : i64
    %at = arith.index_cast %next : i64 to index
    %is_out = arith.cmpi uge, %at, %c4 : index
    scf.if %is_out {
      memref.store %one, %status[%c0] : memref<1xi64>
    }
    %place = arith.select %is_out, %c0, %at : index
    %row = tensor.extract_slice %rows[%place, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
    %e = tensor.empty() : tensor<8xf32>
    %s = func.call @add(%row, %kept, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %new = tensor.insert_slice %s into %rows[%place, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
    scf.yield %next, %new, %kept : i64, tensor<4x8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1, %r#2 : i64, tensor<4x8xf32>, tensor<8xf32>
}

// -----

// What is read and what is updated in place may have a size that is known at run time only.

// CHECK: func.func private @loop_add(%[[ROUNDS:.*]]: index, %[[X:.*]]: tensor<?x8xf32>, %[[OUT:.*]]: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK: func.func @sequence
func.func private @add(%x: tensor<?x8xf32>, %i: index, %out: tensor<8xf32>) -> tensor<8xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.add"], pipeline.words = ["add"]} {
  %row = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<?x8xf32> to tensor<8xf32>
  %r = linalg.add ins(%row, %row : tensor<8xf32>, tensor<8xf32>) outs(%out : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @sequence(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %out = tensor.empty(%n) : tensor<?x8xf32>
  // expected-remark @below {{passed: one kernel}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%rows = %out) -> tensor<?x8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = func.call @add(%x, %i, %e) : (tensor<?x8xf32>, index, tensor<8xf32>) -> tensor<8xf32>
    %new = tensor.insert_slice %s into %rows[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<?x8xf32>
    scf.yield %new : tensor<?x8xf32>
  }
  return %r : tensor<?x8xf32>
}

// -----

// The outermost loop is taken that may be; one in a branch, too.

// CHECK: func.func private @loop_add_0(
// CHECK: func.func private @loop_add(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-LABEL: func.func @nests
// CHECK-NOT: scf.for
// CHECK: call @loop_add(
// CHECK: scf.if
// CHECK: call @loop_add_0(
// CHECK-NOT: scf.for
// CHECK: return
func.func private @add(%x: tensor<8xf32>, %y: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.add"], pipeline.words = ["add"]} {
  %r = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%out : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @nests(%x: tensor<8xf32>, %n: index, %p: i1) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{passed: one kernel}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<8xf32> {
    %g = scf.for %j = %c0 to %i step %c1 iter_args(%k = %h) -> tensor<8xf32> {
      %e = tensor.empty() : tensor<8xf32>
      %s = func.call @add(%k, %h, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }
    scf.yield %g : tensor<8xf32>
  }
  %b = scf.if %p -> tensor<8xf32> {
    // expected-remark @below {{passed: one kernel}}
    %g = scf.for %j = %c0 to %n step %c1 iter_args(%k = %x) -> tensor<8xf32> {
      %e = tensor.empty() : tensor<8xf32>
      %s = func.call @add(%k, %x, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }
    scf.yield %g : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  return %r, %b : tensor<8xf32>, tensor<8xf32>
}

// -----

// Must not fire: what a loop of kernels may not have.

// CHECK-NOT: @loop
func.func private @add(%x: tensor<8xf32>, %y: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.add"], pipeline.words = ["add"]} {
  %r = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%out : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @outside(%x: tensor<8xf32>, %y: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.add"], pipeline.words = ["add"], pipeline.calls = ["f", "lib.so"]} {
  %r = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%out : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @any(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.exp"], pipeline.words = ["exp"]} {
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%out : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func private @sort(%x: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32>
    attributes {pipeline.kernel = "sort", pipeline.ops = ["scf.for"], pipeline.words = ["sort"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%o = %out) -> tensor<8xf32> {
    %v = tensor.extract %x[%i] : tensor<8xf32>
    %n = tensor.insert %v into %o[%i] : tensor<8xf32>
    scf.yield %n : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
func.func private @large(%x: tensor<65xf32>, %out: tensor<65xf32>) -> tensor<65xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.exp"], pipeline.words = ["exp"]} {
  %r = linalg.exp ins(%x : tensor<65xf32>) outs(%out : tensor<65xf32>) -> tensor<65xf32>
  return %r : tensor<65xf32>
}
func.func private @much(%x: tensor<40xf32>, %out: tensor<40xf32>) -> tensor<40xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.exp"], pipeline.words = ["exp"]} {
  %r = linalg.exp ins(%x : tensor<40xf32>) outs(%out : tensor<40xf32>) -> tensor<40xf32>
  return %r : tensor<40xf32>
}
func.func @refused(%x: tensor<8xf32>, %v: tensor<65xf32>, %w: tensor<40xf32>, %d: tensor<?xf32>, %n: index, %size: index)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<65xf32>, tensor<40xf32>, tensor<?xf32>, index, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{missed: the loop is no kernel: toy.op is for no kernel}}
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<8xf32> {
    %s = "toy.op"(%h) : (tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  // expected-remark @below {{missed: the loop is no kernel: outside is a function from outside}}
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = func.call @outside(%h, %x, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  // expected-remark @below {{missed: the loop is no kernel: it calls 3 kernels, more than 2}}
  %c = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = func.call @add(%h, %x, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %e1 = tensor.empty() : tensor<8xf32>
    %s1 = func.call @add(%s, %x, %e1) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %e2 = tensor.empty() : tensor<8xf32>
    %s2 = func.call @add(%s1, %x, %e2) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s2 : tensor<8xf32>
  }
  // expected-remark @below {{missed: the loop is no kernel: sort takes a time that is not known}}
  %f = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = func.call @sort(%h, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  // expected-remark @below {{missed: the loop is no kernel: large takes 65 operations, more than 64}}
  %g = scf.for %i = %c0 to %n step %c1 iter_args(%h = %v) -> tensor<65xf32> {
    %e = tensor.empty() : tensor<65xf32>
    %s = func.call @large(%h, %e) : (tensor<65xf32>, tensor<65xf32>) -> tensor<65xf32>
    scf.yield %s : tensor<65xf32>
  }
  // expected-remark @below {{missed: the loop is no kernel: it keeps 480 bytes, more than 256}}
  %k = scf.for %i = %c0 to %n step %c1 iter_args(%h = %w) -> tensor<40xf32> {
    %e = tensor.empty() : tensor<40xf32>
    %s = func.call @much(%h, %e) : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    scf.yield %s : tensor<40xf32>
  }
  // expected-remark @below {{missed: the loop is no kernel: it makes tensors of sizes that are known at run time only}}
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%h = %d) -> tensor<?xf32> {
    %e = tensor.empty(%size) : tensor<?xf32>
    %s = func.call @any(%h, %e) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %s : tensor<?xf32>
  }
  // expected-remark @below {{missed: the loop is no kernel: it calls no kernel}}
  %m = scf.for %i = %c0 to %n step %c1 iter_args(%h = %n) -> index {
    %s = arith.addi %h, %i : index
    scf.yield %s : index
  }
  // expected-remark @below {{missed: the loop is no kernel: it hands on what it does not carry}}
  %o = scf.while (%h = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = func.call @add(%h, %x, %e) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %first = tensor.extract %s[%c0] : tensor<8xf32>
    %zero = arith.constant 0.0 : f32
    %more = arith.cmpf ogt, %first, %zero : f32
    scf.condition(%more) %s : tensor<8xf32>
  } do {
  ^bb0(%h: tensor<8xf32>):
    scf.yield %h : tensor<8xf32>
  }
  return %a, %b, %c, %f, %g, %k, %l, %m, %o : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<65xf32>, tensor<40xf32>, tensor<?xf32>, index, tensor<8xf32>
}
