// RUN: pipeline-opt %s --split-input-file --mark-library-gemm=all --outline-dispatches | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --mark-library-gemm --outline-dispatches | FileCheck %s --check-prefix=PAYS
// RUN: pipeline-opt %s --split-input-file --mark-library-gemm="all tf32" | FileCheck %s --check-prefix=TF32

// A library computes the product alone, and rounds its result; what else is behind it is a launch of its own.

// CHECK: func.func private @[[SUM:.*]](%{{.*}}) attributes {pipeline.dispatch = "f"}
// CHECK: arith.addf
// CHECK: func.func private @[[PRODUCT:.*]](%{{.*}}) attributes {pipeline.dispatch = "f", pipeline.gemm = "f32"}
// CHECK: arith.truncf
// CHECK-NOT: linalg.generic
// CHECK: return
// CHECK-LABEL: func.func @f
// CHECK: call @[[PRODUCT]]
// CHECK: call @[[SUM]]

// So small a product with a launch behind it saves nothing.

// PAYS-NOT: pipeline.gemm
// PAYS-LABEL: func.func @f
// TF32: pipeline.gemm = "f32"
func.func @f(%a: memref<64x32xbf16>, %b: memref<32x64xbf16>, %c: memref<64x64xbf16>, %d: memref<64x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<64x64xf32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%t : memref<64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<64x32xbf16>, memref<32x64xbf16>) outs(%t : memref<64x64xf32>) {
  ^bb0(%x: bf16, %y: bf16, %out: f32):
    %u = arith.extf %x : bf16 to f32
    %v = arith.extf %y : bf16 to f32
    %p = arith.mulf %u, %v : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%t : memref<64x64xf32>) outs(%c : memref<64x64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %s = arith.truncf %in : f32 to bf16
    linalg.yield %s : bf16
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%c : memref<64x64xbf16>) outs(%d : memref<64x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %s = arith.addf %in, %in : bf16
    linalg.yield %s : bf16
  }
  return
}

// -----

// In float32, with 10 bits of mantissa where that was asked for.

// CHECK: pipeline.gemm = "f32"
// PAYS: pipeline.gemm = "f32"
// TF32: pipeline.gemm = "tf32"
func.func @g(%a: memref<64x32xf32>, %b: memref<32x64xf32>, %c: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<64x32xf32>, memref<32x64xf32>) outs(%c : memref<64x64xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Must not fire: the sum starts from what is in memory; the op is no product.

// CHECK-LABEL: func.func @h
// CHECK-NOT: pipeline.gemm
// PAYS-LABEL: func.func @h
// PAYS-NOT: pipeline.gemm
func.func @h(%a: memref<64x32xf32>, %b: memref<32x64xf32>, %c: memref<64x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<64x32xf32>, memref<32x64xf32>) outs(%c : memref<64x64xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Must not fire: rows are not equally far apart (a convolution), and neither rows nor columns lie side by side.

// CHECK-LABEL: func.func @i
// CHECK-NOT: pipeline.gemm
func.func @i(%x: memref<2x16x9x9xf32>, %w: memref<32x16x1x1xf32>, %y: memref<2x32x9x9xf32>,
             %a: memref<64x32x2xf32>, %b: memref<32x64xf32>, %c: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(n, f, h, w) -> ()>, affine_map<(n, f, h, w) -> (n, f, h, w)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f32) outs(%y : memref<2x32x9x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(n, f, h, w, c, p, q) -> (n, c, h + p, w + q)>,
                                   affine_map<(n, f, h, w, c, p, q) -> (f, c, p, q)>,
                                   affine_map<(n, f, h, w, c, p, q) -> (n, f, h, w)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<2x16x9x9xf32>, memref<32x16x1x1xf32>) outs(%y : memref<2x32x9x9xf32>) {
  ^bb0(%in: f32, %weight: f32, %out: f32):
    %p = arith.mulf %in, %weight : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k, 0)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<64x32x2xf32>, memref<32x64xf32>) outs(%c : memref<64x64xf32>) {
  ^bb0(%u: f32, %v: f32, %out: f32):
    %p = arith.mulf %u, %v : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
