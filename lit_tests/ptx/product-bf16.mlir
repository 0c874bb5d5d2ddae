// RUN: pipeline-compile %s --target=cuda:sm_80 --emit=ptx -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: FileCheck %s --input-file=%t.ptx --check-prefix=NONE

// On tensor cores: three steps of the sum are on their way to shared memory, 16 bytes at a time, while one is multiplied;
// bias and activation run on the registers that the result is in.

// CHECK: .visible .entry
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.commit_group
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.commit_group
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.commit_group
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: cp.async.wait_group 2;
// CHECK: bar.sync
// CHECK: cp.async.cg.shared.global
// CHECK: st.global
// CHECK-NOT: .entry
// Nothing is left to be linked, and no thread has memory of its own.

// NONE: .target {{.*}}
// NONE-NOT: {{\.local|\.extern|\bcall\b}}

#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<256x1024xbf16>, %arg1: tensor<1024x256xbf16>, %arg2: tensor<256xbf16>) -> tensor<256x256xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : bf16
    %0 = tensor.empty() : tensor<256x256xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<256x256xf32>) -> tensor<256x256xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<256x1024xbf16>, tensor<1024x256xbf16>) outs(%1 : tensor<256x256xf32>) -> tensor<256x256xf32>
    %3 = tensor.empty() : tensor<256x256xbf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<256x256xf32>) outs(%3 : tensor<256x256xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %7 = arith.truncf %in : f32 to bf16
      linalg.yield %7 : bf16
    } -> tensor<256x256xbf16>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%4, %arg2 : tensor<256x256xbf16>, tensor<256xbf16>) outs(%3 : tensor<256x256xbf16>) {
    ^bb0(%in: bf16, %in_1: bf16, %out: bf16):
      %7 = arith.addf %in, %in_1 : bf16
      linalg.yield %7 : bf16
    } -> tensor<256x256xbf16>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<256x256xbf16>) outs(%3 : tensor<256x256xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %7 = arith.cmpf ugt, %in, %cst_0 : bf16
      %8 = arith.select %7, %in, %cst_0 : bf16
      linalg.yield %8 : bf16
    } -> tensor<256x256xbf16>
    return %6 : tensor<256x256xbf16>
  }
}
