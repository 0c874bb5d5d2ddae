// RUN: pipeline-opt %s --split-input-file --map-to-threads | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --map-to-threads=tensor-cores | FileCheck %s --check-prefix=CORES
// RUN: pipeline-opt %s --split-input-file --map-to-threads="tensor-cores warpgroup-mma" | FileCheck %s --check-prefix=GROUPS
// RUN: pipeline-opt %s --split-input-file --map-to-threads="access-bytes=16" | FileCheck %s --check-prefix=WIDE

// What is behind a reduction runs on the register: the buffer between them goes.

// CHECK-LABEL: func.func private @norm
// CHECK-NOT: memref.alloc
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: %[[ROOT:.*]] = math.rsqrt %[[SUM]]
// CHECK: memref.store %[[ROOT]]
// CHECK-NOT: memref.store
func.func private @norm(%x: memref<4x8xf32>, %y: memref<4xf32>) attributes {pipeline.dispatch = "norm"} {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4xf32>
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%zero : f32) outs(%t : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]} ins(%x : memref<4x8xf32>) outs(%t : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%t : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = math.rsqrt %in : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// A block for each iteration of tile-groups-to-blocks' loops. Elements that each thread reads as it wrote them are in registers.

// CHECK-LABEL: func.func private @rows
// CHECK-SAME: pipeline.block = 32 : i64, {{.*}}pipeline.items = 1 : i64, pipeline.threads = 4 : i64
// CHECK: gpu.block_id x
// CHECK: %[[IN:.*]] = memref.load
// CHECK: %[[EXP:.*]] = math.exp %[[IN]]
// CHECK-NOT: memref.store
// CHECK: arith.addf %[[EXP]]
// CHECK: %[[OUT:.*]] = arith.divf %[[EXP]]
// CHECK: memref.store %[[OUT]]
// CHECK-NOT: scf.for
func.func private @rows(%x: memref<4x32xf32>) attributes {pipeline.dispatch = "rows"} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.alloc() : memref<32xf32>
  %n = memref.alloc() : memref<f32>
  scf.for %i = %c0 to %c4 step %c1 {
    %row = memref.subview %x[%i, 0] [1, 32] [1, 1] : memref<4x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%row : memref<32xf32, strided<[1], offset: ?>>) outs(%t : memref<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %s = math.exp %in : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
        ins(%zero : f32) outs(%n : memref<f32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
        ins(%t : memref<32xf32>) outs(%n : memref<f32>) {
    ^bb0(%in: f32, %out: f32):
      %s = arith.addf %in, %out : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%t, %n : memref<32xf32>, memref<f32>) outs(%row : memref<32xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %sum: f32, %out: f32):
      %s = arith.divf %in, %sum : f32
      linalg.yield %s : f32
    }
  } {pipeline.parallel = "tiles"}
  return
}

// -----

// Elements that another thread needs are in memory that the block shares, behind a barrier.

// CHECK-LABEL: func.func private @reverse
// CHECK: %[[SHARED:.*]] = memref.alloc() : memref<32xf32, #gpu.address_space<workgroup>>
// CHECK: math.exp
// CHECK: memref.store %{{.*}}, %[[SHARED]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[SHARED]]
// CHECK: memref.store
func.func private @reverse(%x: memref<4x32xf32>) attributes {pipeline.dispatch = "reverse"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %t = memref.alloc() : memref<32xf32>
    %row = memref.subview %x[%i, 0] [1, 32] [1, 1] : memref<4x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%row : memref<32xf32, strided<[1], offset: ?>>) outs(%t : memref<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %s = math.exp %in : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (-i + 31)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%t, %t : memref<32xf32>, memref<32xf32>) outs(%row : memref<32xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %other: f32, %out: f32):
      %s = arith.subf %in, %other : f32
      linalg.yield %s : f32
    }
  } {pipeline.parallel = "tiles"}
  return
}

// -----

// Products of 16-bit floats: copies to shared memory while tensor cores multiply. Without the option, and for floats of
// 32 bits, threads do.

// CORES-LABEL: func.func private @product
// CORES: nvgpu.device_async_copy
// CORES: scf.for
// CORES: nvgpu.device_async_wait
// CORES: gpu.barrier
// CORES: nvgpu.ldmatrix
// CORES: nvgpu.mma.sync
// CORES-NOT: wgmma
// CHECK-LABEL: func.func private @product
// CHECK-NOT: nvgpu

// Warpgroups multiply what the copies have brought: the left operand with the sum along its rows, the right one across.
// A step is waited for when the next one has been started.

// GROUPS-LABEL: func.func private @product
// GROUPS-SAME: pipeline.block = 128
// GROUPS: nvgpu.device_async_copy
// GROUPS: scf.for
// GROUPS: nvgpu.device_async_wait
// GROUPS: fence.proxy.async.shared::cta
// GROUPS: gpu.barrier
// GROUPS: wgmma.fence.sync.aligned
// GROUPS-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}} p, 1, 1, 0, 1;
// GROUPS: wgmma.commit_group
// GROUPS: nvgpu.device_async_copy
// GROUPS: wgmma.wait_group.sync.aligned 1;
// GROUPS: wgmma.wait_group.sync.aligned 0;
// GROUPS-NOT: nvgpu.mma.sync
func.func private @product(%x: memref<64x64xbf16>, %y: memref<64x64xbf16>, %z: memref<64x64xf32>) attributes {pipeline.dispatch = "product"} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%zero : f32) outs(%z : memref<64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : memref<64x64xbf16>, memref<64x64xbf16>) outs(%z : memref<64x64xf32>) {
  ^bb0(%a: bf16, %b: bf16, %out: f32):
    %f = arith.extf %a : bf16 to f32
    %g = arith.extf %b : bf16 to f32
    %m = arith.mulf %f, %g : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// CORES-LABEL: func.func private @product_of_f32
// CORES-NOT: nvgpu
// GROUPS-LABEL: func.func private @product_of_f32
// GROUPS-NOT: wgmma
// CHECK-LABEL: func.func private @product_of_f32
func.func private @product_of_f32(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %z: memref<64x64xf32>) attributes {pipeline.dispatch = "product_of_f32"} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%zero : f32) outs(%z : memref<64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : memref<64x64xf32>, memref<64x64xf32>) outs(%z : memref<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Elementwise ops over the same loops: one launch, whose accesses are wide if all of them can be. What the first hands
// to the second stays in registers.

// CHECK-LABEL: func.func private @two
// CHECK: memref.load
// CHECK: math.exp
// CHECK: math.rsqrt
// CHECK: memref.store
// CHECK-NOT: memref.
// WIDE-LABEL: func.func private @two
// WIDE: vector.load {{.*}} vector<4xf32>
// WIDE-NOT: vector.load
// WIDE: vector.store {{.*}} vector<4xf32>
// WIDE-NOT: vector.store
func.func private @two(%x: memref<64xf32>, %y: memref<64xf32>) attributes {pipeline.dispatch = "two"} {
  %t = memref.alloc() : memref<64xf32>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<64xf32>) outs(%t : memref<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = math.exp %in : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%t : memref<64xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = math.rsqrt %in : f32
    linalg.yield %s : f32
  }
  return
}
