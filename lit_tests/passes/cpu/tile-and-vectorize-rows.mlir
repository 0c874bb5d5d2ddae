// RUN: pipeline-opt %s --tile-and-vectorize="vector-bytes=64 registers=32" --remarks-filter=tile-and-vectorize --verify-diagnostics

// With 32 registers, few rows that come out even are one or two large tiles.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

func.func @even(%a: memref<28x64xf32>, %b: memref<64x32xf32>, %c: memref<28x32xf32>) {
  // expected-remark @below {{passed: tiles of 14 x 2 vectors of 16}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<28x64xf32>, memref<64x32xf32>) outs(%c : memref<28x32xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// Must not fire: rows that would leave a rest; many rows.

func.func @uneven(%a: memref<27x64xf32>, %b: memref<64x32xf32>, %c: memref<27x32xf32>, %d: memref<56x64xf32>, %e: memref<56x32xf32>) {
  // expected-remark @below {{passed: tiles of 9 x 2 vectors of 16}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<27x64xf32>, memref<64x32xf32>) outs(%c : memref<27x32xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  // expected-remark @below {{passed: tiles of 8 x 2 vectors of 16}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d, %b : memref<56x64xf32>, memref<64x32xf32>) outs(%e : memref<56x32xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}
