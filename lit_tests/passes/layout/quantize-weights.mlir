// RUN: pipeline-opt %s --split-input-file --quantize-weights="least-bytes=64" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --quantize-weights="least-bytes=64" --remarks-filter=quantize-weights --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --quantize-weights="least-bytes=64 group=8" --canonicalize --cse | FileCheck %s --check-prefix=GROUP
// RUN: pipeline-opt %s --split-input-file --quantize-weights="least-bytes=64 bits=4" --canonicalize --cse | FileCheck %s --check-prefix=FOUR
// RUN: pipeline-opt %s --split-input-file --quantize-weights="least-bytes=64 data=true" --canonicalize --cse | FileCheck %s --check-prefix=DATA
// RUN: pipeline-opt %s --split-input-file --quantize-weights="least-bytes=64 data=true bits=4 group=8" --canonicalize --cse | FileCheck %s --check-prefix=BOTH
// RUN: pipeline-opt %s --split-input-file --quantize-weights="least-bytes=64 zero-points=true bits=4" --canonicalize --cse | FileCheck %s --check-prefix=ZERO
// RUN: pipeline-opt %s --split-input-file --quantize-weights="least-bytes=64 keep={v?,w}" | FileCheck %s --check-prefix=KEEP
// RUN: pipeline-opt %s --split-input-file --quantize-weights="least-bytes=64 keep={v,ww}" --canonicalize --cse | FileCheck %s

// One scale for each column: its largest weight becomes 127.

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[X:.*]]: tensor<3x16xf32>, %[[W:.*]]: tensor<16x4xf32>
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[W]] : tensor<16x4xf32>)
// CHECK: math.absf
// CHECK: arith.maximumf
// CHECK: %[[SCALE:.*]] = linalg.generic {{.*}} ins(%[[MAX]] : tensor<4xf32>)
// CHECK: arith.divf %{{.*}}, %cst{{.*}} : f32
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[SCALE]] : tensor<16x4xf32>, tensor<4xf32>) outs(%{{.*}} : tensor<16x4xi8>)
// CHECK: math.roundeven
// CHECK: arith.fptosi
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[Q]], %[[SCALE]] : tensor<3x16xf32>, tensor<16x4xi8>, tensor<4xf32>)
// CHECK: arith.sitofp
// CHECK-NOT: linalg.matmul
// FOUR-LABEL: func.func @product
// FOUR-DAG: %[[LEAST:.*]] = arith.constant -8.000000e+00 : f32
// FOUR-DAG: %[[MOST:.*]] = arith.constant 7.000000e+00 : f32
// FOUR: arith.truncf %{{.*}} : f32 to bf16
// FOUR: arith.maximumf %{{.*}}, %[[LEAST]]
// FOUR: arith.minimumf %{{.*}}, %[[MOST]]
// FOUR: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<3x16xf32>, tensor<16x4xi8>, tensor<4xbf16>)
// GROUP-LABEL: func.func @product
// GROUP: iterator_types = ["parallel", "reduction", "parallel"]
// GROUP: ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<3x2x8xf32>, tensor<2x8x4xi8>, tensor<2x4xf32>)

// Data has a scale for each row; both factors are dequantized in front of the product.

// KEEP-LABEL: func.func @product
// KEEP-NOT: i8
// KEEP: linalg.matmul
// DATA-LABEL: func.func @product
// DATA-SAME: (%[[X:.*]]: tensor<3x16xf32>, %[[W:.*]]: tensor<16x4xf32>
// DATA: %[[BYTES:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<16x4xi8>)
// DATA: %[[LARGEST:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[X]] : tensor<3x16xf32>)
// DATA: %[[SCALE:.*]] = linalg.generic {{.*}} ins(%[[LARGEST]] : tensor<3xf32>)
// DATA: %[[STEPS:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[SCALE]] : tensor<3x16xf32>, tensor<3xf32>) outs(%{{.*}} : tensor<3x16xi8>)
// DATA: math.roundeven
// DATA: arith.maxnumf
// DATA: arith.minnumf
// DATA: arith.fptosi
// DATA: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[STEPS]], %[[SCALE]] : tensor<3x16xi8>, tensor<3xf32>) outs(%{{.*}} : tensor<3x16xf32>)
// DATA: %[[WEIGHT:.*]] = linalg.generic {{.*}} ins(%[[BYTES]], %{{.*}} : tensor<16x4xi8>, tensor<4xf32>) outs(%{{.*}} : tensor<16x4xf32>)
// DATA: linalg.generic {{.*}} ins(%[[ROUNDED]], %[[WEIGHT]] : tensor<3x16xf32>, tensor<16x4xf32>)
// BOTH: #[[EIGHTS:.*]] = affine_map<(d0, d1) -> (d0 floordiv 8, d1)>
// BOTH-LABEL: func.func @product
// BOTH: %[[WEIGHT:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[EIGHTS]], #{{.*}}]{{.*}} ins(%{{.*}}, %{{.*}} : tensor<16x4xi8>, tensor<2x4xbf16>) outs(%{{.*}} : tensor<16x4xf32>)
// BOTH: linalg.generic {{.*}} ins(%{{.*}}, %[[WEIGHT]] : tensor<3x16xf32>, tensor<16x4xf32>)

