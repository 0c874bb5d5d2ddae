// RUN: pipeline-opt %s --normalize-linalg --split-input-file | FileCheck %s

// Elementwise ops by name, by kind and by a body become generics, and so do reductions.

// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: (%[[X:.*]]: tensor<4x6xf32>, %[[Y:.*]]: tensor<4x6xf32>, %[[E:.*]]: tensor<4x6xf32>)
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[Y]] :
// CHECK: arith.addf
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[A]] :
// CHECK: math.tanh
// CHECK: %[[C:.*]] = linalg.generic {{.*}} ins(%[[B]] :
// CHECK: math.exp
// CHECK: return %[[C]]
func.func @elementwise(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %e: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = linalg.add ins(%x, %y : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = linalg.map { math.tanh } ins(%0 : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>)
  %2 = linalg.elementwise kind=#linalg.elementwise_kind<exp> ins(%1 : tensor<4x6xf32>)
      outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @reduction
// CHECK-SAME: (%[[X:.*]]: tensor<4x6xf32>, %[[S:.*]]: tensor<4xf32>)
// CHECK: %[[R:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]} ins(%[[X]] : tensor<4x6xf32>) outs(%[[S]] : tensor<4xf32>)
// CHECK: return %[[R]]
func.func @reduction(%x: tensor<4x6xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<4x6xf32>) outs(%s : tensor<4xf32>) dimensions = [1]
  return %0 : tensor<4xf32>
}

// In a branch, too.

// CHECK-LABEL: func.func @branch
// CHECK: scf.if
// CHECK-NEXT: linalg.generic
func.func @branch(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = linalg.exp ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A softmax is the reductions and elementwise ops that it is, along whichever dim.

// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[X:.*]]: tensor<?x6xf32>, %{{.*}}: tensor<?x6xf32>)
// CHECK: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[M0:.*]] = linalg.fill ins(%[[LOW]] : f32)
// CHECK: %[[M:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[COLUMN]]], iterator_types = ["reduction", "parallel"]}
// CHECK-SAME: ins(%[[X]] : tensor<?x6xf32>) outs(%[[M0]] : tensor<6xf32>)
// CHECK: arith.maximumf
// CHECK: %[[D:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[M]] :
// CHECK: arith.subf
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[D]] :
// CHECK: math.exp
// CHECK: %[[T:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[COLUMN]]], iterator_types = ["reduction", "parallel"]}
// CHECK-SAME: ins(%[[P]] :
// CHECK: arith.addf
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[T]] :
// CHECK: arith.divf
// CHECK: return %[[Q]]
func.func @softmax(%x: tensor<?x6xf32>, %e: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %0 = linalg.softmax dimension(0) ins(%x : tensor<?x6xf32>) outs(%e : tensor<?x6xf32>) -> tensor<?x6xf32>
  return %0 : tensor<?x6xf32>
}

// -----

// What writes one number to all elements is a fill, where a sum starts from it.

#number = affine_map<(d0, d1) -> ()>
#all = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @fills
// CHECK-SAME: (%[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8x6xf32>, %[[E:.*]]: tensor<4x6xf32>, %[[N:.*]]: tensor<f32>)
// CHECK: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: %[[F:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[E]] :
// CHECK: linalg.matmul {{.*}} outs(%[[F]] :
// CHECK: %[[NUMBER:.*]] = tensor.extract %[[N]][]
// CHECK: %[[G:.*]] = linalg.fill ins(%[[NUMBER]] : f32) outs(%[[E]] :
// CHECK: linalg.matmul {{.*}} outs(%[[G]] :
func.func @fills(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %e: tensor<4x6xf32>, %n: tensor<f32>)
    -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x6xf32>) {
  ^bb0(%out: f32):
    linalg.yield %zero : f32
  } -> tensor<4x6xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = linalg.generic {indexing_maps = [#number, #all], iterator_types = ["parallel", "parallel"]}
      ins(%n : tensor<f32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x6xf32>
  %3 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %1, %3 : tensor<4x6xf32>, tensor<4x6xf32>
}

// Must not fire: nothing starts from the first; the second writes a row again and again.

#row = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @no_fills
// CHECK-NOT: linalg.fill
// CHECK: return
func.func @no_fills(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %e: tensor<4x6xf32>, %row: tensor<6xf32>)
    -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x6xf32>) {
  ^bb0(%out: f32):
    linalg.yield %zero : f32
  } -> tensor<4x6xf32>
  %1 = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%row : tensor<6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x6xf32>
  %2 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%1 : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0, %2 : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// Parts inserted one behind the other, in whichever order, are a concatenation.

// CHECK-LABEL: func.func @insertions
// CHECK-SAME: (%[[A:.*]]: tensor<4x2xf32>, %[[B:.*]]: tensor<4x3xf32>)
// CHECK: %[[C:.*]] = tensor.concat dim(1) %[[A]], %[[B]]
// CHECK: return %[[C]]
func.func @insertions(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>) -> tensor<4x5xf32> {
  %e = tensor.empty() : tensor<4x5xf32>
  %0 = tensor.insert_slice %b into %e[0, 2] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x5xf32>
  %1 = tensor.insert_slice %a into %0[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x5xf32>
  return %1 : tensor<4x5xf32>
}

// Must not fire: one column is left as it was; the parts overlap; what they are inserted into is no empty tensor.

// CHECK-LABEL: func.func @gap
// CHECK-NOT: tensor.concat
// CHECK: return
func.func @gap(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x6xf32>
  %1 = tensor.insert_slice %b into %0[0, 3] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @overlap
// CHECK-NOT: tensor.concat
// CHECK: return
func.func @overlap(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x4xf32>
  %1 = tensor.insert_slice %b into %0[0, 1] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @update
// CHECK-NOT: tensor.concat
// CHECK: return
func.func @update(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>, %e: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = tensor.insert_slice %a into %e[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x6xf32>
  %1 = tensor.insert_slice %b into %0[0, 2] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// -----

// Must not fire: products, convolutions, pools, fills, transposes and broadcasts are told by their names.

// CHECK-LABEL: func.func @names
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @names(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %number: f32, %out: tensor<1x4x8x8xf32>,
    %window: tensor<2x2xf32>, %small: tensor<1x4x7x7xf32>, %t: tensor<4x1x7x7xf32>, %a: tensor<4x4xf32>,
    %b: tensor<2x4x4xf32>) -> (tensor<4x1x7x7xf32>, tensor<2x4x4xf32>) {
  %0 = linalg.fill ins(%number : f32) outs(%out : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %1 = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>)
      outs(%0 : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %2 = linalg.pooling_nchw_max ins(%1, %window : tensor<1x4x8x8xf32>, tensor<2x2xf32>)
      outs(%small : tensor<1x4x7x7xf32>) -> tensor<1x4x7x7xf32>
  %3 = linalg.transpose ins(%2 : tensor<1x4x7x7xf32>) outs(%t : tensor<4x1x7x7xf32>) permutation = [1, 0, 2, 3]
  %4 = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = linalg.broadcast ins(%4 : tensor<4x4xf32>) outs(%b : tensor<2x4x4xf32>) dimensions = [0]
  return %3, %5 : tensor<4x1x7x7xf32>, tensor<2x4x4xf32>
}
