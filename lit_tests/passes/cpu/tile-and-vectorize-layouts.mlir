// RUN: pipeline-opt %s --tile-and-vectorize="vector-bytes=16 registers=16" | FileCheck %s
// RUN: pipeline-opt %s --tile-and-vectorize="vector-bytes=16 registers=16" --remarks-filter=tile-and-vectorize -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

// Weights in blocks of 8 channels: two vectors of a block for five rows.

// CHECK-LABEL: func.func @blocks
// CHECK: scf.for %[[C:.*]] = {{.*}} iter_args
// CHECK: vector.load %arg1[{{.*}}] : memref<2x3x8xf32>, vector<4xf32>
// CHECK-COUNT-10: math.fma
// CHECK-NOT: math.fma
// CHECK: return
// REMARK: tiles of 5 x 2 vectors of 4
func.func @blocks(%x: memref<5x3xf32>, %w: memref<2x3x8xf32>, %y: memref<5x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1 floordiv 8, d2, d1 mod 8)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<5x3xf32>, memref<2x3x8xf32>) outs(%y : memref<5x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}

// Must not fire: a vector of 4 would reach into the next block of 6.

// CHECK-LABEL: func.func @odd_blocks
// CHECK-NOT: vector.load
// CHECK: linalg.generic
// REMARK: missed: no parallel loop runs along the innermost dimension of the output
func.func @odd_blocks(%x: memref<5x3xf32>, %w: memref<2x3x6xf32>, %y: memref<5x12xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1 floordiv 6, d2, d1 mod 6)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<5x3xf32>, memref<2x3x6xf32>) outs(%y : memref<5x12xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.subf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}

// A transpose: squares of four vectors, transposed by eight shuffles; the same for what is left of the rows.

// CHECK-LABEL: func.func @transpose
// CHECK-COUNT-4: vector.load %arg0
// CHECK-COUNT-8: vector.shuffle
// CHECK-COUNT-4: vector.store {{.*}}, %arg1
// CHECK-COUNT-4: vector.maskedload %arg0
// CHECK-COUNT-8: vector.shuffle
// CHECK: vector.store {{.*}}, %arg1
// CHECK-NOT: vector.store
// CHECK: return
// REMARK: tiles of 4 x 1 vectors of 4
func.func @transpose(%x: memref<8x5xf32>, %y: memref<5x8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x5xf32>) outs(%y : memref<5x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// A bf16 is moved as its bits.

// CHECK-LABEL: func.func @transpose_bf16
// CHECK-COUNT-24: vector.shuffle {{.*}} vector<8xi16>
// CHECK: return
// REMARK: tiles of 8 x 1 vectors of 8
func.func @transpose_bf16(%x: memref<8x16xbf16>, %y: memref<16x8xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x16xbf16>) outs(%y : memref<16x8xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  }
  return
}

// A mask would have to store what is rounded to bf16: what is left of a line is done one by one.

// CHECK-LABEL: func.func @transpose_to_bf16
// CHECK-NOT: vector.maskedstore
// CHECK: vector.shuffle {{.*}} vector<4xf32>
// CHECK-NOT: vector.maskedstore
// CHECK: vector.load %arg0[%{{.*}}, %{{.*}}] : memref<5x16xf32>, vector<1xf32>
// CHECK-NOT: vector.maskedstore
// CHECK: return
// REMARK: tiles of 4 x 1 vectors of 4
func.func @transpose_to_bf16(%x: memref<5x16xf32>, %y: memref<16x5xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<5x16xf32>) outs(%y : memref<16x5xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %r = arith.truncf %in : f32 to bf16
    linalg.yield %r : bf16
  }
  return
}

// Must not fire: all of a line would be left.

// CHECK-LABEL: func.func @transpose_of_short_lines_to_bf16
// CHECK-NOT: vector.shuffle
// CHECK: return
func.func @transpose_of_short_lines_to_bf16(%x: memref<3x18xf32>, %y: memref<18x3xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<3x18xf32>) outs(%y : memref<18x3xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %r = arith.truncf %in : f32 to bf16
    linalg.yield %r : bf16
  }
  return
}

// An epilogue that stores along the rows of the tile: its vectors are transposed, and what lies between is not stored.

