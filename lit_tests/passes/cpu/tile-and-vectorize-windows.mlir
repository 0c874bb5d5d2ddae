// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --remarks-filter=tile-and-vectorize --verify-diagnostics

// Rows of a tile are those that the window slides along, and its taps are unrolled: the 6 rows of data that 4 rows of
// results read are loaded once for each column of the window, that is 18 times 2 vectors, not 36 times 2.

#x = affine_map<(c, h, w, r, s) -> (c, h + r, w + s)>
#k = affine_map<(c, h, w, r, s) -> (c, r, s)>
#o = affine_map<(c, h, w, r, s) -> (c, h, w)>

// CHECK-LABEL: func.func @depthwise
// CHECK-SAME: (%[[X:.*]]: memref<3x6x10xf32>, %[[K:.*]]: memref<3x3x3xf32>, %[[O:.*]]: memref<3x4x8xf32>)
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK-COUNT-36: vector.load %[[X]]
// CHECK-NOT: vector.load %[[X]]
// CHECK-COUNT-8: vector.store
func.func @depthwise(%x: memref<3x6x10xf32>, %k: memref<3x3x3xf32>, %o: memref<3x4x8xf32>) {
  // expected-remark @below {{passed: tiles of 4 x 2 vectors of 4}}
  linalg.generic {indexing_maps = [#x, #k, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %k : memref<3x6x10xf32>, memref<3x3x3xf32>) outs(%o : memref<3x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// A padded copy is not made: what lies in the border is masked, by lanes at the ends of rows, and all of it above and
// below. Rows and columns that are never outside are loaded without masks.

#x = affine_map<(c, h, w, r, s) -> (c, h + r, w + s)>
#k = affine_map<(c, h, w, r, s) -> (c, r, s)>
#o = affine_map<(c, h, w, r, s) -> (c, h, w)>

// CHECK-LABEL: func.func @padded
// CHECK-SAME: (%[[X:.*]]: memref<3x4x8xf32>, %[[K:.*]]: memref<3x3x3xf32>, %[[O:.*]]: memref<3x4x8xf32>)
// CHECK-NOT: memref.alloc
// CHECK-NOT: linalg.generic
// CHECK-DAG: vector.load %[[X]]
// CHECK-DAG: vector.maskedload %[[X]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func @padded(%x: memref<3x4x8xf32>, %k: memref<3x3x3xf32>, %o: memref<3x4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<3x6x10xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<3x6x10xf32>)
  %v = memref.subview %p[0, 1, 1] [3, 4, 8] [1, 1, 1] : memref<3x6x10xf32> to memref<3x4x8xf32, strided<[60, 10, 1], offset: 11>>
  memref.copy %x, %v : memref<3x4x8xf32> to memref<3x4x8xf32, strided<[60, 10, 1], offset: 11>>
  // expected-remark @below {{passed: tiles of 4 x 2 vectors of 4 of what is padded}}
  linalg.generic {indexing_maps = [#x, #k, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %k : memref<3x6x10xf32>, memref<3x3x3xf32>) outs(%o : memref<3x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  }
  memref.dealloc %p : memref<3x6x10xf32>
  return
}

// -----

// Beside the data no lane is loaded, and the address is that of a column that is there: a page that is not there takes a
// processor hundreds of cycles, even if the mask lets nothing through.

#x = affine_map<(h, w, c, r, s) -> (h + r, w + s, c)>
#k = affine_map<(h, w, c, r, s) -> (r, s, c)>
#o = affine_map<(h, w, c, r, s) -> (h, w, c)>

// CHECK-LABEL: func.func @columns_outside
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<9x5x8xf32>
// CHECK-DAG: %[[LAST:.*]] = arith.constant 4 : index
// CHECK: scf.for %[[W:.*]] =
// CHECK: %[[BESIDE:.*]] = affine.apply {{.*}}(%[[W]])
// CHECK: %[[COLUMN:.*]] = arith.minui %[[BESIDE]], %[[LAST]] : index
// CHECK: vector.maskedload %[[X]][%{{[^,]*}}, %[[COLUMN]],
// CHECK-NOT: vector.maskedload %[[X]][%{{[^,]*}}, %[[BESIDE]],
// CHECK: return
func.func @columns_outside(%x: memref<9x5x8xf32>, %k: memref<3x3x8xf32>, %o: memref<9x5x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<11x7x8xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<11x7x8xf32>)
  %v = memref.subview %p[1, 1, 0] [9, 5, 8] [1, 1, 1] : memref<11x7x8xf32> to memref<9x5x8xf32, strided<[56, 8, 1], offset: 64>>
  memref.copy %x, %v : memref<9x5x8xf32> to memref<9x5x8xf32, strided<[56, 8, 1], offset: 64>>
  // expected-remark @below {{of what is padded}}
  linalg.generic {indexing_maps = [#x, #k, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %k : memref<11x7x8xf32>, memref<3x3x8xf32>) outs(%o : memref<9x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  }
  memref.dealloc %p : memref<11x7x8xf32>
  return
}

// -----

// Most tiles of a wide image lie inside of it: these load without masks.

#x = affine_map<(c, h, w, r, s) -> (c, h + r, w + s)>
#k = affine_map<(c, h, w, r, s) -> (c, r, s)>
#o = affine_map<(c, h, w, r, s) -> (c, h, w)>

// CHECK-LABEL: func.func @inside_and_at_the_border
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<3x40x104xf32>
// CHECK: %[[INSIDE:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK: scf.if %[[INSIDE]] {
// CHECK-NOT: vector.maskedload
// CHECK: vector.load %[[X]]
// CHECK-NOT: vector.maskedload
// CHECK: } else {
// CHECK: vector.maskedload %[[X]]
// CHECK: return
func.func @inside_and_at_the_border(%x: memref<3x40x104xf32>, %k: memref<3x3x3xf32>, %o: memref<3x40x104xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<3x42x106xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<3x42x106xf32>)
  %v = memref.subview %p[0, 1, 1] [3, 40, 104] [1, 1, 1] : memref<3x42x106xf32> to memref<3x40x104xf32, strided<[4452, 106, 1], offset: 107>>
  memref.copy %x, %v : memref<3x40x104xf32> to memref<3x40x104xf32, strided<[4452, 106, 1], offset: 107>>
  // expected-remark @below {{of what is padded}}
  linalg.generic {indexing_maps = [#x, #k, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %k : memref<3x42x106xf32>, memref<3x3x3xf32>) outs(%o : memref<3x40x104xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  }
  memref.dealloc %p : memref<3x42x106xf32>
  return
}

// -----

// Must not fire: something else reads the padded copy.

#x = affine_map<(c, h, w, r, s) -> (c, h + r, w + s)>
#k = affine_map<(c, h, w, r, s) -> (c, r, s)>
#o = affine_map<(c, h, w, r, s) -> (c, h, w)>

// CHECK-LABEL: func.func @read_elsewhere
// CHECK: %[[P:.*]] = memref.alloc
// CHECK: vector.load %[[P]]
func.func @read_elsewhere(%x: memref<3x4x8xf32>, %k: memref<3x3x3xf32>, %o: memref<3x4x8xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %p = memref.alloc() : memref<3x6x10xf32>
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 4}}
  linalg.generic {indexing_maps = [affine_map<(a, b, c) -> ()>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%zero : f32) outs(%p : memref<3x6x10xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  %v = memref.subview %p[0, 1, 1] [3, 4, 8] [1, 1, 1] : memref<3x6x10xf32> to memref<3x4x8xf32, strided<[60, 10, 1], offset: 11>>
  memref.copy %x, %v : memref<3x4x8xf32> to memref<3x4x8xf32, strided<[60, 10, 1], offset: 11>>
  // expected-remark @below {{passed: tiles of 4 x 2 vectors of 4}}
  linalg.generic {indexing_maps = [#x, #k, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %k : memref<3x6x10xf32>, memref<3x3x3xf32>) outs(%o : memref<3x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  }
  %r = memref.load %p[%c0, %c0, %c0] : memref<3x6x10xf32>
  memref.dealloc %p : memref<3x6x10xf32>
  return %r : f32
}
