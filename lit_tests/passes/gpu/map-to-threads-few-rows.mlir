// RUN: pipeline-opt %s --split-input-file --map-to-threads="access-bytes=16" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --map-to-threads --canonicalize --cse | FileCheck %s --check-prefix=NARROW

// A thread has 8 columns of both rows, which are 16 bytes of a line of the matrix; 2 threads side by side fill a sector,
// the other 128 pairs share the sum. Partial sums go to neighbours by shuffles, then through shared memory, one a warp.

// CHECK-LABEL: func.func private @decode
// CHECK-SAME: pipeline.block = 256 : i64, {{.*}}pipeline.items = 256 : i64, pipeline.threads = 1536 : i64
// CHECK: scf.for
// CHECK: vector.load %{{.*}} {alignment = 16 : i64} : memref<512x96xbf16>, vector<8xbf16>
// CHECK: gpu.shuffle xor
// CHECK: memref.store %{{.*}} : memref<8x2x16xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK: memref.store %{{.*}}, %arg0
// CHECK-NOT: linalg
// NARROW-LABEL: func.func private @decode
// NARROW-NOT: gpu.barrier
func.func private @decode(%c: memref<2x96xf32>, %a: memref<2x512xbf16>, %b: memref<512x96xbf16>)
    attributes {pipeline.dispatch = "decode"} {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x512xbf16>, memref<512x96xbf16>) outs(%c : memref<2x96xf32>) {
  ^bb0(%x: bf16, %y: bf16, %z: f32):
    %f = arith.extf %x : bf16 to f32
    %g = arith.extf %y : bf16 to f32
    %p = arith.mulf %f, %g : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Must not fire: the sum along lines of the matrix, as where it is read transposed.

// NARROW-LABEL: func.func private @along_lines
// CHECK-LABEL: func.func private @along_lines
// CHECK-NOT: vector.load
func.func private @along_lines(%c: memref<2x96xf32>, %a: memref<2x512xf32>, %b: memref<96x512xf32>)
    attributes {pipeline.dispatch = "along_lines"} {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x512xf32>, memref<96x512xf32>) outs(%c : memref<2x96xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}
