// RUN: pipeline-opt %s --split-input-file --fuse-elementwise --form-groups | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --fuse-elementwise | FileCheck %s --check-prefix=FUSED
// RUN: pipeline-opt %s --split-input-file --fuse-elementwise --remarks-filter=fuse-elementwise --verify-diagnostics

// Bytes with two users are made where the floats are: these need not be in memory.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @several_users
// FUSED-LABEL: func.func @several_users
// FUSED: %[[Q:.*]] = linalg.generic
// FUSED: arith.mulf
// FUSED-NEXT: arith.fptosi
// FUSED: linalg.generic
// FUSED-SAME: ins(%[[Q]] : tensor<4x8xi8>)
// FUSED: linalg.generic
// FUSED-SAME: ins(%[[Q]] : tensor<4x8xi8>)
func.func @several_users(%x: tensor<4x8xf32>, %s: tensor<4xf32>, %t: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %d = arith.mulf %in, %in : f32
    linalg.yield %d : f32
  } -> tensor<4x8xf32>
  %b = tensor.empty() : tensor<4x8xi8>
  // expected-remark @below {{passed: computes its operand 0, linalg.generic, itself}}
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<4x8xf32>) outs(%b : tensor<4x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %d = arith.fptosi %in : f32 to i8
    linalg.yield %d : i8
  } -> tensor<4x8xi8>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it has 2 users}}
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%q : tensor<4x8xi8>) outs(%s : tensor<4xf32>) {
  ^bb0(%in: i8, %out: f32):
    %f = arith.sitofp %in : i8 to f32
    %d = arith.addf %f, %out : f32
    linalg.yield %d : f32
  } -> tensor<4xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it has 2 users}}
  %u = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%q : tensor<4x8xi8>) outs(%t : tensor<4xf32>) {
  ^bb0(%in: i8, %out: f32):
    %f = arith.uitofp %in : i8 to f32
    %d = arith.addf %f, %out : f32
    linalg.yield %d : f32
  } -> tensor<4xf32>
  return %r, %u : tensor<4xf32>, tensor<4xf32>
}

// -----

// Two products meet, of which one is rounded to bytes first: each is an anchor, and only bytes go from one to the other.

#id = affine_map<(d0, d1) -> (d0, d1)>

// FUSED-LABEL: func.func @two_sums
// CHECK-LABEL: func.func @two_sums
// CHECK: %[[Q:.*]] = "fusion.group"
// CHECK: linalg.matmul
// CHECK: arith.fptosi
// CHECK: -> tensor<4x6xi8>
// CHECK: "fusion.group"
// CHECK-SAME: %[[Q]]
// CHECK: linalg.matmul
// CHECK: arith.sitofp
// CHECK: -> tensor<4x6xf32>
func.func @two_sums(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x8xf32>, %d: tensor<8x6xf32>, %init: tensor<4x6xf32>, %other: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %p = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %q = linalg.matmul ins(%c, %d : tensor<4x8xf32>, tensor<8x6xf32>) outs(%other : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x6xi8>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<4x6xf32>) outs(%e : tensor<4x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %i = arith.fptosi %in : f32 to i8
    linalg.yield %i : i8
  } -> tensor<4x6xi8>
  %f = tensor.empty() : tensor<4x6xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it makes narrow elements of a sum, and the consumer reads another sum}}
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%n, %p : tensor<4x6xi8>, tensor<4x6xf32>) outs(%f : tensor<4x6xf32>) {
  ^bb0(%in: i8, %x: f32, %out: f32):
    %w = arith.sitofp %in : i8 to f32
    %s = arith.addf %w, %x : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
