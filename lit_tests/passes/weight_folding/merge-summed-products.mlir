// RUN: pipeline-opt %s --split-input-file --merge-summed-products | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --remarks-filter=merge-summed-products --merge-summed-products --verify-diagnostics

// Three products of a sum, and a term that is none. Transposed operands go side by side before they are transposed.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @gradient
// CHECK-SAME: (%[[A:.*]]: tensor<2x16xf32>, %[[B:.*]]: tensor<2x8xf32>, %[[C:.*]]: tensor<3x16xf32>, %[[D:.*]]: tensor<3x8xf32>, %[[E:.*]]: tensor<16x8xf32>)
// CHECK-DAG: %[[LEFT:.*]] = tensor.concat dim(0) %[[A]], %[[C]], %[[A]] : (tensor<2x16xf32>, tensor<3x16xf32>, tensor<2x16xf32>) -> tensor<7x16xf32>
// CHECK-DAG: %[[T:.*]] = linalg.transpose ins(%[[LEFT]] : tensor<7x16xf32>) outs(%{{.*}} : tensor<16x7xf32>) permutation = [1, 0]
// CHECK-DAG: %[[RIGHT:.*]] = tensor.concat dim(0) %[[B]], %[[D]], %[[B]]
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[T]], %[[RIGHT]] : tensor<16x7xf32>, tensor<7x8xf32>)
// CHECK-NOT: linalg.matmul
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK-SAME: ins(%[[P]], %[[E]] : tensor<16x8xf32>, tensor<16x8xf32>)
// CHECK: return %[[SUM]]
func.func @gradient(%a: tensor<2x16xf32>, %b: tensor<2x8xf32>, %c: tensor<3x16xf32>, %d: tensor<3x8xf32>, %e: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<16x2xf32>
  %ta = linalg.transpose ins(%a : tensor<2x16xf32>) outs(%ea : tensor<16x2xf32>) permutation = [1, 0]
  %ec = tensor.empty() : tensor<16x3xf32>
  %tc = linalg.transpose ins(%c : tensor<3x16xf32>) outs(%ec : tensor<16x3xf32>) permutation = [1, 0]
  %out = tensor.empty() : tensor<16x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<16x8xf32>) -> tensor<16x8xf32>
  // expected-remark @below {{passed: merged with 2 other products that are added to it}}
  %p = linalg.matmul ins(%ta, %b : tensor<16x2xf32>, tensor<2x8xf32>) outs(%f : tensor<16x8xf32>) -> tensor<16x8xf32>
  %q = linalg.matmul ins(%tc, %d : tensor<16x3xf32>, tensor<3x8xf32>) outs(%f : tensor<16x8xf32>) -> tensor<16x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %e : tensor<16x8xf32>, tensor<16x8xf32>) outs(%out : tensor<16x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.addf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<16x8xf32>
  %t = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %q : tensor<16x8xf32>, tensor<16x8xf32>) outs(%out : tensor<16x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.addf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<16x8xf32>
  %u = linalg.matmul ins(%ta, %b : tensor<16x2xf32>, tensor<2x8xf32>) outs(%f : tensor<16x8xf32>) -> tensor<16x8xf32>
  %v = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%t, %u : tensor<16x8xf32>, tensor<16x8xf32>) outs(%out : tensor<16x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.addf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<16x8xf32>
  return %v : tensor<16x8xf32>
}

// -----

// Batches, written as generics: the dim that is summed over is another one in each operand.

#id = affine_map<(b, i, j) -> (b, i, j)>
#l = affine_map<(b, i, j, k) -> (b, k, i)>
#r = affine_map<(b, i, j, k) -> (b, j, k)>
#o = affine_map<(b, i, j, k) -> (b, i, j)>

// CHECK-LABEL: func.func @batches
// CHECK-DAG: tensor.concat dim(1) %{{.*}}, %{{.*}} : (tensor<2x2x16xf32>, tensor<2x3x16xf32>) -> tensor<2x5x16xf32>
// CHECK-DAG: tensor.concat dim(2) %{{.*}}, %{{.*}} : (tensor<2x16x2xf32>, tensor<2x16x3xf32>) -> tensor<2x16x5xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<2x5x16xf32>, tensor<2x16x5xf32>)
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @batches(%a: tensor<2x2x16xf32>, %b: tensor<2x16x2xf32>, %c: tensor<2x3x16xf32>, %d: tensor<2x16x3xf32>) -> tensor<2x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %out = tensor.empty() : tensor<2x16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
  // expected-remark @below {{passed: merged with 1 other products that are added to it}}
  %p = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : tensor<2x2x16xf32>, tensor<2x16x2xf32>) outs(%f : tensor<2x16x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x16x16xf32>
  %q = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%c, %d : tensor<2x3x16xf32>, tensor<2x16x3xf32>) outs(%f : tensor<2x16x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x16x16xf32>
  %t = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%p, %q : tensor<2x16x16xf32>, tensor<2x16x16xf32>) outs(%out : tensor<2x16x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.addf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<2x16x16xf32>
  return %t : tensor<2x16x16xf32>
}

// -----

// Left alone: long sums, whose operands are larger than the result; a product that others read; one that adds to
// something; a size that is not known; products with weights.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: tensor.concat
func.func @left_alone(%a: tensor<8x64xf32>, %b: tensor<64x8xf32>, %g: tensor<8x1xf32>, %h: tensor<1x8xf32>, %e: tensor<8x8xf32>, %i: tensor<8x?xf32>, %j: tensor<?x8xf32>,
                      %weight: tensor<1x8xf32> {pipeline.weight = "w"}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %out = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<8x8xf32>) -> tensor<8x8xf32>
  // expected-remark @below {{missed: not merged with 1 other products that are added to it: their operands have 2048 elements, their results 64}}
  %p = linalg.matmul ins(%a, %b : tensor<8x64xf32>, tensor<64x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %q = linalg.matmul ins(%a, %b : tensor<8x64xf32>, tensor<64x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %q : tensor<8x8xf32>, tensor<8x8xf32>) outs(%out : tensor<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.addf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %k = linalg.matmul ins(%g, %h : tensor<8x1xf32>, tensor<1x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %l = linalg.matmul ins(%g, %h : tensor<8x1xf32>, tensor<1x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%k, %l : tensor<8x8xf32>, tensor<8x8xf32>) outs(%out : tensor<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.addf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %m = linalg.matmul ins(%g, %h : tensor<8x1xf32>, tensor<1x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = linalg.matmul ins(%g, %h : tensor<8x1xf32>, tensor<1x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %u = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %n : tensor<8x8xf32>, tensor<8x8xf32>) outs(%out : tensor<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.addf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %v = linalg.matmul ins(%i, %j : tensor<8x?xf32>, tensor<?x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %w = linalg.matmul ins(%i, %j : tensor<8x?xf32>, tensor<?x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%v, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%out : tensor<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.addf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %of = linalg.matmul ins(%g, %weight : tensor<8x1xf32>, tensor<1x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %weights = linalg.matmul ins(%g, %weight : tensor<8x1xf32>, tensor<1x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %stay = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%of, %weights : tensor<8x8xf32>, tensor<8x8xf32>) outs(%out : tensor<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.addf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  return %s, %t, %k, %u, %z, %stay : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
