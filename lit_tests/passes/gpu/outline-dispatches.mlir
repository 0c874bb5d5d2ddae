// RUN: pipeline-opt %s --split-input-file --outline-dispatches | FileCheck %s

// The fill that a reduction starts from goes with it.

// CHECK: func.func private @sum_dispatch(%[[OUT:.*]]: memref<4xf32>, %[[IN:.*]]: memref<4x8xf32>) attributes {pipeline.dispatch = "sum"}
// CHECK: linalg.generic {{.*}} outs(%[[OUT]] : memref<4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[IN]] : memref<4x8xf32>) outs(%[[OUT]] : memref<4xf32>)
// CHECK-LABEL: func.func @sum
// CHECK-SAME: (%[[X:.*]]: memref<4x8xf32>, %[[Y:.*]]: memref<4xf32>)
// CHECK-NOT: linalg
// CHECK: call @sum_dispatch(%[[Y]], %[[X]])
func.func @sum(%x: memref<4x8xf32>, %y: memref<4xf32>) {
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

// Must not fire: the fill of another buffer, and of one that the op reads, is a launch of its own.

// CHECK: func.func private @apart_dispatch_1
// CHECK: func.func private @apart_dispatch(
// CHECK-LABEL: func.func @apart
// CHECK: call @apart_dispatch(
// CHECK-NEXT: call @apart_dispatch_1(
func.func @apart(%x: memref<4xf32>, %y: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%zero : f32) outs(%x : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.negf %in : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Equal dispatches share a function; views go into it; the number of threads is an argument where sizes are not known.

// CHECK: func.func private @copies_dispatch_1(%{{.*}}: index {pipeline.threads}, %{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>)
// CHECK: func.func private @copies_dispatch(%[[IN:.*]]: memref<8xf32>, %[[OUT:.*]]: memref<4xf32>)
// CHECK-NEXT: %[[HALF:.*]] = memref.subview %[[IN]][4] [4] [1]
// CHECK-NEXT: memref.copy %[[HALF]], %[[OUT]]
// CHECK-LABEL: func.func @copies
// CHECK: call @copies_dispatch(
// CHECK: call @copies_dispatch(
// CHECK: %[[SIZE:.*]] = memref.dim
// CHECK: call @copies_dispatch_1(%{{.*}}, %{{.*}}, %{{.*}})
func.func @copies(%x: memref<8xf32>, %a: memref<4xf32>, %b: memref<4xf32>, %c: memref<?xf32>, %d: memref<?xf32>) {
  %half = memref.subview %x[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  memref.copy %half, %a : memref<4xf32, strided<[1], offset: 4>> to memref<4xf32>
  memref.copy %half, %b : memref<4xf32, strided<[1], offset: 4>> to memref<4xf32>
  memref.copy %c, %d : memref<?xf32> to memref<?xf32>
  return
}

// -----

// A check runs on the device: the flag is loaded there. A branch around a call stays the host's.

// CHECK: func.func private @checks_dispatch(%[[FLAG:.*]]: memref<i1>, %[[STATUS:.*]]: memref<1xi64>)
// CHECK: memref.load %[[FLAG]][]
// CHECK: scf.if
// CHECK-LABEL: func.func @checks
// CHECK-SAME: (%[[F:.*]]: memref<i1>, %[[S:.*]]: memref<1xi64>)
// CHECK: call @checks_dispatch(%[[F]], %[[S]])
// CHECK: %[[TAKEN:.*]] = memref.load %[[F]][]
// CHECK: scf.if %[[TAKEN]]
// CHECK-NEXT: call @kernel
func.func private @kernel()
func.func @checks(%flag: memref<i1>, %status: memref<1xi64>) {
  %number = arith.constant 3 : i64
  %c0 = arith.constant 0 : index
  %bad = memref.load %flag[] : memref<i1>
  scf.if %bad {
    memref.store %number, %status[%c0] : memref<1xi64>
  }
  %taken = memref.load %flag[] : memref<i1>
  scf.if %taken {
    func.call @kernel() : () -> ()
  }
  return
}

// -----

// Must not fire: a number that was loaded before the buffer changed is handed over.

// CHECK: func.func private @before_dispatch_1(%{{.*}}: i64, %{{.*}}: memref<1xi64>)
// CHECK-LABEL: func.func @before
// CHECK: %[[OLD:.*]] = memref.load
// CHECK: call @before_dispatch(
// CHECK: call @before_dispatch_1(%[[OLD]], %{{.*}})
func.func @before(%x: memref<1xi64>, %y: memref<1xi64>) {
  %c0 = arith.constant 0 : index
  %old = memref.load %x[%c0] : memref<1xi64>
  memref.copy %y, %x : memref<1xi64> to memref<1xi64>
  memref.store %old, %y[%c0] : memref<1xi64>
  return
}

// -----

// What is elementwise behind a reduction, over the same loops, goes with it; so does a buffer that nothing else touches.

// CHECK: func.func private @norm_dispatch(%[[X:.*]]: memref<4x8xf32>, %[[OUT:.*]]: memref<4xf32>) attributes {pipeline.dispatch = "norm"}
// CHECK: %[[OWN:.*]] = memref.alloc() : memref<4xf32>
// CHECK: linalg.generic {{.*}} outs(%[[OWN]] : memref<4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : memref<4x8xf32>) outs(%[[OWN]] : memref<4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[OWN]] : memref<4xf32>) outs(%[[OUT]] : memref<4xf32>)
// CHECK-LABEL: func.func @norm
// CHECK: call @norm_dispatch
// CHECK-NOT: call
func.func @norm(%x: memref<4x8xf32>, %y: memref<4xf32>) {
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

// Must not fire: the second op reads other elements than the thread has, or loops that the first has not.

// CHECK-LABEL: func.func @crossed
// CHECK: call @crossed_dispatch(
// CHECK-NEXT: call @crossed_dispatch_1(
// CHECK-NEXT: call @crossed_dispatch_2(
func.func @crossed(%x: memref<4x4xf32>, %t: memref<4x4xf32>, %y: memref<4x4xf32>, %z: memref<4x4x2xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x4xf32>) outs(%t : memref<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = math.exp %in : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%t, %t : memref<4x4xf32>, memref<4x4xf32>) outs(%y : memref<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, j, k)>],
                  iterator_types = ["parallel", "parallel", "parallel"]} ins(%y : memref<4x4xf32>) outs(%z : memref<4x4x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = math.exp %in : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Loops of tile-groups-to-blocks are one launch, with the buffers that its iterations use; an argument says how many blocks.

// CHECK: func.func private @rows_dispatch(%{{.*}}: index {pipeline.threads}, %{{.*}}: memref<?x8xf32>
// CHECK: memref.alloc() : memref<8xf32>
// CHECK: scf.for
// CHECK-LABEL: func.func @rows
// CHECK-NOT: memref.alloc
// CHECK: %[[N:.*]] = memref.dim
// CHECK: call @rows_dispatch(
func.func @rows(%x: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  %t = memref.alloc() : memref<8xf32>
  scf.for %i = %c0 to %n step %c1 {
    %row = memref.subview %x[%i, 0] [1, 8] [1, 1] : memref<?x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%row : memref<8xf32, strided<[1], offset: ?>>) outs(%t : memref<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %s = math.exp %in : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i) -> (-i + 7)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%t : memref<8xf32>) outs(%row : memref<8xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
  } {pipeline.parallel = "tiles"}
  return
}

// -----

// Must not fire: adding a number is no fill.

// CHECK-LABEL: func.func @add
// CHECK: call @add_dispatch(
// CHECK-NEXT: call @add_dispatch_1(
func.func @add(%v: f32, %x: memref<4x8xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%v : f32) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]} ins(%x : memref<4x8xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  }
  return
}
