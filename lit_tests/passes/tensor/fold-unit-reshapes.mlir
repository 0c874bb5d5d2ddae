// RUN: pipeline-opt %s --split-input-file --fold-unit-reshapes | FileCheck %s

// A reduced dim that comes back with size 1 and is broadcast: the generic reads the reduction itself.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>

// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @keepdim
// CHECK-SAME: (%[[X:.*]]: tensor<5x7xf32>, %[[S:.*]]: tensor<5xf32>)
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[ROW]], #{{.*}}]
// CHECK-SAME: ins(%[[X]], %[[S]] :
func.func @keepdim(%x: tensor<5x7xf32>, %s: tensor<5xf32>) -> tensor<5x7xf32> {
  %column = tensor.expand_shape %s [[0, 1]] output_shape [5, 1] : tensor<5xf32> into tensor<5x1xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %column : tensor<5x7xf32>, tensor<5x1xf32>) outs(%x : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<5x7xf32>
  return %r : tensor<5x7xf32>
}

// -----

// A dim of size 1 that is dropped: it is read at 0. Sizes may be dynamic, chains are read through.

#id = affine_map<(d0) -> (d0)>

// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0) -> (0, d0)>
// CHECK-LABEL: func.func @squeeze
// CHECK-SAME: (%[[X:.*]]: tensor<1x?xf32>,
// CHECK-NOT: tensor.
// CHECK: linalg.generic {indexing_maps = [#[[FIRST]], #{{.*}}]
// CHECK-SAME: ins(%[[X]] :
func.func @squeeze(%x: tensor<1x?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> {
  %c1 = arith.constant 1 : index
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<1x?xf32> into tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%flat : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.negf %a : f32
    linalg.yield %d : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// A reshape that others read stays for them.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @other_reader
// CHECK-SAME: (%[[X:.*]]: tensor<1x4xf32>)
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]] :
// CHECK: return %{{.*}}, %[[FLAT]]
func.func @other_reader(%x: tensor<1x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<1x4xf32> into tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%flat : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.negf %a : f32
    linalg.yield %d : f32
  } -> tensor<4xf32>
  return %r, %flat : tensor<4xf32>, tensor<4xf32>
}

// -----

// Must not fire: two dims of more than one element; that is another order of loops.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @two_large_dims
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[FLAT]] :
func.func @two_large_dims(%x: tensor<3x4xf32>, %out: tensor<12xf32>) -> tensor<12xf32> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%flat : tensor<12xf32>) outs(%out : tensor<12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.negf %a : f32
    linalg.yield %d : f32
  } -> tensor<12xf32>
  return %r : tensor<12xf32>
}

// -----

// Must not fire: a loop of one iteration that no other operand has would be left without a bound.

#two = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @only_bound
// CHECK: %[[COLUMN:.*]] = tensor.expand_shape
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[COLUMN]] :
func.func @only_bound(%s: tensor<5xf32>, %out: tensor<5xf32>) -> tensor<5xf32> {
  %column = tensor.expand_shape %s [[0, 1]] output_shape [5, 1] : tensor<5xf32> into tensor<5x1xf32>
  %r = linalg.generic {indexing_maps = [#two, #one], iterator_types = ["parallel", "reduction"]}
      ins(%column : tensor<5x1xf32>) outs(%out : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.addf %a, %o : f32
    linalg.yield %d : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// Dims of size 1 behind what a reduction runs along are added by a reshape; those in front of it stay.

#x = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
#y = affine_map<(d0, d1, d2) -> (0, d1, 0, 0)>

// CHECK-DAG: #[[Y:.*]] = affine_map<(d0, d1, d2) -> (0, d1)>
// CHECK-LABEL: func.func @pooled
// CHECK-SAME: (%[[X:.*]]: tensor<5x3x?xf32>, %[[INIT:.*]]: tensor<1x?x1x1xf32>)
// CHECK: %[[SMALL:.*]] = tensor.collapse_shape %[[INIT]] {{\[\[}}0], [1, 2, 3]]
// CHECK: %[[SUM:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[Y]]]
// CHECK-SAME: outs(%[[SMALL]] : tensor<1x?xf32>)
// CHECK: tensor.expand_shape %[[SUM]] {{\[\[}}0], [1, 2, 3]]
func.func @pooled(%x: tensor<5x3x?xf32>, %init: tensor<1x?x1x1xf32>) -> tensor<1x?x1x1xf32> {
  %r = linalg.generic {indexing_maps = [#x, #y], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : tensor<5x3x?xf32>) outs(%init : tensor<1x?x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<1x?x1x1xf32>
  return %r : tensor<1x?x1x1xf32>
}

// -----

// Must not: dims that are counted behind those; elementwise ops.

#x = affine_map<(d0, d1) -> (d0, d1)>
#y = affine_map<(d0, d1) -> (0, d1)>

// CHECK-LABEL: func.func @rows
// CHECK-NOT: tensor.collapse_shape
func.func @rows(%x: tensor<5x7xf32>, %init: tensor<1x7xf32>) -> tensor<1x7xf32> {
  %r = linalg.generic {indexing_maps = [#x, #y], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<5x7xf32>) outs(%init : tensor<1x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<1x7xf32>
  return %r : tensor<1x7xf32>
}

// -----

// Must not: an argument's dims of size 1 behind the one that is read along; those of what is computed do not matter.

#x = affine_map<(d0, d1) -> (d0, d1)>
#y = affine_map<(d0, d1) -> (d1)>
#e = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-DAG: #[[BEHIND:.*]] = affine_map<(d0, d1) -> (d1, 0)>
// CHECK-DAG: #[[INNERMOST:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @scales
// CHECK: %[[COMPUTED:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<7x1xf32>)
// CHECK: %[[SCALES:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1]] : tensor<7x1xf32> into tensor<7xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[INNERMOST]], #[[BEHIND]], #{{.*}}]
// CHECK-SAME: ins(%{{.*}}, %[[SCALES]], %[[COMPUTED]] : tensor<5x7xf32>, tensor<7xf32>, tensor<7x1xf32>)
func.func @scales(%x: tensor<5x7xf32>, %s: tensor<7x1xf32>, %init: tensor<7x1xf32>, %out: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %c = linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<7x1xf32>) outs(%init : tensor<7x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = math.exp %a : f32
    linalg.yield %m : f32
  } -> tensor<7x1xf32>
  %t = tensor.collapse_shape %c [[0, 1]] : tensor<7x1xf32> into tensor<7xf32>
  %u = tensor.collapse_shape %s [[0, 1]] : tensor<7x1xf32> into tensor<7xf32>
  %r = linalg.generic {indexing_maps = [#x, #y, #y, #x], iterator_types = ["parallel", "parallel"]}
      ins(%x, %u, %t : tensor<5x7xf32>, tensor<7xf32>, tensor<7xf32>) outs(%out : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.mulf %m, %d : f32
    linalg.yield %n : f32
  } -> tensor<5x7xf32>
  return %r : tensor<5x7xf32>
}
