// RUN: pipeline-compile %s --target=cuda:sm_90 --emit=ptx -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: FileCheck %s --input-file=%t.ptx --check-prefix=NONE

// A convolution is a product on tensor cores, too.

// CHECK: .visible .entry {{.*}}conv
// CHECK: ldmatrix.sync.aligned.m8n8.x4
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK: st.global
// Nothing is left to be linked, and no thread has memory of its own.

// NONE: .target {{.*}}
// NONE-NOT: {{\.local|\.extern|\bcall\b}}

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @main(%arg0: tensor<2x16x16x16xf16>, %arg1: tensor<64x16x3x3xf16>) -> tensor<2x64x16x16xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %cst_0 = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index):
      tensor.yield %cst : f16
    } : tensor<2x16x16x16xf16> to tensor<2x16x18x18xf16>
    %0 = tensor.empty() : tensor<2x64x16x16xf32>
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<2x64x16x16xf32>) -> tensor<2x64x16x16xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<2x16x18x18xf16>, tensor<64x16x3x3xf16>) outs(%1 : tensor<2x64x16x16xf32>) -> tensor<2x64x16x16xf32>
    %3 = tensor.empty() : tensor<2x64x16x16xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x64x16x16xf32>) outs(%3 : tensor<2x64x16x16xf16>) {
    ^bb0(%in: f32, %out: f16):
      %6 = arith.truncf %in : f32 to f16
      linalg.yield %6 : f16
    } -> tensor<2x64x16x16xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<2x64x16x16xf16>) outs(%3 : tensor<2x64x16x16xf16>) {
    ^bb0(%in: f16, %out: f16):
      %6 = arith.cmpf ugt, %in, %cst : f16
      %7 = arith.select %6, %in, %cst : f16
      linalg.yield %7 : f16
    } -> tensor<2x64x16x16xf16>
    return %5 : tensor<2x64x16x16xf16>
  }
}
