// RUN: pipeline-opt %s --rematerialize-iota --canonicalize | FileCheck %s
// RUN: pipeline-opt %s --rematerialize-iota --remarks-filter=rematerialize-iota --verify-diagnostics

#id = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (0, d1)>
#other = affine_map<(d0, d1) -> (d0)>

// Positions are read as a row, and of a slice: a causal mask.

// CHECK-LABEL: func.func @mask
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: linalg.generic
// CHECK-SAME: outs(
// CHECK-DAG: %[[J:.*]] = linalg.index 1
// CHECK-DAG: %[[K:.*]] = arith.index_cast %[[J]]
// CHECK-DAG: %[[I:.*]] = linalg.index 0
// CHECK-DAG: %[[L:.*]] = arith.addi %[[I]], %[[ONE]]
// CHECK-DAG: %[[M:.*]] = arith.index_cast %[[L]]
// CHECK: arith.cmpi sle, %[[K]], %[[M]]
// CHECK-NOT: linalg.generic
func.func @mask() -> tensor<7x8xi1> {
  %e = tensor.empty() : tensor<8xi64>
  %positions = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<8xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %p = arith.index_cast %i : index to i64
    linalg.yield %p : i64
  } -> tensor<8xi64>
  %row = tensor.expand_shape %positions [[0, 1]] output_shape [1, 8] : tensor<8xi64> into tensor<1x8xi64>
  %rest = tensor.extract_slice %positions[1] [7] [1] : tensor<8xi64> to tensor<7xi64>
  %m = tensor.empty() : tensor<7x8xi1>
  // expected-remark @below {{passed: computes positions instead of reading them}}
  // expected-remark @below {{passed: computes positions instead of reading them}}
  %r = linalg.generic {indexing_maps = [#row, #other, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%row, %rest : tensor<1x8xi64>, tensor<7xi64>) outs(%m : tensor<7x8xi1>) {
  ^bb0(%a: i64, %b: i64, %out: i1):
    %c = arith.cmpi sle, %a, %b : i64
    linalg.yield %c : i1
  } -> tensor<7x8xi1>
  return %r : tensor<7x8xi1>
}

// What is fetched, and a slice that goes into a concatenation.

// CHECK-LABEL: func.func @fetched
// CHECK-SAME: (%[[X:.*]]: tensor<4xindex>, %{{.*}}: tensor<6xindex>)
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]]
// CHECK-NEXT: ^bb0(%[[IN:.*]]: index, %{{.*}}: index)
// CHECK-NEXT: arith.addi %[[IN]], %[[IN]]
// CHECK: %[[S:.*]] = linalg.generic
// CHECK-SAME: outs(%{{.*}} : tensor<3xindex>)
// CHECK: linalg.index 0
// CHECK: arith.addi
// CHECK: tensor.insert_slice %[[S]]
func.func @fetched(%x: tensor<4xindex>, %into: tensor<6xindex>) -> (tensor<4xindex>, tensor<6xindex>) {
  %e = tensor.empty() : tensor<8xindex>
  %positions = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<8xindex>) {
  ^bb0(%out: index):
    %i = linalg.index 0 : index
    linalg.yield %i : index
  } -> tensor<8xindex>
  %o = tensor.empty() : tensor<4xindex>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xindex>) outs(%o : tensor<4xindex>) {
  ^bb0(%in: index, %out: index):
    // expected-remark @below {{passed: computes the position that it fetched}}
    %v = tensor.extract %positions[%in] : tensor<8xindex>
    %w = arith.addi %v, %v : index
    linalg.yield %w : index
  } -> tensor<4xindex>
  // expected-remark @below {{passed: computes the positions of the slice alone}}
  %cut = tensor.extract_slice %positions[2] [3] [1] : tensor<8xindex> to tensor<3xindex>
  %s = tensor.insert_slice %cut into %into[1] [3] [1] : tensor<3xindex> into tensor<6xindex>
  return %r, %s : tensor<4xindex>, tensor<6xindex>
}

// Left alone: what is computed from data, a reshape that takes divisions to go through, floating point, and an input
// that alone says how often a loop runs.

// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-7: linalg.generic
func.func @left_alone(%data: tensor<8xi64>, %one: tensor<i64>)
    -> (tensor<8xi64>, tensor<2x4xi64>, tensor<8xf32>, tensor<i64>) {
  %e = tensor.empty() : tensor<8xi64>
  %of_data = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%data : tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%in: i64, %out: i64):
    %i = linalg.index 0 : index
    %p = arith.index_cast %i : index to i64
    %q = arith.addi %p, %in : i64
    linalg.yield %q : i64
  } -> tensor<8xi64>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%of_data : tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%in: i64, %out: i64):
    %q = arith.muli %in, %in : i64
    linalg.yield %q : i64
  } -> tensor<8xi64>
  %positions = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<8xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %p = arith.index_cast %i : index to i64
    linalg.yield %p : i64
  } -> tensor<8xi64>
  %grid = tensor.expand_shape %positions [[0, 1]] output_shape [2, 4] : tensor<8xi64> into tensor<2x4xi64>
  %g = tensor.empty() : tensor<2x4xi64>
  %1 = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%grid : tensor<2x4xi64>) outs(%g : tensor<2x4xi64>) {
  ^bb0(%in: i64, %out: i64):
    %q = arith.muli %in, %in : i64
    linalg.yield %q : i64
  } -> tensor<2x4xi64>
  %f = tensor.empty() : tensor<8xf32>
  %floats = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%f : tensor<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %p = arith.index_cast %i : index to i64
    %q = arith.sitofp %p : i64 to f32
    %s = math.sin %q : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%floats : tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %q = arith.mulf %in, %in : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  %3 = linalg.generic {indexing_maps = [#id, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%positions : tensor<8xi64>) outs(%one : tensor<i64>) {
  ^bb0(%in: i64, %out: i64):
    %q = arith.addi %in, %out : i64
    linalg.yield %q : i64
  } -> tensor<i64>
  return %0, %1, %2, %3 : tensor<8xi64>, tensor<2x4xi64>, tensor<8xf32>, tensor<i64>
}