// Steps from the smallest to the largest weight of a column.

// ZERO-LABEL: func.func @product
// ZERO-SAME: (%[[X:.*]]: tensor<3x16xf32>, %[[W:.*]]: tensor<16x4xf32>
// ZERO: %[[LEAST:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[W]] : tensor<16x4xf32>)
// ZERO: arith.minimumf
// ZERO: %[[MOST:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[W]] : tensor<16x4xf32>)
// ZERO: arith.maximumf
// ZERO: %[[SCALE:.*]] = linalg.generic {{.*}} ins(%[[LEAST]], %[[MOST]] : tensor<4xf32>, tensor<4xf32>) outs(%{{.*}} : tensor<4xbf16>)
// ZERO: %[[POINT:.*]] = linalg.generic {{.*}} ins(%[[LEAST]], %[[SCALE]] : tensor<4xf32>, tensor<4xbf16>) outs(%{{.*}} : tensor<4xi8>)
// ZERO: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[SCALE]], %[[POINT]] : tensor<16x4xf32>, tensor<4xbf16>, tensor<4xi8>) outs(%{{.*}} : tensor<16x4xi8>)
// ZERO: linalg.generic {{.*}} ins(%[[X]], %[[Q]], %[[SCALE]], %[[POINT]] : tensor<3x16xf32>, tensor<16x4xi8>, tensor<4xbf16>, tensor<4xi8>)
// ZERO: arith.subf
// ZERO: arith.mulf
func.func @product(%x: tensor<3x16xf32>, %w: tensor<16x4xf32> {pipeline.weight = "w"}, %init: tensor<3x4xf32>) -> tensor<3x4xf32> {
  // expected-remark @below {{passed: reads its weight as bytes, all of a column with one scale}}
  %r = linalg.matmul ins(%x, %w : tensor<3x16xf32>, tensor<16x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// Must not: a product of data; a small weight; a product in f64.

// CHECK-LABEL: func.func @data
// CHECK: linalg.matmul
// DATA-LABEL: func.func @data
// DATA-NOT: i8
// DATA: linalg.matmul
func.func @data(%x: tensor<3x16xf32>, %w: tensor<16x4xf32>, %init: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = linalg.matmul ins(%x, %w : tensor<3x16xf32>, tensor<16x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// CHECK-LABEL: func.func @small
// CHECK: linalg.matmul
func.func @small(%x: tensor<3x4xf32>, %w: tensor<4x2xf32> {pipeline.weight = "w"}, %init: tensor<3x2xf32>) -> tensor<3x2xf32> {
  // expected-remark @below {{missed: its weight is not quantized: it has 32 bytes, fewer than 64}}
  %r = linalg.matmul ins(%x, %w : tensor<3x4xf32>, tensor<4x2xf32>) outs(%init : tensor<3x2xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// -----

// CHECK-LABEL: func.func @double
// CHECK: linalg.matmul
func.func @double(%x: tensor<3x16xf64>, %w: tensor<16x4xf64> {pipeline.weight = "w"}, %init: tensor<3x4xf64>) -> tensor<3x4xf64> {
  // expected-remark @below {{missed: its weight is not quantized: it is in f64}}
  %r = linalg.matmul ins(%x, %w : tensor<3x16xf64>, tensor<16x4xf64>) outs(%init : tensor<3x4xf64>) -> tensor<3x4xf64>
  return %r : tensor<3x4xf64>
}

// -----

// Must not: convolutions, whose weights stay, and say so; data that is convolved with data has no weight.

// CHECK-LABEL: func.func @convolutions
// CHECK-NOT: i8
// CHECK: linalg.conv_1d_ncw_fcw
// CHECK: linalg.conv_1d_ncw_fcw
func.func @convolutions(%x: tensor<1x4x9xf32>, %w: tensor<8x4x3xf32> {pipeline.weight = "w"}, %v: tensor<8x4x3xf32>,
                        %init: tensor<1x8x7xf32>) -> (tensor<1x8x7xf32>, tensor<1x8x7xf32>) {
  // expected-remark @below {{missed: its weight stays as it is: it is multiplied in no product of two matrices}}
  %r = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<1x4x9xf32>, tensor<8x4x3xf32>) outs(%init : tensor<1x8x7xf32>) -> tensor<1x8x7xf32>
  %s = linalg.conv_1d_ncw_fcw ins(%x, %v : tensor<1x4x9xf32>, tensor<8x4x3xf32>) outs(%init : tensor<1x8x7xf32>) -> tensor<1x8x7xf32>
  return %r, %s : tensor<1x8x7xf32>, tensor<1x8x7xf32>
}

// -----

// A weight of which a loop takes one part at a time: all of it is rounded in front of the loop, with the columns
// innermost, and what was transposed in each round no longer is. Its data stays in f32.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#r = affine_map<(m, n, k) -> (m, n)>
#t = affine_map<(d0, d1) -> (d1, d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @experts
// CHECK-SAME: (%[[X:.*]]: tensor<?x16xf32>, %[[W:.*]]: tensor<6x4x16xf32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[W]] : tensor<6x4x16xf32>) outs(%{{.*}} : tensor<6x16x4xf32>)
// CHECK: %[[SCALES:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<6x4xf32>)
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<6x16x4xi8>)
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK-DAG: %[[PART:.*]] = tensor.extract_slice %[[Q]][%[[I]], 0, 0] [1, 16, 4] [1, 1, 1] : tensor<6x16x4xi8> to tensor<16x4xi8>
// CHECK-DAG: %[[SCALE:.*]] = tensor.extract_slice %{{.*}}[%[[I]], 0] [1, 4] [1, 1] : tensor<6x4xf32> to tensor<4xf32>
// CHECK-NOT: transpose
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[PART]], %[[SCALE]] : tensor<?x16xf32>, tensor<16x4xi8>, tensor<4xf32>)
// DATA-LABEL: func.func @experts
// DATA: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x16xf32>, tensor<16x4xi8>, tensor<4xf32>)
// GROUP-LABEL: func.func @experts
// GROUP: %[[GROUPS:.*]] = tensor.extract_slice %{{.*}}[%{{.*}}, 0, 0, 0] [1, 2, 8, 4] [1, 1, 1, 1] : tensor<6x2x8x4xi8> to tensor<2x8x4xi8>
// GROUP: linalg.generic {{.*}} ins(%{{.*}}, %[[GROUPS]], %{{.*}} : tensor<?x2x8xf32>, tensor<2x8x4xi8>, tensor<2x4xf32>)
// KEEP-LABEL: func.func @experts
// KEEP-NOT: i8
func.func @experts(%x: tensor<?x16xf32>, %w: tensor<6x4x16xf32> {pipeline.weight = "w"}, %init: tensor<?x4xf32>, %from: index, %to: index) -> tensor<?x4xf32> {
  %one = arith.constant 1 : index
  %r = scf.for %i = %from to %to step %one iter_args(%old = %init) -> (tensor<?x4xf32>) {
    %part = tensor.extract_slice %w[%i, 0, 0] [1, 4, 16] [1, 1, 1] : tensor<6x4x16xf32> to tensor<4x16xf32>
    %e = tensor.empty() : tensor<16x4xf32>
    %t = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
        ins(%part : tensor<4x16xf32>) outs(%e : tensor<16x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<16x4xf32>
    // expected-remark @below {{passed: reads its weight as bytes, all of a column with one scale}}
    %p = linalg.generic {indexing_maps = [#x, #w, #r], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %t : tensor<?x16xf32>, tensor<16x4xf32>) outs(%old : tensor<?x4xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<?x4xf32>
    scf.yield %p : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// -----

// Must not: two places of a weight, which is read as a window of it.

// CHECK-LABEL: func.func @window
// CHECK-NOT: i8
func.func @window(%x: tensor<3x16xf32>, %w: tensor<64x4xf32> {pipeline.weight = "w"}, %init: tensor<3x4xf32>, %at: index) -> tensor<3x4xf32> {
  %part = tensor.extract_slice %w[%at, 0] [16, 4] [1, 1] : tensor<64x4xf32> to tensor<16x4xf32>
  %r = linalg.matmul ins(%x, %part : tensor<3x16xf32>, tensor<16x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
