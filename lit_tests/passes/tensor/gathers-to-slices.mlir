// RUN: pipeline-opt %s --gathers-to-slices | FileCheck %s
// RUN: pipeline-opt %s --gathers-to-slices --remarks-filter=gathers-to-slices --verify-diagnostics

#id2 = affine_map<(d0, d1) -> (d0, d1)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#swap = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>

// The step of a loop: x[i, :, :].

// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[X:.*]]: tensor<5x3x8xf32>, %[[I:.*]]: index)
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][%[[I]], 0, 0] [1, 3, 8] [1, 1, 1] : tensor<5x3x8xf32> to tensor<3x8xf32>
// CHECK-NEXT: return %[[S]]
func.func @step(%x: tensor<5x3x8xf32>, %i: index) -> tensor<3x8xf32> {
  %e = tensor.empty() : tensor<3x8xf32>
  // expected-remark @below {{passed: is a slice}}
  %r = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<3x8xf32>) {
  ^bb0(%out: f32):
    %b = linalg.index 0 : index
    %c = linalg.index 1 : index
    %v = tensor.extract %x[%i, %b, %c] : tensor<5x3x8xf32>
    linalg.yield %v : f32
  } -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

// A part of a dimension, a constant place, and dimensions of size 1 that x has not.

// CHECK-LABEL: func.func @units
// CHECK-SAME: (%[[X:.*]]: tensor<5x8xf32>)
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][2, 0] [1, 4] [1, 1] : tensor<5x8xf32> to tensor<4xf32>
// CHECK-NEXT: tensor.expand_shape %[[S]] {{.*}} : tensor<4xf32> into tensor<1x4x1xf32>
func.func @units(%x: tensor<5x8xf32>) -> tensor<1x4x1xf32> {
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<1x4x1xf32>
  // expected-remark @below {{passed: is a slice}}
  %r = linalg.generic {indexing_maps = [#id3], iterator_types = ["parallel", "parallel", "parallel"]}
      outs(%e : tensor<1x4x1xf32>) {
  ^bb0(%out: f32):
    %c = linalg.index 1 : index
    %v = tensor.extract %x[%c2, %c] : tensor<5x8xf32>
    linalg.yield %v : f32
  } -> tensor<1x4x1xf32>
  return %r : tensor<1x4x1xf32>
}

// Must not fire: transposed; a diagonal; a broadcast; an index from data; a computed index; something computed; no
// elements, so that the index need not be in range; a size that is known at run time only.

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: tensor.extract_slice
func.func @left_alone(%x: tensor<4x4xf32>, %i: index, %at: tensor<4xindex>, %d: tensor<?x4xf32>, %none: tensor<4x0xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x2xf32>, tensor<4x4xf32>,
        tensor<1x0xf32>, tensor<1x4xf32>) {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4x4xf32>
  %transposed = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x4xf32>) {
  ^bb0(%out: f32):
    %b = linalg.index 0 : index
    %c = linalg.index 1 : index
    %v = tensor.extract %x[%c, %b] : tensor<4x4xf32>
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %diagonal = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x4xf32>) {
  ^bb0(%out: f32):
    %b = linalg.index 0 : index
    %v = tensor.extract %x[%b, %b] : tensor<4x4xf32>
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %broadcast = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x4xf32>) {
  ^bb0(%out: f32):
    %b = linalg.index 1 : index
    %v = tensor.extract %x[%i, %b] : tensor<4x4xf32>
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %data = linalg.generic {indexing_maps = [#row, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<4xindex>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: index, %out: f32):
    %b = linalg.index 1 : index
    %v = tensor.extract %x[%a, %b] : tensor<4x4xf32>
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %e2 = tensor.empty() : tensor<2x2xf32>
  %computed = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%e2 : tensor<2x2xf32>) {
  ^bb0(%out: f32):
    %b = linalg.index 0 : index
    %c = linalg.index 1 : index
    %b1 = arith.addi %b, %c1 : index
    %v = tensor.extract %x[%b1, %c] : tensor<4x4xf32>
    linalg.yield %v : f32
  } -> tensor<2x2xf32>
  %negated = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x4xf32>) {
  ^bb0(%out: f32):
    %b = linalg.index 0 : index
    %c = linalg.index 1 : index
    %v = tensor.extract %x[%b, %c] : tensor<4x4xf32>
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<4x4xf32>
  %e3 = tensor.empty() : tensor<1x0xf32>
  %empty = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%e3 : tensor<1x0xf32>) {
  ^bb0(%out: f32):
    %c = linalg.index 1 : index
    %v = tensor.extract %none[%i, %c] : tensor<4x0xf32>
    linalg.yield %v : f32
  } -> tensor<1x0xf32>
  %e4 = tensor.empty() : tensor<1x4xf32>
  %dynamic = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%e4 : tensor<1x4xf32>) {
  ^bb0(%out: f32):
    %c = linalg.index 1 : index
    %v = tensor.extract %d[%i, %c] : tensor<?x4xf32>
    linalg.yield %v : f32
  } -> tensor<1x4xf32>
  return %transposed, %diagonal, %broadcast, %data, %computed, %negated, %empty, %dynamic
    : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x2xf32>, tensor<4x4xf32>,
      tensor<1x0xf32>, tensor<1x4xf32>
}
