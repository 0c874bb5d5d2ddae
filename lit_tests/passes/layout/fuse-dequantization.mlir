// RUN: pipeline-opt %s --split-input-file --fuse-dequantization --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --fuse-dequantization --remarks-filter=fuse-dequantization --verify-diagnostics

// One scale for each column stays behind the product; the weight is read as it is.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @by_column
// CHECK-SAME: (%[[X:.*]]: tensor<3x16xf32>, %[[Q:.*]]: tensor<8x16xi8> {{{.*}}}, %[[INIT:.*]]: tensor<3x8xf32>)
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[Q]] : tensor<8x16xi8>)
// CHECK-NOT: tensor<16x8xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]], %[[T]] : tensor<3x16xf32>, tensor<16x8xi8>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: i8, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[W:.*]] = arith.sitofp %[[B]] : i8 to f32
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[W]] : f32
// CHECK-NEXT: arith.addf %[[OUT]], %[[P]] : f32
func.func @by_column(%x: tensor<3x16xf32>, %q: tensor<8x16xi8> {pipeline.weight = "q"}, %init: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %te = tensor.empty() : tensor<16x8xi8>
  %t = linalg.transpose ins(%q : tensor<8x16xi8>) outs(%te : tensor<16x8xi8>) permutation = [1, 0]
  %we = tensor.empty() : tensor<16x8xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<16x8xi8>) outs(%we : tensor<16x8xf32>) {
  ^bb0(%i: i8, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    linalg.yield %f : f32
  } -> tensor<16x8xf32>
  // expected-remark @below {{passed: dequantizes its weight of i8 as it reads it}}
  %r = linalg.matmul ins(%x, %w : tensor<3x16xf32>, tensor<16x8xf32>) outs(%init : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

// -----

// Groups of 32 with a scale and a zero point: the sum runs over groups, and in them. Reshapes do not hide the weight.

#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#group = affine_map<(d0, d1, d2) -> (d0, d1, 0)>

// CHECK-DAG: #[[X_MAP:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-DAG: #[[Q_MAP:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1)>
// CHECK-DAG: #[[S_MAP:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d1)>
// CHECK-LABEL: func.func @by_group
// CHECK: linalg.generic {indexing_maps = [#[[X_MAP]], #[[Q_MAP]], #[[S_MAP]], #[[S_MAP]], #{{.*}}], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
// CHECK-SAME: tensor<3x2x32xf32>, tensor<2x32x4xi8>, tensor<2x4xi8>, tensor<2x4xf32>
// CHECK: %[[D:.*]] = arith.subf
// CHECK: %[[W:.*]] = arith.mulf %[[D]], %{{.*}} : f32
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %[[W]] : f32
// CHECK: arith.addf %{{.*}}, %[[P]] : f32
func.func @by_group(%x: tensor<3x64xf32>, %q: tensor<4x64xi8> {pipeline.weight = "q"},
    %s: tensor<4x2x1xf32> {pipeline.weight = "s"}, %z: tensor<4x2x1xi8> {pipeline.weight = "z"},
    %init: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %g = tensor.expand_shape %q [[0], [1, 2]] output_shape [4, 2, 32] : tensor<4x64xi8> into tensor<4x2x32xi8>
  %we = tensor.empty() : tensor<4x2x32xf32>
  %w = linalg.generic {indexing_maps = [#id3, #group, #group, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g, %z, %s : tensor<4x2x32xi8>, tensor<4x2x1xi8>, tensor<4x2x1xf32>) outs(%we : tensor<4x2x32xf32>) {
  ^bb0(%i: i8, %j: i8, %k: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %h = arith.sitofp %j : i8 to f32
    %d = arith.subf %f, %h : f32
    %m = arith.mulf %d, %k : f32
    linalg.yield %m : f32
  } -> tensor<4x2x32xf32>
  %c = tensor.collapse_shape %w [[0], [1, 2]] : tensor<4x2x32xf32> into tensor<4x64xf32>
  %te = tensor.empty() : tensor<64x4xf32>
  %t = linalg.transpose ins(%c : tensor<4x64xf32>) outs(%te : tensor<64x4xf32>) permutation = [1, 0]
  // expected-remark @below {{passed: dequantizes its weight of i8 as it reads it}}
  %r = linalg.matmul ins(%x, %t : tensor<3x64xf32>, tensor<64x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// What is no weight of the model, and used more than once, is dequantized once.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @no_weight
// CHECK: arith.sitofp
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<3x16xf32>, tensor<16x8xf32>)
func.func @no_weight(%x: tensor<3x16xf32>, %q: tensor<16x8xi8>, %init: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<16x8xf32>) {
  %we = tensor.empty() : tensor<16x8xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<16x8xi8>) outs(%we : tensor<16x8xf32>) {
  ^bb0(%i: i8, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    linalg.yield %f : f32
  } -> tensor<16x8xf32>
  %r = linalg.matmul ins(%x, %w : tensor<3x16xf32>, tensor<16x8xf32>) outs(%init : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %r, %w : tensor<3x8xf32>, tensor<16x8xf32>
}

// -----

// Scales of as many elements as the weight are no groups.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @each_its_scale
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<3x16xf32>, tensor<16x8xf32>)
func.func @each_its_scale(%x: tensor<3x16xf32>, %q: tensor<16x8xi8> {pipeline.weight = "q"},
    %s: tensor<16x8xf32> {pipeline.weight = "s"}, %init: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %we = tensor.empty() : tensor<16x8xf32>
  %w = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<16x8xi8>, tensor<16x8xf32>) outs(%we : tensor<16x8xf32>) {
  ^bb0(%i: i8, %j: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %f, %j : f32
    linalg.yield %m : f32
  } -> tensor<16x8xf32>
  %r = linalg.matmul ins(%x, %w : tensor<3x16xf32>, tensor<16x8xf32>) outs(%init : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

// -----

// A weight of floats that are known is left to @prepare.

// CHECK-LABEL: func.func @floats
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<3x16xf32>, tensor<16x8xf32>)
func.func @floats(%x: tensor<3x16xf32>, %w: tensor<16x8xf32> {pipeline.weight = "w"}, %init: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %r = linalg.matmul ins(%x, %w : tensor<3x16xf32>, tensor<16x8xf32>) outs(%init : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

// -----

// A scale of one element that a reshape makes a scalar.

#one = affine_map<(d0) -> (d0)>
#two = affine_map<(d0, d1) -> (d0, d1)>
#scalar = affine_map<(d0, d1) -> ()>

// CHECK-LABEL: func.func @of_a_scalar
// CHECK-SAME: (%[[X:.*]]: tensor<3x16xf32>, %[[Q:.*]]: tensor<16x8xi8> {{{.*}}}, %[[S:.*]]: tensor<1xf32> {{{.*}}}, %{{.*}}: tensor<3x8xf32>)
// CHECK-NOT: tensor<16x8xf32>
// CHECK: return
func.func @of_a_scalar(%x: tensor<3x16xf32>, %q: tensor<16x8xi8> {pipeline.weight = "q"},
    %s: tensor<1xf32> {pipeline.weight = "s"}, %init: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %se = tensor.empty() : tensor<1xf32>
  %negative = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<1xf32>) outs(%se : tensor<1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %n = arith.negf %i : f32
    linalg.yield %n : f32
  } -> tensor<1xf32>
  %scale = tensor.collapse_shape %negative [] : tensor<1xf32> into tensor<f32>
  %we = tensor.empty() : tensor<16x8xf32>
  %w = linalg.generic {indexing_maps = [#two, #scalar, #two], iterator_types = ["parallel", "parallel"]}
      ins(%q, %scale : tensor<16x8xi8>, tensor<f32>) outs(%we : tensor<16x8xf32>) {
  ^bb0(%i: i8, %j: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %p = arith.mulf %f, %j : f32
    linalg.yield %p : f32
  } -> tensor<16x8xf32>
  // expected-remark @below {{passed: dequantizes its weight of i8 as it reads it}}
  %r = linalg.matmul ins(%x, %w : tensor<3x16xf32>, tensor<16x8xf32>) outs(%init : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

// -----

// Integers that are wider on the way from bytes to bytes are no weight of their own: the mask is @prepare's.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @through_wide
// CHECK: %[[MASKED:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<64x64xi8>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[MASKED]] : tensor<3x64xf32>, tensor<64x64xi8>)
// CHECK-NOT: arith.andi
func.func @through_wide(%x: tensor<3x64xf32>, %w: tensor<64x64xi8> {pipeline.weight = "w"}, %y: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %mask = arith.constant 15 : i32
  %wide = tensor.empty() : tensor<64x64xi32>
  %bytes = tensor.empty() : tensor<64x64xi8>
  %floats = tensor.empty() : tensor<64x64xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x64xi8>) outs(%wide : tensor<64x64xi32>) {
  ^bb0(%in: i8, %out: i32):
    %0 = arith.extsi %in : i8 to i32
    %1 = arith.andi %0, %mask : i32
    linalg.yield %1 : i32
  } -> tensor<64x64xi32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<64x64xi32>) outs(%bytes : tensor<64x64xi8>) {
  ^bb0(%in: i32, %out: i8):
    %0 = arith.trunci %in : i32 to i8
    linalg.yield %0 : i8
  } -> tensor<64x64xi8>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<64x64xi8>) outs(%floats : tensor<64x64xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<64x64xf32>
  // expected-remark @below {{passed: dequantizes its weight of i8 as it reads it}}
  %r = linalg.matmul ins(%x, %c : tensor<3x64xf32>, tensor<64x64xf32>) outs(%y : tensor<3x64xf32>) -> tensor<3x64xf32>
  return %r : tensor<3x64xf32>
}

// -----

// Groups that are dims of the weight are joined: the loop of the sum is split into them.

#id = affine_map<(n, g, k) -> (n, g, k)>
#group = affine_map<(n, g, k) -> (n, g)>

// CHECK-LABEL: func.func @dims
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<3x2x32xf32>, tensor<2x32x8xi8>, tensor<2x8xf32>)
func.func @dims(%x: tensor<3x64xf32>, %w: tensor<8x2x32xi8> {pipeline.weight = "w"}, %s: tensor<8x2xf32> {pipeline.weight = "s"}, %y: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %floats = tensor.empty() : tensor<8x2x32xf32>
  %a = linalg.generic {indexing_maps = [#id, #group, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w, %s : tensor<8x2x32xi8>, tensor<8x2xf32>) outs(%floats : tensor<8x2x32xf32>) {
  ^bb0(%in: i8, %scale: f32, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    %1 = arith.mulf %0, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<8x2x32xf32>
  %flat = tensor.collapse_shape %a [[0], [1, 2]] : tensor<8x2x32xf32> into tensor<8x64xf32>
  %e = tensor.empty() : tensor<64x8xf32>
  %t = linalg.transpose ins(%flat : tensor<8x64xf32>) outs(%e : tensor<64x8xf32>) permutation = [1, 0]
  // expected-remark @below {{passed: dequantizes its weight of i8 as it reads it}}
  %r = linalg.matmul ins(%x, %t : tensor<3x64xf32>, tensor<64x8xf32>) outs(%y : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

// -----

// Keys of a cache, data: rows of bytes lie along those of the result, and are read as they are, however long.

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// CHECK-LABEL: func.func @converted_data
// CHECK-SAME: (%[[Q:.*]]: tensor<4x2x8xf32>, %[[K:.*]]: tensor<4x8x?xi8>, %[[INIT:.*]]: tensor<4x2x?xf32>, %{{.*}}: index)
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[Q]], %[[K]] : tensor<4x2x8xf32>, tensor<4x8x?xi8>) outs(%[[INIT]] : tensor<4x2x?xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: i8, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[F:.*]] = arith.sitofp %[[B]] : i8 to f32
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[F]] : f32
// CHECK-NEXT: arith.addf %[[OUT]], %[[P]] : f32
func.func @converted_data(%q: tensor<4x2x8xf32>, %k: tensor<4x8x?xi8>, %init: tensor<4x2x?xf32>, %n: index) -> tensor<4x2x?xf32> {
  %e = tensor.empty(%n) : tensor<4x8x?xf32>
  %f = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<4x8x?xi8>) outs(%e : tensor<4x8x?xf32>) {
  ^bb0(%i: i8, %o: f32):
    %c = arith.sitofp %i : i8 to f32
    linalg.yield %c : f32
  } -> tensor<4x8x?xf32>
  // expected-remark @below {{passed: converts its operand of i8 as it reads it}}
  %r = linalg.batch_matmul ins(%q, %f : tensor<4x2x8xf32>, tensor<4x8x?xf32>) outs(%init : tensor<4x2x?xf32>) -> tensor<4x2x?xf32>
  return %r : tensor<4x2x?xf32>
}

// -----

// Not here: bytes along the sum are broadcast one by one; what is computed besides would be computed in each row again.

#two = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @data_along_the_sum
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8x16xf32>)
func.func @data_along_the_sum(%x: tensor<4x8xi8>, %w: tensor<8x16xf32>, %init: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xi8>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%i: i8, %o: f32):
    %c = arith.sitofp %i : i8 to f32
    linalg.yield %c : f32
  } -> tensor<4x8xf32>
  %r = linalg.matmul ins(%f, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%init : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

// -----

#two = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @computed_data
// CHECK: math.exp
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8x16xf32>)
func.func @computed_data(%x: tensor<4x8xf32>, %k: tensor<8x16xi8>, %init: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%k : tensor<8x16xi8>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%i: i8, %o: f32):
    %c = arith.sitofp %i : i8 to f32
    %p = math.exp %c : f32
    linalg.yield %p : f32
  } -> tensor<8x16xf32>
  %r = linalg.matmul ins(%x, %f : tensor<4x8xf32>, tensor<8x16xf32>) outs(%init : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

// -----

// The difference of small integers is one of floats: what comes from the weight alone is the same for all zero points.

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @difference
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<3x64xf32>, tensor<64x4xi8>, tensor<4xi8>)
// CHECK-NOT: arith.subi
// CHECK: arith.subf
func.func @difference(%x: tensor<3x64xf32>, %q: tensor<64x4xi8> {pipeline.weight = "q"}, %z: tensor<4xi8> {pipeline.weight = "z"}) -> tensor<3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<64x4xf32>
  %wf = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %z : tensor<64x4xi8>, tensor<4xi8>) outs(%we : tensor<64x4xf32>) {
  ^bb0(%i: i8, %k: i8, %o: f32):
    %a = arith.extsi %i : i8 to i32
    %b = arith.extsi %k : i8 to i32
    %d = arith.subi %a, %b : i32
    %f = arith.sitofp %d : i32 to f32
    linalg.yield %f : f32
  } -> tensor<64x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-remark @below {{passed: dequantizes its weight of i8 as it reads it}}
  %r = linalg.matmul ins(%x, %wf : tensor<3x64xf32>, tensor<64x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// Must not: a difference that wraps in bytes.

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @wraps
// CHECK: arith.subi %{{.*}}, %{{.*}} : i8
// CHECK-NOT: arith.subf
func.func @wraps(%x: tensor<3x64xf32>, %q: tensor<64x4xi8> {pipeline.weight = "q"}, %z: tensor<4xi8> {pipeline.weight = "z"}) -> tensor<3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<64x4xf32>
  %wf = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %z : tensor<64x4xi8>, tensor<4xi8>) outs(%we : tensor<64x4xf32>) {
  ^bb0(%i: i8, %k: i8, %o: f32):
    %d = arith.subi %i, %k : i8
    %f = arith.sitofp %d : i8 to f32
    linalg.yield %f : f32
  } -> tensor<64x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-remark @below {{passed: dequantizes its weight of i8 as it reads it}}
  %r = linalg.matmul ins(%x, %wf : tensor<3x64xf32>, tensor<64x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
