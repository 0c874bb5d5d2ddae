// RUN: pipeline-opt %s --fold-unit-transposes | FileCheck %s
// RUN: pipeline-opt %s --fold-unit-transposes --remarks-filter=fold-unit-transposes --verify-diagnostics

// What only moves dims of size 1 is no copy.

// CHECK-LABEL: func.func @only_units
// CHECK-SAME: (%[[X:.*]]: tensor<8x1x64x1xf32>, %{{.*}}: tensor<1x8x1x64xf32>)
// CHECK: %[[S:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2, 3]] : tensor<8x1x64x1xf32> into tensor<8x64xf32>
// CHECK-NEXT: %[[R:.*]] = tensor.expand_shape %[[S]] {{\[\[}}0, 1, 2], [3]]
// CHECK-NEXT: return %[[R]] : tensor<1x8x1x64xf32>
func.func @only_units(%x: tensor<8x1x64x1xf32>, %o: tensor<1x8x1x64xf32>) -> tensor<1x8x1x64xf32> {
  // expected-remark @below {{passed: moves 2 of 4 dims: the others have one element}}
  %r = linalg.transpose ins(%x : tensor<8x1x64x1xf32>) outs(%o : tensor<1x8x1x64xf32>) permutation = [3, 0, 1, 2]
  return %r : tensor<1x8x1x64xf32>
}

// The others move still.

// CHECK-LABEL: func.func @some_units
// CHECK: %[[S:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0], [1], [2, 3]]
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[S]] : tensor<2x12x64xf32>) outs(%{{.*}} : tensor<2x64x12xf32>) permutation = [0, 2, 1]
// CHECK: tensor.expand_shape %[[T]] {{\[\[}}0], [1], [2, 3]] {{.*}} into tensor<2x64x12x1xf32>
func.func @some_units(%x: tensor<2x12x64x1xf32>, %o: tensor<2x64x12x1xf32>) -> tensor<2x64x12x1xf32> {
  // expected-remark @below {{passed: moves 3 of 4 dims: the others have one element}}
  %r = linalg.transpose ins(%x : tensor<2x12x64x1xf32>) outs(%o : tensor<2x64x12x1xf32>) permutation = [0, 2, 1, 3]
  return %r : tensor<2x64x12x1xf32>
}

// Must not fire: no dim of size 1 is in the way, nothing else is there, sizes that are not known.

// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-4: linalg.transpose
// CHECK-NOT: tensor.collapse_shape
func.func @left_alone(%x: tensor<2x3xf32>, %o: tensor<3x2xf32>, %y: tensor<?x1xf32>, %p: tensor<1x?xf32>,
    %z: tensor<?x1x3xf32>, %q: tensor<3x1x?xf32>, %h: tensor<1x64x12x8xf32>, %k: tensor<1x12x64x8xf32>)
    -> (tensor<3x2xf32>, tensor<1x?xf32>, tensor<3x1x?xf32>, tensor<1x12x64x8xf32>) {
  %a = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%o : tensor<3x2xf32>) permutation = [1, 0]
  %b = linalg.transpose ins(%y : tensor<?x1xf32>) outs(%p : tensor<1x?xf32>) permutation = [1, 0]
  %c = linalg.transpose ins(%z : tensor<?x1x3xf32>) outs(%q : tensor<3x1x?xf32>) permutation = [2, 1, 0]
  %d = linalg.transpose ins(%h : tensor<1x64x12x8xf32>) outs(%k : tensor<1x12x64x8xf32>) permutation = [0, 2, 1, 3]
  return %a, %b, %c, %d : tensor<3x2xf32>, tensor<1x?xf32>, tensor<3x1x?xf32>, tensor<1x12x64x8xf32>
}
