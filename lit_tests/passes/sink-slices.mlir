// RUN: pipeline-opt %s --sink-slices | FileCheck %s

// Two halves of one tensor, one of them with its dim split: the group takes the whole tensor.

// CHECK-LABEL: func.func @halves
// CHECK-SAME: (%[[X:.*]]: tensor<4x12xf32>)
// CHECK-NEXT: %[[R:.*]] = "fusion.group"(%[[X]], %[[X]]) ({
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x12xf32>, %[[B:.*]]: tensor<4x12xf32>):
// CHECK-DAG: %[[FIRST:.*]] = tensor.extract_slice %[[A]][0, 0] [4, 6] [1, 1]
// CHECK-DAG: %[[SECOND:.*]] = tensor.extract_slice %[[B]][0, 6] [4, 6] [1, 1]
// CHECK-DAG: %[[SPLIT:.*]] = tensor.expand_shape %[[SECOND]] {{.*}} : tensor<4x6xf32> into tensor<4x2x3xf32>
// CHECK: linalg.generic {{.*}} ins(%[[FIRST]], %[[SPLIT]] :
// CHECK: return %[[R]]
func.func @halves(%x: tensor<4x12xf32>) -> tensor<4x6xf32> {
  %a = tensor.extract_slice %x[0, 0] [4, 6] [1, 1] : tensor<4x12xf32> to tensor<4x6xf32>
  %b = tensor.extract_slice %x[0, 6] [4, 6] [1, 1] : tensor<4x12xf32> to tensor<4x6xf32>
  %c = tensor.expand_shape %b [[0], [1, 2]] output_shape [4, 2, 3] : tensor<4x6xf32> into tensor<4x2x3xf32>
  %r = "fusion.group"(%a, %c) ({
  ^bb0(%l: tensor<4x6xf32>, %r: tensor<4x2x3xf32>):
    %e = tensor.empty() : tensor<4x6xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0, 0)>,
        affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
        ins(%l, %r : tensor<4x6xf32>, tensor<4x2x3xf32>) outs(%e : tensor<4x6xf32>) {
    ^bb0(%u: f32, %v: f32, %out: f32):
      %sum = arith.addf %u, %v : f32
      linalg.yield %sum : f32
    } -> tensor<4x6xf32>
    "fusion.yield"(%y) : (tensor<4x6xf32>) -> ()
  }) {kind = "elementwise", label = "add"} : (tensor<4x6xf32>, tensor<4x2x3xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// Must not fire: an offset known at run time only, a reshape of a whole tensor; a slice that something else reads stays.

// CHECK-LABEL: func.func @left_alone
// CHECK-SAME: (%[[X:.*]]: tensor<4x12xf32>, %[[Y:.*]]: tensor<24xf32>, %[[I:.*]]: index)
// CHECK-DAG: %[[A:.*]] = tensor.extract_slice %[[X]][0, %[[I]]] [4, 6] [1, 1]
// CHECK-DAG: %[[B:.*]] = tensor.expand_shape %[[Y]]
// CHECK-DAG: %[[C:.*]] = tensor.extract_slice %[[X]][0, 6] [4, 6] [1, 1]
// CHECK: "fusion.group"(%[[A]], %[[B]], %[[X]])
// CHECK: return %{{.*}}, %[[C]]
func.func @left_alone(%x: tensor<4x12xf32>, %y: tensor<24xf32>, %i: index) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %a = tensor.extract_slice %x[0, %i] [4, 6] [1, 1] : tensor<4x12xf32> to tensor<4x6xf32>
  %b = tensor.expand_shape %y [[0, 1]] output_shape [4, 6] : tensor<24xf32> into tensor<4x6xf32>
  %c = tensor.extract_slice %x[0, 6] [4, 6] [1, 1] : tensor<4x12xf32> to tensor<4x6xf32>
  %r = "fusion.group"(%a, %b, %c) ({
  ^bb0(%u: tensor<4x6xf32>, %v: tensor<4x6xf32>, %w: tensor<4x6xf32>):
    %y2 = linalg.add ins(%u, %v : tensor<4x6xf32>, tensor<4x6xf32>) outs(%w : tensor<4x6xf32>) -> tensor<4x6xf32>
    "fusion.yield"(%y2) : (tensor<4x6xf32>) -> ()
  }) {kind = "elementwise", label = "add"} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r, %c : tensor<4x6xf32>, tensor<4x6xf32>
}
