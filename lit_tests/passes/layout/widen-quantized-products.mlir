// RUN: pipeline-opt %s --split-input-file --widen-quantized-products | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --widen-quantized-products="weights=true" | FileCheck %s --check-prefix=ALL
// RUN: pipeline-opt %s --split-input-file --widen-quantized-products --fuse-dequantization --canonicalize --cse | FileCheck %s --check-prefix=FUSED

// A weight of bytes as bf16: both factors are widened in front of the product, which can take the bytes then.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @bytes
// CHECK-SAME: (%[[X:.*]]: tensor<3x16xbf16>, %[[Q:.*]]: tensor<16x8xi8> {{{.*}}}, %[[INIT:.*]]: tensor<3x8xf32>)
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%[[Q]] : tensor<16x8xi8>) outs(%{{.*}} : tensor<16x8xbf16>)
// CHECK: %[[WIDE_X:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<3x16xbf16>) outs(%{{.*}} : tensor<3x16xf32>)
// CHECK: arith.extf
// CHECK: %[[WIDE_W:.*]] = linalg.generic {{.*}} ins(%[[W]] : tensor<16x8xbf16>) outs(%{{.*}} : tensor<16x8xf32>)
// CHECK: linalg.matmul ins(%[[WIDE_X]], %[[WIDE_W]] : tensor<3x16xf32>, tensor<16x8xf32>) outs(%[[INIT]] : tensor<3x8xf32>)
// FUSED-LABEL: func.func @bytes
// FUSED-NOT: tensor<16x8xf32>
// FUSED: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<3x16xf32>, tensor<16x8xi8>)
func.func @bytes(%x: tensor<3x16xbf16>, %q: tensor<16x8xi8> {pipeline.weight = "q"}, %init: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %e = tensor.empty() : tensor<16x8xbf16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<16x8xi8>) outs(%e : tensor<16x8xbf16>) {
  ^bb0(%i: i8, %o: bf16):
    %f = arith.sitofp %i : i8 to bf16
    linalg.yield %f : bf16
  } -> tensor<16x8xbf16>
  %r = linalg.matmul ins(%x, %w : tensor<3x16xbf16>, tensor<16x8xbf16>) outs(%init : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

// -----

// A body that extends its elements no longer does so; sizes may be unknown. Data that a cache keeps as bytes counts, too.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#r = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @body
// CHECK: tensor.dim
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : tensor<?x16xf32>, tensor<16x8xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT: arith.addf %[[OUT]], %[[P]] : f32
func.func @body(%x: tensor<?x16xf16>, %q: tensor<16x8xi8>, %init: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %e = tensor.empty() : tensor<16x8xf16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<16x8xi8>) outs(%e : tensor<16x8xf16>) {
  ^bb0(%i: i8, %o: f16):
    %f = arith.sitofp %i : i8 to f16
    linalg.yield %f : f16
  } -> tensor<16x8xf16>
  %p = linalg.generic {indexing_maps = [#x, #w, #r], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x16xf16>, tensor<16x8xf16>) outs(%init : tensor<?x8xf32>) {
  ^bb0(%i: f16, %j: f16, %o: f32):
    %ii = arith.extf %i : f16 to f32
    %jj = arith.extf %j : f16 to f32
    %m = arith.mulf %ii, %jj : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  return %p : tensor<?x8xf32>
}

// -----

// Must not fire: a weight in bf16, unless weights are to be quantized; factors that are data; sums in bf16; f32.

// CHECK-LABEL: func.func @others
// CHECK-NOT: arith.extf
// ALL-LABEL: func.func @others
// ALL: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<3x16xf32>, tensor<16x8xf32>) outs(%{{.*}} : tensor<3x8xf32>)
// ALL: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<3x16xbf16>, tensor<16x8xbf16>) outs(%{{.*}} : tensor<3x8xf32>)
// ALL: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<3x16xbf16>, tensor<16x8xbf16>) outs(%{{.*}} : tensor<3x8xbf16>)
func.func @others(%x: tensor<3x16xbf16>, %w: tensor<16x8xbf16> {pipeline.weight = "w"}, %data: tensor<16x8xbf16>, %bytes: tensor<4xi8>,
                  %init: tensor<3x8xf32>, %narrow: tensor<3x8xbf16>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xbf16>, tensor<4xi8>) {
  %a = linalg.matmul ins(%x, %w : tensor<3x16xbf16>, tensor<16x8xbf16>) outs(%init : tensor<3x8xf32>) -> tensor<3x8xf32>
  %b = linalg.matmul ins(%x, %data : tensor<3x16xbf16>, tensor<16x8xbf16>) outs(%init : tensor<3x8xf32>) -> tensor<3x8xf32>
  %c = linalg.matmul ins(%x, %w : tensor<3x16xbf16>, tensor<16x8xbf16>) outs(%narrow : tensor<3x8xbf16>) -> tensor<3x8xbf16>
  return %a, %b, %c, %bytes : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xbf16>, tensor<4xi8>
}
