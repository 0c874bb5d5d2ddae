// RUN: pipeline-opt %s --split-input-file --propagate-reshapes --canonicalize | FileCheck %s

// A collapse between two elementwise ops goes down: both run over the dims of the first, the result is collapsed.

#two = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @down
// CHECK: %[[E:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: %[[N:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK-SAME: ins(%[[E]] : tensor<3x4xf32>)
// CHECK: arith.negf
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[N]]
// CHECK-NEXT: return %[[FLAT]]
func.func @down(%x: tensor<3x4xf32>) -> tensor<12xf32> {
  %empty = tensor.empty() : tensor<3x4xf32>
  %long = tensor.empty() : tensor<12xf32>
  %e = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x4xf32>) outs(%empty : tensor<3x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = math.exp %a : f32
    linalg.yield %d : f32
  } -> tensor<3x4xf32>
  %flat = tensor.collapse_shape %e [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%flat : tensor<12xf32>) outs(%long : tensor<12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.negf %a : f32
    linalg.yield %d : f32
  } -> tensor<12xf32>
  return %r : tensor<12xf32>
}

// -----

// An expand goes up, and meets the collapse before: heads of attention, split, scaled, joined, have no reshape between
// them. The loop's counter is computed from its parts.

#two = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>

// CHECK-DAG: #[[LINEAR:.*]] = affine_map<()[s0, s1] -> (s0 * 4 + s1)>
// CHECK-LABEL: func.func @meet
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32>)
// CHECK-NOT: tensor.collapse_shape
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]] : tensor<3x4xf32>)
// CHECK-DAG: %[[I:.*]] = linalg.index 0
// CHECK-DAG: %[[J:.*]] = linalg.index 1
// CHECK: affine.apply #[[LINEAR]]()[%[[I]], %[[J]]]
// CHECK: return
func.func @meet(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %long = tensor.empty() : tensor<12xf32>
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%flat : tensor<12xf32>) outs(%long : tensor<12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %d = arith.mulf %a, %f : f32
    linalg.yield %d : f32
  } -> tensor<12xf32>
  %back = tensor.expand_shape %r [[0, 1]] output_shape [3, 4] : tensor<12xf32> into tensor<3x4xf32>
  return %back : tensor<3x4xf32>
}

// -----

// A product whose rows are split: its loop over rows becomes two, the weights keep theirs.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>, %[[W:.*]]: tensor<4x5xf32>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%[[X]], %[[W]] : tensor<2x3x4xf32>, tensor<4x5xf32>)
func.func @product(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>, %out: tensor<6x5xf32>) -> tensor<6x5xf32> {
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%flat, %w : tensor<6x4xf32>, tensor<4x5xf32>) outs(%out : tensor<6x5xf32>) {
  ^bb0(%l: f32, %m: f32, %o: f32):
    %p = arith.mulf %l, %m : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<6x5xf32>
  return %r : tensor<6x5xf32>
}

// -----

// Must not fire: reshapes of arguments, with nothing to meet at a result, for an op that is not generic.

// CHECK-LABEL: func.func @no_generic
// CHECK: tensor.collapse_shape
// CHECK-NEXT: linalg.exp
func.func @no_generic(%x: tensor<3x4xf32>, %out: tensor<12xf32>) -> tensor<12xf32> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  %r = linalg.exp ins(%flat : tensor<12xf32>) outs(%out : tensor<12xf32>) -> tensor<12xf32>
  return %r : tensor<12xf32>
}

// -----

// Must not fire: an index that is computed from the loop (here, the windows of a convolution) needs the loop whole.

