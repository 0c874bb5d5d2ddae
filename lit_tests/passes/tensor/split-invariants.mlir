// RUN: pipeline-opt %s --split-invariants --split-input-file | FileCheck %s

// The root of a variance in the body of a norm is computed for each channel, not for each element.

#all = affine_map<(d0, d1) -> (d0, d1)>
#channel = affine_map<(d0, d1) -> (d1)>

// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[CHANNEL:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @norm
// CHECK-SAME: (%[[X:.*]]: tensor<64x8xf32>, %[[V:.*]]: tensor<8xf32>)
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[ID]]], iterator_types = ["parallel"]} ins(%[[V]] :
// CHECK: arith.addf
// CHECK: math.rsqrt
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[CHANNEL]], #[[ALL]]]
// CHECK-SAME: ins(%[[X]], %[[R]] :
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.mulf %[[A]], %[[B]]
// CHECK-NEXT: linalg.yield
// CHECK: return %[[Y]]
func.func @norm(%x: tensor<64x8xf32>, %v: tensor<8xf32>) -> tensor<64x8xf32> {
  %e = tensor.empty() : tensor<64x8xf32>
  %eps = arith.constant 1.0e-5 : f32
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<64x8xf32>, tensor<8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%in: f32, %var: f32, %out: f32):
    %1 = arith.addf %var, %eps : f32
    %2 = math.rsqrt %1 : f32
    %3 = arith.mulf %in, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}

// Must not fire: an addition is as cheap as reading its result again.

// CHECK-LABEL: func.func @cheap
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @cheap(%x: tensor<64x8xf32>, %v: tensor<8xf32>) -> tensor<64x8xf32> {
  %e = tensor.empty() : tensor<64x8xf32>
  %eps = arith.constant 1.0e-5 : f32
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<64x8xf32>, tensor<8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%in: f32, %var: f32, %out: f32):
    %1 = arith.addf %var, %eps : f32
    %2 = arith.mulf %in, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}

// Must not fire: the root is of each element; it depends on where it is; it is of a number that the op has written.

// CHECK-LABEL: func.func @of_elements
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @of_elements(%x: tensor<64x8xf32>, %v: tensor<8xf32>)
    -> (tensor<64x8xf32>, tensor<64x8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<64x8xf32>
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<64x8xf32>, tensor<8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%in: f32, %var: f32, %out: f32):
    %1 = arith.addf %in, %var : f32
    %2 = math.rsqrt %1 : f32
    linalg.yield %2 : f32
  } -> tensor<64x8xf32>
  %3 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<64x8xf32>, tensor<8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%in: f32, %var: f32, %out: f32):
    %4 = linalg.index 0 : index
    %5 = arith.index_cast %4 : index to i32
    %6 = arith.sitofp %5 : i32 to f32
    %7 = arith.addf %6, %var : f32
    %8 = math.rsqrt %7 : f32
    %9 = arith.mulf %in, %8 : f32
    linalg.yield %9 : f32
  } -> tensor<64x8xf32>
  %10 = linalg.generic {indexing_maps = [#all, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<64x8xf32>) outs(%v : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %11 = math.sqrt %out : f32
    %12 = arith.addf %in, %11 : f32
    linalg.yield %12 : f32
  } -> tensor<8xf32>
  return %0, %3, %10 : tensor<64x8xf32>, tensor<64x8xf32>, tensor<8xf32>
}

// -----

// In front of a product, which is told by its body, goes even what is cheap.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8x6xf32>, %[[INIT:.*]]: tensor<4x6xf32>)
// CHECK: %[[D:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[A]] : tensor<4x8xf32>)
// CHECK: arith.maximumf
// CHECK: linalg.generic {{.*}} ins(%[[B]], %[[D]] : tensor<8x6xf32>, tensor<4x8xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
func.func @product(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %init: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %1 = arith.maximumf %x, %zero : f32
    %2 = arith.mulf %1, %y : f32
    %3 = arith.addf %out, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// Must not fire: along a loop of one iteration nothing is computed again, and a quotient of integers may trap.

#all = affine_map<(d0, d1) -> (d0, d1)>
#channel = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @once
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @once(%x: tensor<1x8xf32>, %v: tensor<8xf32>, %y: tensor<64x8xf32>, %n: tensor<8xi32>)
    -> (tensor<1x8xf32>, tensor<64x8xf32>) {
  %e = tensor.empty() : tensor<1x8xf32>
  %e64 = tensor.empty() : tensor<64x8xf32>
  %seven = arith.constant 7 : i32
  %0 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<1x8xf32>, tensor<8xf32>) outs(%e : tensor<1x8xf32>) {
  ^bb0(%in: f32, %var: f32, %out: f32):
    %1 = math.rsqrt %var : f32
    %2 = arith.mulf %in, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x8xf32>
  %3 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel"]}
      ins(%y, %n : tensor<64x8xf32>, tensor<8xi32>) outs(%e64 : tensor<64x8xf32>) {
  ^bb0(%in: f32, %number: i32, %out: f32):
    %4 = arith.divsi %seven, %number : i32
    %5 = arith.sitofp %4 : i32 to f32
    %6 = math.exp %5 : f32
    %7 = arith.mulf %in, %6 : f32
    linalg.yield %7 : f32
  } -> tensor<64x8xf32>
  return %0, %3 : tensor<1x8xf32>, tensor<64x8xf32>
}