// CHECK-LABEL: func.func @crossing_epilogue
// CHECK-NOT: vector.store
// CHECK-COUNT-8: vector.shuffle
// CHECK-COUNT-4: vector.maskedstore %arg2
// CHECK: return
// REMARK: tiles of 3 x 1 vectors of 4 with 1 epilogues
func.func @crossing_epilogue(%x: memref<3x5xf32>, %w: memref<5x4xf32>, %y: memref<4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %between = memref.alloc() : memref<3x4xf32>
  linalg.fill ins(%zero : f32) outs(%between : memref<3x4xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<3x5xf32>, memref<5x4xf32>) outs(%between : memref<3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], iterator_types = ["parallel", "parallel"]} ins(%between : memref<3x4xf32>) outs(%y : memref<4x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// What is rounded to bf16 is stored without a mask: as vectors of so many elements as the tile has rows.

// CHECK-LABEL: func.func @crossing_epilogue_to_bf16
// CHECK-NOT: vector.maskedstore
// CHECK-COUNT-4: vector.store {{.*}} : memref<4x3xi16>, vector<3xi16>
// CHECK: return
// REMARK: tiles of 3 x 1 vectors of 4 with 1 epilogues
func.func @crossing_epilogue_to_bf16(%x: memref<3x5xf32>, %w: memref<5x4xf32>, %y: memref<4x3xbf16>) {
  %zero = arith.constant 0.0 : f32
  %between = memref.alloc() : memref<3x4xf32>
  linalg.fill ins(%zero : f32) outs(%between : memref<3x4xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<3x5xf32>, memref<5x4xf32>) outs(%between : memref<3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], iterator_types = ["parallel", "parallel"]} ins(%between : memref<3x4xf32>) outs(%y : memref<4x3xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %r = arith.truncf %in : f32 to bf16
    linalg.yield %r : bf16
  }
  return
}

// Must not fire: the vectors of the tile are not whole, and what lies across it cannot be masked.

// CHECK-LABEL: func.func @crossing_epilogue_of_a_rest
// CHECK: memref.alloc
// CHECK: linalg.generic
// CHECK: return
// REMARK: tiles of 3 x 2 vectors of 4 [tile
func.func @crossing_epilogue_of_a_rest(%x: memref<3x5xf32>, %w: memref<5x7xf32>, %y: memref<7x3xbf16>) {
  %zero = arith.constant 0.0 : f32
  %between = memref.alloc() : memref<3x7xf32>
  linalg.fill ins(%zero : f32) outs(%between : memref<3x7xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<3x5xf32>, memref<5x7xf32>) outs(%between : memref<3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], iterator_types = ["parallel", "parallel"]} ins(%between : memref<3x7xf32>) outs(%y : memref<7x3xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %r = arith.truncf %in : f32 to bf16
    linalg.yield %r : bf16
  }
  return
}

// Winograd's algorithm: 16 vectors of data are transformed, a product for each of 16 points, 16 vectors back to 4 results.

#data = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
#weight = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 8, d4, d5, d6, d3 mod 8)>
#points = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 8, 0, d6, d3 mod 8)>
#result = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func.func @winograd
// CHECK: %[[V:.*]] = memref.alloc() {{.*}} : memref<16x4x4xf32>
// CHECK-COUNT-16: vector.load %arg0[{{.*}}] : memref<1x6x6x4xf32>, vector<4xf32>
// CHECK-COUNT-16: vector.store {{.*}}, %[[V]]
// CHECK: %[[M:.*]] = memref.alloc() {{.*}} : memref<16x4x8xf32>
// CHECK: scf.for
// CHECK: vector.load %arg2[{{.*}}] : memref<1x16x4x8xf32>
// CHECK-COUNT-8: math.fma
// CHECK-COUNT-8: vector.store {{.*}}, %[[M]]
// CHECK-COUNT-16: vector.load %[[M]]
// CHECK-COUNT-4: vector.store {{.*}}, %arg3
// CHECK: memref.dealloc %[[M]]
// CHECK: memref.dealloc %[[V]]
// CHECK-NOT: linalg
// CHECK: return
// REMARK: Winograd's algorithm, 2 x 2 results a tile
func.func @winograd(%x: memref<1x6x6x4xf32>, %w: memref<1x3x3x4x8xf32>, %u: memref<1x16x4x8xf32>, %y: memref<1x4x4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x4x4x8xf32>)
  linalg.generic {indexing_maps = [#data, #weight, #points, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w, %u : memref<1x6x6x4xf32>, memref<1x3x3x4x8xf32>, memref<1x16x4x8xf32>) outs(%y : memref<1x4x4x8xf32>) attrs = {pipeline.winograd = 2 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}

// Must not fire: 3 channels of data fill no vector. The op says what it computes, and that is done.

// CHECK-LABEL: func.func @winograd_of_odd_channels
// CHECK-NOT: memref.alloc
// CHECK: math.fma
// CHECK: return
// REMARK: missed: not by Winograd's algorithm: its channels do not fill whole vectors
func.func @winograd_of_odd_channels(%x: memref<1x6x6x3xf32>, %w: memref<1x3x3x3x8xf32>, %u: memref<1x16x3x8xf32>, %y: memref<1x4x4x8xf32>) {
  linalg.generic {indexing_maps = [#data, #weight, #points, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w, %u : memref<1x6x6x3xf32>, memref<1x3x3x3x8xf32>, memref<1x16x3x8xf32>) outs(%y : memref<1x4x4x8xf32>) attrs = {pipeline.winograd = 2 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