#window = affine_map<(d0, d1) -> (d0 + d1)>
#w = affine_map<(d0, d1) -> (d1)>
#o = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @windows
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[FLAT]],
func.func @windows(%x: tensor<3x4xf32>, %w: tensor<3xf32>, %out: tensor<10xf32>) -> tensor<10xf32> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  %r = linalg.generic {indexing_maps = [#window, #w, #o], iterator_types = ["parallel", "reduction"]}
      ins(%flat, %w : tensor<12xf32>, tensor<3xf32>) outs(%out : tensor<10xf32>) {
  ^bb0(%l: f32, %m: f32, %acc: f32):
    %p = arith.mulf %l, %m : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<10xf32>
  return %r : tensor<10xf32>
}

// -----

// Two operands that would split one loop differently: the first one decides, the other one keeps its reshape.

#one = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @contradiction
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32>, %[[Y:.*]]: tensor<4x3xf32>)
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[Y]]
// CHECK: %[[OTHER:.*]] = tensor.expand_shape %[[FLAT]]
// CHECK-SAME: tensor<12xf32> into tensor<3x4xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]], %[[OTHER]] :
func.func @contradiction(%x: tensor<3x4xf32>, %y: tensor<4x3xf32>) -> tensor<12xf32> {
  %long = tensor.empty() : tensor<12xf32>
  %p = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  %q = tensor.collapse_shape %y [[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
  %r = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
      ins(%p, %q : tensor<12xf32>, tensor<12xf32>) outs(%long : tensor<12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.addf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<12xf32>
  return %r : tensor<12xf32>
}

// -----

// A concatenation whose other dims are split: its parts are split instead, and the op in front of one of them.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @concat
// CHECK-SAME: (%[[A:.*]]: tensor<6x2xf32>, %[[B:.*]]: tensor<6x3xf32>)
// CHECK: %[[N:.*]] = linalg.generic
// CHECK-SAME: tensor<2x3x2xf32>
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x3x5xf32>
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %[[N]] into %[[E]][0, 0, 0] [2, 3, 2] [1, 1, 1]
// CHECK: %[[SPLIT:.*]] = tensor.expand_shape %[[B]] {{\[\[}}0, 1], [2]] output_shape [2, 3, 3]
// CHECK: %[[BOTH:.*]] = tensor.insert_slice %[[SPLIT]] into %[[FIRST]][0, 0, 2] [2, 3, 3] [1, 1, 1]
// CHECK: return %[[BOTH]]
func.func @concat(%a: tensor<6x2xf32>, %b: tensor<6x3xf32>) -> tensor<2x3x5xf32> {
  %empty = tensor.empty() : tensor<6x2xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<6x2xf32>) outs(%empty : tensor<6x2xf32>) {
  ^bb0(%x: f32, %o: f32):
    %d = arith.negf %x : f32
    linalg.yield %d : f32
  } -> tensor<6x2xf32>
  %e = tensor.empty() : tensor<6x5xf32>
  %0 = tensor.insert_slice %n into %e[0, 0] [6, 2] [1, 1] : tensor<6x2xf32> into tensor<6x5xf32>
  %1 = tensor.insert_slice %b into %0[0, 2] [6, 3] [1, 1] : tensor<6x3xf32> into tensor<6x5xf32>
  %r = tensor.expand_shape %1 [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  return %r : tensor<2x3x5xf32>
}

// -----

// Left alone: the dim along which the parts lie is split; the concatenation has another reader.

// CHECK-LABEL: func.func @not_this_concat
// CHECK: %[[C:.*]] = tensor.insert_slice %{{.*}} : tensor<6x2xf32> into tensor<6x4xf32>
// CHECK: %[[R:.*]] = tensor.expand_shape %[[C]]
// CHECK: %[[D:.*]] = tensor.insert_slice %{{.*}} : tensor<6x1xf32> into tensor<6x4xf32>
// CHECK: %[[S:.*]] = tensor.expand_shape %[[D]]
// CHECK: return %[[R]], %[[S]], %[[D]]
func.func @not_this_concat(%a: tensor<6x2xf32>, %b: tensor<6x3xf32>, %c: tensor<6x1xf32>)
    -> (tensor<6x2x2xf32>, tensor<2x3x4xf32>, tensor<6x4xf32>) {
  %e = tensor.empty() : tensor<6x4xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [6, 2] [1, 1] : tensor<6x2xf32> into tensor<6x4xf32>
  %1 = tensor.insert_slice %a into %0[0, 2] [6, 2] [1, 1] : tensor<6x2xf32> into tensor<6x4xf32>
  %r = tensor.expand_shape %1 [[0], [1, 2]] output_shape [6, 2, 2] : tensor<6x4xf32> into tensor<6x2x2xf32>
  %2 = tensor.insert_slice %b into %e[0, 0] [6, 3] [1, 1] : tensor<6x3xf32> into tensor<6x4xf32>
  %3 = tensor.insert_slice %c into %2[0, 3] [6, 1] [1, 1] : tensor<6x1xf32> into tensor<6x4xf32>
  %s = tensor.expand_shape %3 [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  return %r, %s, %3 : tensor<6x2x2xf32>, tensor<2x3x4xf32>, tensor<6x4xf32>
}

// -----

// Must not fire: a transpose that moves rows of 64 elements would move them two by two.

#swapped = affine_map<(d0, d1) -> (d1, d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @torn_rows
// CHECK: %[[C:.*]] = tensor.collapse_shape
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK-SAME: ins(%[[C]] : tensor<64x8xf32>)
func.func @torn_rows(%x: tensor<32x2x8xf32>) -> tensor<8x64xf32> {
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<32x2x8xf32> into tensor<64x8xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %t = linalg.generic {indexing_maps = [#swapped, #id], iterator_types = ["parallel", "parallel"]}
      ins(%flat : tensor<64x8xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8x64xf32>
  return %t : tensor<8x64xf32>
}

// -----

// Rows of 16 elements are long enough.

#swapped = affine_map<(d0, d1) -> (d1, d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @long_rows
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}} : tensor<4x16x8xf32>)
func.func @long_rows(%x: tensor<4x16x8xf32>) -> tensor<8x64xf32> {
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x16x8xf32> into tensor<64x8xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %t = linalg.generic {indexing_maps = [#swapped, #id], iterator_types = ["parallel", "parallel"]}
      ins(%flat : tensor<64x8xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8x64xf32>
  return %t : tensor<8x64xf32>
}

// -----

// Must not: rows of two, for an op that reads halves of bytes along them.

#x = affine_map<(m, n, k, h) -> (m, k, h)>
#w = affine_map<(m, n, k, h) -> (k, n)>
#y = affine_map<(m, n, k, h) -> (m, n)>
#id = affine_map<(m, k) -> (m, k)>

// CHECK-LABEL: func.func @halves
// CHECK: %[[EXP:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<5x8xf32>)
// CHECK: tensor.expand_shape %[[EXP]]
func.func @halves(%x: tensor<5x8xf32>, %w: tensor<4x3xi8>, %y: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %bits = arith.constant 4 : i8
  %mask = arith.constant 15 : i8
  %e = tensor.empty() : tensor<5x8xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5x8xf32>) outs(%e : tensor<5x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %z = math.exp %in : f32
    linalg.yield %z : f32
  } -> tensor<5x8xf32>
  %cut = tensor.expand_shape %t [[0], [1, 2]] output_shape [5, 4, 2] : tensor<5x8xf32> into tensor<5x4x2xf32>
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%cut, %w : tensor<5x4x2xf32>, tensor<4x3xi8>) outs(%y : tensor<5x3xf32>) {
  ^bb0(%a: f32, %b: i8, %o: f32):
    %i = linalg.index 3 : index
    %c = arith.index_castui %i : index to i8
    %s = arith.muli %c, %bits : i8
    %q = arith.shrui %b, %s : i8
    %u = arith.andi %q, %mask : i8
    %f = arith.uitofp %u : i8 to f32
    %h = arith.mulf %a, %f : f32
    %z = arith.addf %o, %h : f32
    linalg.yield %z : f32
  } -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}
