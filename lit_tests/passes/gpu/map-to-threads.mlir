// RUN: pipeline-opt %s --split-input-file --map-to-threads | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --map-to-threads --canonicalize | FileCheck %s --check-prefix=AFTER
// RUN: pipeline-opt %s --split-input-file --map-to-threads="access-bytes=16" | FileCheck %s --check-prefix=WIDE
// RUN: pipeline-opt %s --split-input-file --map-to-threads=shuffles | FileCheck %s --check-prefix=WARPS

// One thread an element, numbered along the result's innermost dimension; what exceeds the last block does nothing.

// CHECK-LABEL: func.func private @scale
// CHECK-SAME: pipeline.block = 128 : i64, {{.*}}pipeline.items = 128 : i64, pipeline.threads = 300 : i64
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: scf.if
// CHECK: arith.remui
// CHECK: arith.divui
// CHECK: memref.load
// CHECK: memref.store
// CHECK-NOT: linalg
func.func private @scale(%x: memref<30x10xf32>, %y: memref<30x10xf32>) attributes {pipeline.dispatch = "scale"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%x : memref<30x10xf32>) outs(%y : memref<30x10xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %in : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// A size of 1 is no loop that canonicalize could fold away together with the threads.

// AFTER-LABEL: func.func private @row
// AFTER-SAME: pipeline.threads = 64 : i64
// AFTER: gpu.thread_id x
// AFTER: memref.store
// CHECK-LABEL: func.func private @row
func.func private @row(%x: memref<1x64xf32>, %y: memref<1x64xf32>) attributes {pipeline.dispatch = "row"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%x : memref<1x64xf32>) outs(%y : memref<1x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.negf %in : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// A size that is known at run time only: threads walk in steps of all threads.

// CHECK-LABEL: func.func private @dynamic
// CHECK-NOT: pipeline.threads =
// CHECK: gpu.grid_dim x
// CHECK: scf.for
func.func private @dynamic(%n: index {pipeline.threads}, %x: memref<?xf32>) attributes {pipeline.dispatch = "dynamic"} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%zero : f32) outs(%x : memref<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// The accumulator stays in a register and starts with the number that a fill would have put into memory.

// CHECK-LABEL: func.func private @sum
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]]) -> (f32)
// CHECK: memref.store %[[SUM]]
func.func private @sum(%y: memref<4xf32>, %x: memref<4x8xf32>) attributes {pipeline.dispatch = "sum"} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%zero : f32) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]} ins(%x : memref<4x8xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// A large product: blocks of 256 threads share tiles of both operands.

// CHECK-LABEL: func.func private @product
// CHECK-SAME: pipeline.block = 256 : i64, {{.*}}pipeline.items = 256 : i64, pipeline.threads = 1024 : i64
// CHECK-COUNT-2: memref.alloc() {alignment = 16 : i64} : memref<1088xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK: arith.mulf {{.*}} fastmath<contract>
// CHECK: arith.addf {{.*}} fastmath<contract>
// CHECK: gpu.barrier
func.func private @product(%c: memref<128x100xf32>, %a: memref<128x32xf32>, %b: memref<32x100xf32>)
    attributes {pipeline.dispatch = "product"} {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<128x32xf32>, memref<32x100xf32>) outs(%c : memref<128x100xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %p, %z : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Must not fire: a product with too few rows to share.

// CHECK-LABEL: func.func private @few_rows
// CHECK-NOT: gpu.barrier
// CHECK-NOT: contract
func.func private @few_rows(%c: memref<4x100xf32>, %a: memref<4x32xf32>, %b: memref<32x100xf32>)
    attributes {pipeline.dispatch = "few_rows"} {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x32xf32>, memref<32x100xf32>) outs(%c : memref<4x100xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %p, %z : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// The lines of a scan are threads; a loop that carries something from line to line is one thread.

// CHECK-LABEL: func.func private @lines
// CHECK-SAME: pipeline.threads = 6 : i64
// CHECK: gpu.thread_id x
// CHECK-LABEL: func.func private @serial
// CHECK-SAME: pipeline.threads = 1 : i64
// CHECK-NOT: gpu.thread_id
func.func private @lines(%x: memref<6x4xf32>) attributes {pipeline.dispatch = "lines"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  scf.for %i = %c0 to %c6 step %c1 {
    scf.for %j = %c1 to %c4 step %c1 {
      %v = memref.load %x[%i, %c0] : memref<6x4xf32>
      memref.store %v, %x[%i, %j] : memref<6x4xf32>
    }
  } {pipeline.lines}
  return
}
func.func private @serial(%x: memref<6x4xf32>) attributes {pipeline.dispatch = "serial"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  scf.for %i = %c1 to %c6 step %c1 {
    %v = memref.load %x[%c0, %c0] : memref<6x4xf32>
    memref.store %v, %x[%i, %c0] : memref<6x4xf32>
  }
  return
}

// -----

// A block for each long row: partial results meet in shared memory, or first by shuffles.

// CHECK-LABEL: func.func private @rows
// CHECK-SAME: pipeline.block = 128 : i64, {{.*}}pipeline.items = 128 : i64, pipeline.threads = 640 : i64
// CHECK: memref.alloc() : memref<128xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK-NOT: gpu.shuffle
// WARPS-LABEL: func.func private @rows
// WARPS-COUNT-5: gpu.shuffle xor
// WARPS: memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>>
// WARPS: gpu.barrier
// WARPS-NOT: gpu.barrier
func.func private @rows(%y: memref<5xf32>, %x: memref<5x200xf32>) attributes {pipeline.dispatch = "rows"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]} ins(%x : memref<5x200xf32>) outs(%y : memref<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Must not fire: columns, whose neighbours are neighbours in memory already; a running difference, which is no fold.

// CHECK-LABEL: func.func private @columns
// CHECK-NOT: gpu.barrier
// CHECK-LABEL: func.func private @differences
// CHECK-NOT: gpu.barrier
func.func private @columns(%y: memref<200xf32>, %x: memref<100x200xf32>) attributes {pipeline.dispatch = "columns"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]} ins(%x : memref<100x200xf32>) outs(%y : memref<200xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @differences(%y: memref<5xf32>, %x: memref<5x200xf32>) attributes {pipeline.dispatch = "differences"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]} ins(%x : memref<5x200xf32>) outs(%y : memref<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.subf %in, %out : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Four elements of 4 bytes at a time, whatever the shape.

// CHECK-LABEL: func.func private @wide
// CHECK-SAME: pipeline.threads = 64 : i64
// CHECK-NOT: vector.load
// WIDE-LABEL: func.func private @wide
// WIDE-SAME: pipeline.threads = 16 : i64
// WIDE: %[[ROW:.*]] = memref.reinterpret_cast {{.*}} to offset: [0], sizes: [64], strides: [1]
// WIDE: %[[FOUR:.*]] = vector.load %[[ROW]]{{.*}} {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>
// WIDE-COUNT-4: arith.negf %{{.*}} : f32
// WIDE: vector.store {{.*}} {alignment = 16 : i64}
func.func private @wide(%x: memref<4x16xf32>, %y: memref<4x16xf32>) attributes {pipeline.dispatch = "wide"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x16xf32>) outs(%y : memref<4x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.negf %in : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Must not fire: elements that do not come out even, a transpose, and truth values, which do not fill their bytes.

// WIDE-LABEL: func.func private @odd
// WIDE-NOT: vector.load
// WIDE-LABEL: func.func private @turned
// WIDE-NOT: vector.load
// WIDE-LABEL: func.func private @truth
// WIDE-NOT: vector.load
func.func private @odd(%x: memref<63xf32>, %y: memref<63xf32>) attributes {pipeline.dispatch = "odd"} {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<63xf32>) outs(%y : memref<63xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.negf %in : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @turned(%x: memref<8x8xf32>, %y: memref<8x8xf32>) attributes {pipeline.dispatch = "turned"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.negf %in : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @truth(%x: memref<64xi1>, %y: memref<64xi1>) attributes {pipeline.dispatch = "truth"} {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<64xi1>) outs(%y : memref<64xi1>) {
  ^bb0(%in: i1, %out: i1):
    %s = arith.xori %in, %in : i1
    linalg.yield %s : i1
  }
  return
}
