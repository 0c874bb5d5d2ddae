// RUN: pipeline-opt %s --generalize-products | FileCheck %s

// Products of all kinds, transposes and broadcasts become generics, in branches too.

// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @products
// CHECK-NOT: linalg.matmul
// CHECK: linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[C]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK: scf.if
// CHECK-NEXT: linalg.generic
// CHECK-NOT: linalg.batch_matmul
// CHECK: return
func.func @products(%c: i1, %a: tensor<4x6xf32>, %b: tensor<6x5xf32>, %out: tensor<4x5xf32>, %x: tensor<2x3x3xf32>) -> (tensor<4x5xf32>, tensor<2x3x3xf32>) {
  %0 = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x5xf32>) outs(%out : tensor<4x5xf32>) -> tensor<4x5xf32>
  %1 = scf.if %c -> tensor<2x3x3xf32> {
    %2 = linalg.batch_matmul ins(%x, %x : tensor<2x3x3xf32>, tensor<2x3x3xf32>) outs(%x : tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    scf.yield %2 : tensor<2x3x3xf32>
  } else {
    scf.yield %x : tensor<2x3x3xf32>
  }
  return %0, %1 : tensor<4x5xf32>, tensor<2x3x3xf32>
}

// CHECK-LABEL: func.func @vectors
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.{{matvec|vecmat|dot}}
// CHECK: return
func.func @vectors(%a: tensor<4x6xi32>, %x: tensor<6xi32>, %y: tensor<4xi32>, %row: tensor<6xi32>, %one: tensor<i32>) -> (tensor<4xi32>, tensor<6xi32>, tensor<i32>) {
  %0 = linalg.matvec ins(%a, %x : tensor<4x6xi32>, tensor<6xi32>) outs(%y : tensor<4xi32>) -> tensor<4xi32>
  %1 = linalg.vecmat ins(%y, %a : tensor<4xi32>, tensor<4x6xi32>) outs(%row : tensor<6xi32>) -> tensor<6xi32>
  %2 = linalg.dot ins(%x, %row : tensor<6xi32>, tensor<6xi32>) outs(%one : tensor<i32>) -> tensor<i32>
  return %0, %1, %2 : tensor<4xi32>, tensor<6xi32>, tensor<i32>
}

// CHECK-LABEL: func.func @moves
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: linalg.transpose
// CHECK-NOT: linalg.broadcast
// CHECK: return
func.func @moves(%a: tensor<4x6xf32>, %t: tensor<6x4xf32>, %b: tensor<3x4x6xf32>) -> (tensor<6x4xf32>, tensor<3x4x6xf32>) {
  %0 = linalg.transpose ins(%a : tensor<4x6xf32>) outs(%t : tensor<6x4xf32>) permutation = [1, 0]
  %1 = linalg.broadcast ins(%a : tensor<4x6xf32>) outs(%b : tensor<3x4x6xf32>) dimensions = [0]
  return %0, %1 : tensor<6x4xf32>, tensor<3x4x6xf32>
}

// Must not fire: convolutions, pools, fills and what is elementwise keep their names.

// CHECK-LABEL: func.func @left_alone
// CHECK: linalg.fill
// CHECK: linalg.conv_2d_nchw_fchw
// CHECK: linalg.pooling_nchw_max
// CHECK: linalg.exp
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @left_alone(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %zero: f32, %out: tensor<1x4x8x8xf32>, %window: tensor<2x2xf32>, %small: tensor<1x4x7x7xf32>) -> tensor<1x4x7x7xf32> {
  %fill = linalg.fill ins(%zero : f32) outs(%out : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %conv = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) outs(%fill : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %pool = linalg.pooling_nchw_max ins(%conv, %window : tensor<1x4x8x8xf32>, tensor<2x2xf32>) outs(%small : tensor<1x4x7x7xf32>) -> tensor<1x4x7x7xf32>
  %exp = linalg.exp ins(%pool : tensor<1x4x7x7xf32>) outs(%small : tensor<1x4x7x7xf32>) -> tensor<1x4x7x7xf32>
  return %exp : tensor<1x4x7x7xf32>
}
