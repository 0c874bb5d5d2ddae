// RUN: pipeline-opt %s --split-input-file --remove-unused-results | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --remove-unused-results --remarks-filter=remove-unused-results --verify-diagnostics

// The row maximum of softmax as torch-mlir lowers it: the index beside it is never used.

#rows = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @row_max
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[INIT:.*]]: tensor<4xf32>, %{{.*}}: tensor<4xi64>)
// CHECK-NEXT: %[[MAX:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
// CHECK-SAME: ins(%[[X]] : tensor<4x8xf32>) outs(%[[INIT]] : tensor<4xf32>) attrs = {kept}
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[NEW:.*]] = arith.maximumf %[[IN]], %[[OUT]] : f32
// CHECK-NEXT: linalg.yield %[[NEW]] : f32
// CHECK: return %[[MAX]] : tensor<4xf32>
func.func @row_max(%x: tensor<4x8xf32>, %max: tensor<4xf32>, %index: tensor<4xi64>) -> tensor<4xf32> {
  // expected-remark @below {{passed: dropped 1 of 2 results}}
  %r:2 = linalg.generic {indexing_maps = [#rows, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%max, %index : tensor<4xf32>, tensor<4xi64>) attrs = {kept} {
  ^bb0(%in: f32, %m: f32, %i: i64):
    %k = linalg.index 1 : index
    %k64 = arith.index_cast %k : index to i64
    %greater = arith.cmpf ogt, %in, %m : f32
    %new = arith.maximumf %in, %m : f32
    %new_index = arith.select %greater, %k64, %i : i64
    linalg.yield %new, %new_index : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#0 : tensor<4xf32>
}

// -----

// The first result goes, the second stays, with what it captures from outside.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @keeps_second
// CHECK-SAME: (%[[A:.*]]: tensor<4xf32>, %{{.*}}: tensor<4xf32>, %[[INIT:.*]]: tensor<4xf32>, %[[C:.*]]: f32)
// CHECK-NEXT: %[[R:.*]] = linalg.generic
// CHECK-SAME: ins(%[[A]] : tensor<4xf32>) outs(%[[INIT]] : tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[IN]], %[[C]] : f32
// CHECK-NEXT: linalg.yield %[[SUM]] : f32
// CHECK: return %[[R]] : tensor<4xf32>
func.func @keeps_second(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  // expected-remark @below {{passed: dropped 1 of 2 results}}
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%b, %c : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%in: f32, %o0: f32, %o1: f32):
    %product = arith.mulf %in, %o0 : f32
    %sum = arith.addf %in, %s : f32
    linalg.yield %product, %sum : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}

// -----

// Must not fire: both results are used.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @both_used
// CHECK: %[[R:.*]]:2 = linalg.generic
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @both_used(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      outs(%a, %b : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%o0: f32, %o1: f32):
    linalg.yield %o1, %o0 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Must not fire: the running maximum is what the index is chosen by.

#rows = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @argmax_only
// CHECK: %[[R:.*]]:2 = linalg.generic
// CHECK: return %[[R]]#1
func.func @argmax_only(%x: tensor<4x8xf32>, %max: tensor<4xf32>, %index: tensor<4xi64>) -> tensor<4xi64> {
  // expected-remark @below {{missed: unused result 0 is needed to compute another}}
  %r:2 = linalg.generic {indexing_maps = [#rows, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%max, %index : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %m: f32, %i: i64):
    %k = linalg.index 1 : index
    %k64 = arith.index_cast %k : index to i64
    %greater = arith.cmpf ogt, %in, %m : f32
    %new = arith.maximumf %in, %m : f32
    %new_index = arith.select %greater, %k64, %i : i64
    linalg.yield %new, %new_index : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#1 : tensor<4xi64>
}

// -----

// Must not fire: only the unused result's shape says how often d1 runs.

#all = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @init_is_the_bound
// CHECK: %[[R:.*]]:2 = linalg.generic
// CHECK: return %[[R]]#0
func.func @init_is_the_bound(%a: tensor<4xf32>, %b: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-remark @below {{missed: the init of an unused result says how often a loop runs}}
  %r:2 = linalg.generic {indexing_maps = [#first, #all], iterator_types = ["parallel", "reduction"]}
      outs(%a, %b : tensor<4xf32>, tensor<4x8xf32>) {
  ^bb0(%o0: f32, %o1: f32):
    %sum = arith.addf %o0, %o0 : f32
    linalg.yield %sum, %o1 : f32, f32
  } -> (tensor<4xf32>, tensor<4x8xf32>)
  return %r#0 : tensor<4xf32>
}

// -----

// Must not fire: an op with side effects reads the unused result's init.

#id = affine_map<(d0) -> (d0)>

func.func private @log(f32)

// CHECK-LABEL: func.func @side_effect
// CHECK: %[[R:.*]]:2 = linalg.generic
// CHECK: call @log
// CHECK: return %[[R]]#0
func.func @side_effect(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @below {{missed: unused result 1 is needed to compute another}}
  %r:2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      outs(%a, %b : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%o0: f32, %o1: f32):
    func.call @log(%o1) : (f32) -> ()
    linalg.yield %o0, %o1 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0 : tensor<4xf32>
}

// -----

// Casts that nobody reads, of a softmax whose size is known at run time only; and one that is read.

#rows = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @unread_casts
// CHECK: %[[MAX:.*]] = linalg.generic
// CHECK: } -> tensor<4xf32>
// CHECK-NEXT: %[[CAST:.*]] = tensor.cast %[[MAX]]
// CHECK-NEXT: return %[[CAST]] : tensor<?xf32>
func.func @unread_casts(%x: tensor<4x?xf32>, %max: tensor<4xf32>, %index: tensor<4xi64>) -> tensor<?xf32> {
  // expected-remark @below {{passed: dropped 1 of 2 results}}
  %r:2 = linalg.generic {indexing_maps = [#rows, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x?xf32>) outs(%max, %index : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %m: f32, %i: i64):
    %k = linalg.index 1 : index
    %k64 = arith.index_cast %k : index to i64
    %greater = arith.cmpf ogt, %in, %m : f32
    %new = arith.maximumf %in, %m : f32
    %new_index = arith.select %greater, %k64, %i : i64
    linalg.yield %new, %new_index : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  %read = tensor.cast %r#0 : tensor<4xf32> to tensor<?xf32>
  %unread = tensor.cast %r#1 : tensor<4xi64> to tensor<?xi64>
  %again = tensor.cast %unread : tensor<?xi64> to tensor<4xi64>
  return %read : tensor<?xf32>
}
