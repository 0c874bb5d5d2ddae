// RUN: pipeline-opt %s --divide-by-reciprocals | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#kept = affine_map<(d0, d1) -> (d0, 0)>

// CHECK-LABEL: func.func @softmax
// CHECK: arith.addf
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK-NEXT: %[[R:.*]] = arith.divf %[[ONE]], %[[B]]
// CHECK-NEXT: arith.mulf %[[A]], %[[R]]
func.func @softmax(%x: tensor<4x8xf32>, %m: tensor<4xf32>, %s: tensor<4x1xf32>, %out: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%m : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.maximumf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<4x8xf32>, tensor<4xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<4x8xf32>) outs(%s : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<4x1xf32>
  %r = linalg.generic {indexing_maps = [#id, #kept, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<4x8xf32>, tensor<4x1xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// Must not fire: the largest element is that of a column, so a sum may be as small as 0.

#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @other_maximum
// CHECK-NOT: arith.mulf
func.func @other_maximum(%x: tensor<8x8xf32>, %m: tensor<8xf32>, %s: tensor<8x1xf32>, %out: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %max = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x8xf32>) outs(%m : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.maximumf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %exp = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<8x8xf32>, tensor<8xf32>) outs(%out : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<8x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<8x8xf32>) outs(%s : tensor<8x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<8x1xf32>
  %r = linalg.generic {indexing_maps = [#id, #kept, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<8x8xf32>, tensor<8x1xf32>) outs(%out : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// Must not fire: a sum of anything.

// CHECK-LABEL: func.func @normalized
// CHECK-NOT: arith.mulf
func.func @normalized(%x: tensor<4x8xf32>, %s: tensor<4x1xf32>, %out: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%s : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<4x1xf32>
  %r = linalg.generic {indexing_maps = [#id, #kept, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %sum : tensor<4x8xf32>, tensor<4x1xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// Must not fire: the largest element is that of another row.

#cube = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#rows = affine_map<(d0, d1, d2) -> (d0, d1)>
#swapped = affine_map<(d0, d1, d2) -> (d1, d0)>

// CHECK-LABEL: func.func @swapped_maximum
// CHECK-NOT: arith.mulf
func.func @swapped_maximum(%x: tensor<4x4x8xf32>, %m: tensor<4x4xf32>, %s: tensor<4x4xf32>, %out: tensor<4x4x8xf32>) -> tensor<4x4x8xf32> {
  %max = linalg.generic {indexing_maps = [#cube, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<4x4x8xf32>) outs(%m : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.maximumf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %exp = linalg.generic {indexing_maps = [#cube, #swapped, #cube], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %max : tensor<4x4x8xf32>, tensor<4x4xf32>) outs(%out : tensor<4x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<4x4x8xf32>
  %sum = linalg.generic {indexing_maps = [#cube, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<4x4x8xf32>) outs(%s : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [#cube, #rows, #cube], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %sum : tensor<4x4x8xf32>, tensor<4x4xf32>) outs(%out : tensor<4x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x4x8xf32>
  return %r : tensor<4x4x8xf32>
}

// Batches of one: the index that says which is left out of a map, or is 0. It fires.

#batch = affine_map<(d0, d1, d2) -> (d1, d2)>
#batch_max = affine_map<(d0, d1, d2) -> (0, d1)>

// CHECK-LABEL: func.func @batch_of_one
// CHECK: arith.divf
// CHECK-NEXT: arith.mulf
func.func @batch_of_one(%x: tensor<4x8xf32>, %m: tensor<1x4xf32>, %s: tensor<1x4xf32>, %out: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
  %max = linalg.generic {indexing_maps = [#batch, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%m : tensor<1x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.maximumf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<1x4xf32>
  %exp = linalg.generic {indexing_maps = [#batch, #batch_max, #cube], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %max : tensor<4x8xf32>, tensor<1x4xf32>) outs(%out : tensor<1x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<1x4x8xf32>
  %sum = linalg.generic {indexing_maps = [#cube, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<1x4x8xf32>) outs(%s : tensor<1x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<1x4xf32>
  %r = linalg.generic {indexing_maps = [#cube, #rows, #cube], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %sum : tensor<1x4x8xf32>, tensor<1x4xf32>) outs(%out : tensor<1x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<1x4x8xf32>
  return %r : tensor<1x4x8xf32>
}
