// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=32 registers=16" --canonicalize --cse | FileCheck %s

// A sum that reads another line of both operands for each term: blocks of terms stand outside of the tiles, whose
// vectors lie in a panel, one for each part that threads may share. What the blocks before have summed up lies in the result.

#x = affine_map<(t, o, i, n, p) -> (n, p + t, i)>
#g = affine_map<(t, o, i, n, p) -> (n, p, o)>
#y = affine_map<(t, o, i, n, p) -> (o, t, i)>

// CHECK-LABEL: func.func @weight_gradient
// CHECK: scf.for %[[BLOCK:.*]] = %c0 to %c128 step %c64 {
// CHECK: scf.for %[[N:.*]] = %c0 to %c2 step %c1
// CHECK: scf.for %[[FIRST:.*]] = %c0 to %c100 step %c50
// CHECK: scf.for %[[TAP:.*]] = %c0 to %c3 step %c1
// CHECK: scf.for %[[COLUMN:.*]] = %c0 to %c32 step %c16
// CHECK: %[[PANEL:.*]] = memref.alloc() {{.*}} : memref<50x16xf32>
// CHECK: vector.load %arg0[%[[N]], %{{.*}}, %[[COLUMN]]]
// CHECK: vector.store %{{.*}}, %[[PANEL]]
// CHECK: scf.for %[[ROW:.*]] = %[[BLOCK]] to %{{.*}} step %c4
// CHECK: scf.for %[[P:.*]] = %[[FIRST]] to %{{.*}} step %c1 iter_args
// CHECK: vector.load %[[PANEL]]
// CHECK: vector.load %arg2[%[[ROW]], %[[TAP]], %[[COLUMN]]]
// CHECK: vector.store %{{.*}}, %arg2
func.func @weight_gradient(%x: memref<2x102x32xf32>, %g: memref<2x100x128xf32>, %y: memref<128x3x32xf32>) {
  linalg.generic {indexing_maps = [#x, #g, #y],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %g : memref<2x102x32xf32>, memref<2x100x128xf32>) outs(%y : memref<128x3x32xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: what is summed lies side by side in one operand, as the channels of a convolution do.

#x = affine_map<(p, o, t, i) -> (p + t, i)>
#w = affine_map<(p, o, t, i) -> (t, i, o)>
#y = affine_map<(p, o, t, i) -> (p, o)>

// CHECK-LABEL: func.func @must_not_fire_for_channels
// CHECK-NOT: memref.alloc
func.func @must_not_fire_for_channels(%x: memref<66x64xf32>, %w: memref<3x64x32xf32>, %y: memref<64x32xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<66x64xf32>, memref<3x64x32xf32>) outs(%y : memref<64x32xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: so few rows that nothing in a panel would be read again.

#x = affine_map<(t, o, i, n, p) -> (n, p + t, i)>
#g = affine_map<(t, o, i, n, p) -> (n, p, o)>
#y = affine_map<(t, o, i, n, p) -> (o, t, i)>

// CHECK-LABEL: func.func @must_not_fire_for_few_rows
// CHECK-NOT: memref.alloc
func.func @must_not_fire_for_few_rows(%x: memref<2x102x32xf32>, %g: memref<2x100x3xf32>, %y: memref<3x3x32xf32>) {
  linalg.generic {indexing_maps = [#x, #g, #y],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %g : memref<2x102x32xf32>, memref<2x100x3xf32>) outs(%y : memref<3x3x32xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}
