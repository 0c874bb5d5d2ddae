// RUN: pipeline-opt %s --split-input-file --map-to-threads="access-bytes=16" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --map-to-threads --canonicalize --cse | FileCheck %s --check-prefix=WORDS

// A block brings a square of the operand to shared memory as it lies there, and reads it across. Rows of a tile are one
// element longer, so that a column lies in different banks; narrow elements have a longer side.

// CHECK-LABEL: func.func private @transpose
// CHECK-SAME: pipeline.block = 256 : i64, {{.*}}pipeline.items = 256 : i64, pipeline.threads = 512 : i64
// CHECK: %[[TILE:.*]] = memref.alloc() {alignment = 16 : i64} : memref<32x33xf32, #gpu.address_space<workgroup>>
// CHECK: memref.load %arg0
// CHECK: memref.store %{{.*}}, %[[TILE]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[TILE]]
// CHECK: memref.store %{{.*}}, %arg1
// CHECK-NOT: linalg
func.func private @transpose(%x: memref<64x32xf32>, %y: memref<32x64xf32>) attributes {pipeline.dispatch = "transpose"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x32xf32>) outs(%y : memref<32x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %in : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// CHECK-LABEL: func.func private @narrow
// CHECK: memref<64x65xi8, #gpu.address_space<workgroup>>
// WORDS-LABEL: func.func private @narrow
// WORDS: memref<32x33xi8, #gpu.address_space<workgroup>>
func.func private @narrow(%x: memref<64x64xi8>, %y: memref<64x64xi8>) attributes {pipeline.dispatch = "narrow"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x64xi8>) outs(%y : memref<64x64xi8>) {
  ^bb0(%in: i8, %out: i8):
    linalg.yield %in : i8
  }
  return
}

// -----

// Must not fire: a side too short to fill half of a tile; neighbours that stay neighbours.

// CHECK-LABEL: func.func private @short
// CHECK-NOT: gpu.barrier
func.func private @short(%x: memref<64x8xf32>, %y: memref<8x64xf32>) attributes {pipeline.dispatch = "short"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x8xf32>) outs(%y : memref<8x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// CHECK-LABEL: func.func private @outer
// CHECK-NOT: gpu.barrier
func.func private @outer(%x: memref<20x30x32xf32>, %y: memref<30x20x32xf32>) attributes {pipeline.dispatch = "outer"} {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, i, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<20x30x32xf32>) outs(%y : memref<30x20x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
