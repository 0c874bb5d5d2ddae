// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" | FileCheck %s

// A weight of 3 taps that was filled up to 4, two for each phase: the second phase has one.

#data = affine_map<(block, phase, f, tap, c) -> (block + tap, c)>
#weight = affine_map<(block, phase, f, tap, c) -> (tap, phase, c, f)>
#result = affine_map<(block, phase, f, tap, c) -> (block, phase, f)>

// CHECK: #[[TAPS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> ((-d1 + 3) ceildiv 2)>
// CHECK-LABEL: func.func @taps
// CHECK: scf.for %[[PHASE:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: %[[COUNT:.*]] = affine.apply #[[TAPS]](%{{.*}}, %[[PHASE]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %{{.*}} = %[[ZERO]] to %[[COUNT]] step %[[ONE]] iter_args
func.func @taps(%x: memref<9x3xf32>, %w: memref<2x2x3x8xf32>, %y: memref<8x2x8xf32>) {
  linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<9x3xf32>, memref<2x2x3x8xf32>) outs(%y : memref<8x2x8xf32>) attrs = {pipeline.taps = array<i64: 0, 1, 3>} {
  ^bb0(%in: f32, %tap: f32, %out: f32):
    %product = arith.mulf %in, %tap : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: the weight has other dims than the attribute says.

#data = affine_map<(block, f, tap, c) -> (block + tap, c)>
#weight = affine_map<(block, f, tap, c) -> (tap, c, f)>
#result = affine_map<(block, f, tap, c) -> (block, f)>

// CHECK-LABEL: func.func @other_dims
// CHECK-NOT: ceildiv
// CHECK: return
func.func @other_dims(%x: memref<9x3xf32>, %w: memref<2x3x8xf32>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<9x3xf32>, memref<2x3x8xf32>) outs(%y : memref<8x8xf32>) attrs = {pipeline.taps = array<i64: 0, 3, 3>} {
  ^bb0(%in: f32, %tap: f32, %out: f32):
    %product = arith.mulf %in, %tap : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: phases are the rows of the tile, which have different numbers of taps.

#data = affine_map<(phase, f, tap, c) -> (tap, c)>
#weight = affine_map<(phase, f, tap, c) -> (tap, phase, c, f)>
#result = affine_map<(phase, f, tap, c) -> (phase, f)>

// CHECK-LABEL: func.func @rows
// CHECK-NOT: ceildiv
// CHECK: return
func.func @rows(%x: memref<2x3xf32>, %w: memref<2x2x3x8xf32>, %y: memref<2x8xf32>) {
  linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<2x3xf32>, memref<2x2x3x8xf32>) outs(%y : memref<2x8xf32>) attrs = {pipeline.taps = array<i64: 0, 1, 3>} {
  ^bb0(%in: f32, %tap: f32, %out: f32):
    %product = arith.mulf %in, %tap : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}
