// RUN: pipeline-opt %s --fold-slices-of-concats | FileCheck %s
// RUN: pipeline-opt %s --fold-slices-of-concats --remarks-filter=fold-slices-of-concats --verify-diagnostics

// One part, and a slice of one part.

// CHECK-LABEL: func.func @one_part
// CHECK-SAME: (%[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<2x5xf32>)
// CHECK: %[[S:.*]] = tensor.extract_slice %[[B]][0, 1] [2, 3] [1, 1]
// CHECK: return %[[A]], %[[S]]
func.func @one_part(%a: tensor<2x3xf32>, %b: tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %e = tensor.empty() : tensor<2x8xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<2x8xf32>
  %1 = tensor.insert_slice %b into %0[0, 3] [2, 5] [1, 1] : tensor<2x5xf32> into tensor<2x8xf32>
  // expected-remark @below {{passed: is made of 1 of 2 parts}}
  %x = tensor.extract_slice %1[0, 0] [2, 3] [1, 1] : tensor<2x8xf32> to tensor<2x3xf32>
  // expected-remark @below {{passed: is made of 1 of 2 parts}}
  %y = tensor.extract_slice %1[0, 4] [2, 3] [1, 1] : tensor<2x8xf32> to tensor<2x3xf32>
  return %x, %y : tensor<2x3xf32>, tensor<2x3xf32>
}

// Across parts, the last of them inserted first.

// CHECK-LABEL: func.func @across
// CHECK-SAME: (%[[A:.*]]: tensor<1xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK: %[[S:.*]] = tensor.extract_slice %[[B]][0] [3] [1]
// CHECK: %[[E:.*]] = tensor.empty() : tensor<4xf32>
// CHECK: %[[I:.*]] = tensor.insert_slice %[[S]] into %[[E]][1] [3] [1]
// CHECK: %[[J:.*]] = tensor.insert_slice %[[A]] into %[[I]][0] [1] [1]
// CHECK: return %[[J]]
func.func @across(%a: tensor<1xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %0 = tensor.insert_slice %b into %e[1] [4] [1] : tensor<4xf32> into tensor<5xf32>
  %1 = tensor.insert_slice %a into %0[0] [1] [1] : tensor<1xf32> into tensor<5xf32>
  // expected-remark @below {{passed: is made of 2 of 2 parts}}
  %x = tensor.extract_slice %1[0] [4] [1] : tensor<5xf32> to tensor<4xf32>
  return %x : tensor<4xf32>
}

// Left alone: what is not all written, what overlaps, a part of which something else reads the tensor in between, a
// slice with a stride, one of a place that is not known, and one that drops a dimension.

// CHECK-LABEL: func.func @not_a_concat
// CHECK-COUNT-6: tensor.extract_slice %{{.*}} : tensor<2x8xf32>
func.func @not_a_concat(%a: tensor<2x3xf32>, %b: tensor<2x5xf32>, %i: index)
    -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>) {
  %e = tensor.empty() : tensor<2x8xf32>
  %half = tensor.insert_slice %b into %e[0, 3] [2, 5] [1, 1] : tensor<2x5xf32> into tensor<2x8xf32>
  %0 = tensor.extract_slice %half[0, 3] [2, 3] [1, 1] : tensor<2x8xf32> to tensor<2x3xf32>
  %over = tensor.insert_slice %a into %half[0, 1] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<2x8xf32>
  %1 = tensor.extract_slice %over[0, 3] [2, 3] [1, 1] : tensor<2x8xf32> to tensor<2x3xf32>
  %again = tensor.insert_slice %a into %half[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<2x8xf32>
  %2 = tensor.extract_slice %again[0, 3] [2, 3] [1, 1] : tensor<2x8xf32> to tensor<2x3xf32>
  %own = tensor.empty() : tensor<2x8xf32>
  %3 = tensor.insert_slice %a into %own[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<2x8xf32>
  %4 = tensor.insert_slice %b into %3[0, 3] [2, 5] [1, 1] : tensor<2x5xf32> into tensor<2x8xf32>
  %5 = tensor.extract_slice %4[0, 1] [2, 3] [1, 2] : tensor<2x8xf32> to tensor<2x3xf32>
  %6 = tensor.extract_slice %4[0, %i] [2, 3] [1, 1] : tensor<2x8xf32> to tensor<2x3xf32>
  %7 = tensor.extract_slice %4[1, 2] [1, 3] [1, 1] : tensor<2x8xf32> to tensor<3xf32>
  return %0, %1, %half, %2, %5, %6, %7
      : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>
}
