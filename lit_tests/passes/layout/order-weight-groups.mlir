// RUN: pipeline-opt %s --split-input-file --order-weight-groups --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --order-weight-groups --remarks-filter=order-weight-groups --verify-diagnostics

// Scales by an index of groups: rows of the weight and of the data are sorted by it, and scales are those of four rows each.

#id = affine_map<(k, n) -> (k, n)>
#row = affine_map<(k, n) -> (k)>

// CHECK-DAG: #[[GROUP:.*]] = affine_map<(d0, d1) -> (d0 floordiv 4, d1)>
// CHECK: pipeline.checks = ["the groups of a weight's rows have not the same number of rows each;
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<3x8xf32>, %[[Q:.*]]: tensor<8x16xi8> {{{.*}}}, %[[S:.*]]: tensor<2x16xf32> {{{.*}}}, %[[G:.*]]: tensor<8xi32>
// CHECK: %[[PLACES:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[G]], %[[G]] : tensor<8xi32>, tensor<8xi32>)
// CHECK: %[[ORDER:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[PLACES]] : tensor<8xi32>)
// CHECK: memref.store
// CHECK: %[[DATA:.*]] = linalg.generic {{.*}} ins(%[[ORDER]] : tensor<8xi32>) outs(%{{.*}} : tensor<3x8xf32>)
// CHECK: tensor.extract %[[X]]
// CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} ins(%[[ORDER]] : tensor<8xi32>) outs(%{{.*}} : tensor<8x16xi8>)
// CHECK: tensor.extract %[[Q]]
// CHECK: %[[WEIGHT:.*]] = linalg.generic {indexing_maps = [#[[GROUP]], {{.*}} ins(%[[S]], %[[ROWS]] : tensor<2x16xf32>, tensor<8x16xi8>)
// CHECK: linalg.matmul ins(%[[DATA]], %[[WEIGHT]] : tensor<3x8xf32>, tensor<8x16xf32>)
func.func @main(%x: tensor<3x8xf32>, %q: tensor<8x16xi8> {pipeline.weight = "q"}, %s: tensor<2x16xf32> {pipeline.weight = "s"},
    %g: tensor<8xi32> {pipeline.weight = "g"}, %init: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %scales = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<8xi32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%i: i32, %o: f32):
    %k = arith.index_cast %i : i32 to index
    %n = linalg.index 1 : index
    %v = tensor.extract %s[%k, %n] : tensor<2x16xf32>
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  %w = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%scales, %q : tensor<8x16xf32>, tensor<8x16xi8>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%scale: f32, %i: i8, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %scale, %f : f32
    linalg.yield %m : f32
  } -> tensor<8x16xf32>
  // expected-remark @below {{passed: reads the rows of its weight group by group}}
  %r = linalg.matmul ins(%x, %w : tensor<3x8xf32>, tensor<8x16xf32>) outs(%init : tensor<3x16xf32>) -> tensor<3x16xf32>
  return %r : tensor<3x16xf32>
}

// -----

// Must not: an index of which it is known that groups have other numbers of rows.

#id = affine_map<(k, n) -> (k, n)>
#row = affine_map<(k, n) -> (k)>

// CHECK-LABEL: func.func @main
// CHECK-NOT: reduction
func.func @main(%x: tensor<3x8xf32>, %q: tensor<8x16xi8> {pipeline.weight = "q"}, %s: tensor<2x16xf32> {pipeline.weight = "s"},
    %g: tensor<8xi32> {pipeline.weight = "g", pipeline.uneven}, %init: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %scales = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<8xi32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%i: i32, %o: f32):
    %k = arith.index_cast %i : i32 to index
    %n = linalg.index 1 : index
    %v = tensor.extract %s[%k, %n] : tensor<2x16xf32>
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  %w = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%scales, %q : tensor<8x16xf32>, tensor<8x16xi8>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%scale: f32, %i: i8, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %scale, %f : f32
    linalg.yield %m : f32
  } -> tensor<8x16xf32>
  // expected-remark @below {{missed: the rows of its weight stay in their order: its groups have not the same number of rows each}}
  %r = linalg.matmul ins(%x, %w : tensor<3x8xf32>, tensor<8x16xf32>) outs(%init : tensor<3x16xf32>) -> tensor<3x16xf32>
  return %r : tensor<3x16xf32>
}

// -----

// Must not: three groups of sixteen rows; weights of floats.

#id = affine_map<(k, n) -> (k, n)>
#row = affine_map<(k, n) -> (k)>

// CHECK-LABEL: func.func @main
// CHECK-NOT: reduction
func.func @main(%x: tensor<3x16xf32>, %q: tensor<16x16xi8> {pipeline.weight = "q"}, %s: tensor<3x16xf32> {pipeline.weight = "s"},
    %t: tensor<2x16xf32> {pipeline.weight = "t"}, %p: tensor<16x16xf32> {pipeline.weight = "p"},
    %g: tensor<16xi32> {pipeline.weight = "g"}, %init: tensor<3x16xf32>) -> (tensor<3x16xf32>, tensor<3x16xf32>) {
  %e = tensor.empty() : tensor<16x16xf32>
  %three = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<16xi32>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%i: i32, %o: f32):
    %k = arith.index_cast %i : i32 to index
    %n = linalg.index 1 : index
    %v = tensor.extract %s[%k, %n] : tensor<3x16xf32>
    linalg.yield %v : f32
  } -> tensor<16x16xf32>
  %w = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%three, %q : tensor<16x16xf32>, tensor<16x16xi8>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%scale: f32, %i: i8, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %scale, %f : f32
    linalg.yield %m : f32
  } -> tensor<16x16xf32>
  // expected-remark @below {{missed: the rows of its weight stay in their order: 3 groups do not divide its 16 rows}}
  %r = linalg.matmul ins(%x, %w : tensor<3x16xf32>, tensor<16x16xf32>) outs(%init : tensor<3x16xf32>) -> tensor<3x16xf32>
  %two = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<16xi32>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%i: i32, %o: f32):
    %k = arith.index_cast %i : i32 to index
    %n = linalg.index 1 : index
    %v = tensor.extract %t[%k, %n] : tensor<2x16xf32>
    linalg.yield %v : f32
  } -> tensor<16x16xf32>
  %v = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%two, %p : tensor<16x16xf32>, tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%scale: f32, %i: f32, %o: f32):
    %m = arith.mulf %scale, %i : f32
    linalg.yield %m : f32
  } -> tensor<16x16xf32>
  // expected-remark @below {{missed: the rows of its weight stay in their order: none of its factors are bytes}}
  %u = linalg.matmul ins(%x, %v : tensor<3x16xf32>, tensor<16x16xf32>) outs(%init : tensor<3x16xf32>) -> tensor<3x16xf32>
  return %r, %u : tensor<3x16xf32>, tensor<3x16xf32>
}
