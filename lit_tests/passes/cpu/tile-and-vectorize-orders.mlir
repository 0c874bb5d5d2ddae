// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --canonicalize --cse | FileCheck %s

// The loops and vectors of more schedules: which loops run outside, and what is read how often.

// A vector times the lines of a matrix: four vectors of partial sums, which the first step starts; what is left of a
// line goes into two of them, the last one under a mask; one number for each line.

#x = affine_map<(n, k) -> (k)>
#w = affine_map<(n, k) -> (n, k)>
#y = affine_map<(n, k) -> (n)>

// CHECK-LABEL: func.func @vector_by_lines
// CHECK-SAME: (%[[X:.*]]: memref<22xf32>, %[[W:.*]]: memref<5x22xf32>, %[[Y:.*]]: memref<5xf32>)
// CHECK: scf.for %[[N:[a-z0-9]+]] = %c0 to %c5 step %c1
// CHECK-NEXT: %[[V:.*]] = vector.load %[[X]][%c0] : memref<22xf32>, vector<4xf32>
// CHECK-NEXT: %[[L:.*]] = vector.load %[[W]][%[[N]], %c0] : memref<5x22xf32>, vector<4xf32>
// CHECK-NEXT: %[[P:.*]] = math.fma %[[V]], %[[L]], %{{.*}} : vector<4xf32>
// CHECK-COUNT-3: math.fma
// CHECK-NOT: math.fma
// CHECK: %[[WHOLE:.*]] = vector.load %[[W]][%[[N]], %c16]
// CHECK-NEXT: math.fma %{{.*}}, %[[WHOLE]], %[[P]]
// CHECK: %[[EDGE:.*]] = vector.maskedload %[[W]][%[[N]], %c20], %[[MASK:[a-z0-9_]+]]
// CHECK-NEXT: %[[NEXT:.*]] = math.fma %{{.*}}, %[[EDGE]], %[[PART:.*]] : vector<4xf32>
// CHECK-NEXT: arith.select %[[MASK]], %[[NEXT]], %[[PART]]
// CHECK-NOT: math.fma
// CHECK: %[[ALL:.*]] = vector.reduction <add>
// CHECK: %[[OLD:.*]] = memref.load %[[Y]][%[[N]]]
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[ALL]]
// CHECK: memref.store %[[NEW]], %[[Y]][%[[N]]]
func.func @vector_by_lines(%x: memref<22xf32>, %w: memref<5x22xf32>, %y: memref<5xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : memref<22xf32>, memref<5x22xf32>) outs(%y : memref<5xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Sums of columns: as many vectors side by side as a line has, up to eight, and no rows.

#in = affine_map<(c, r) -> (r, c)>
#out = affine_map<(c, r) -> (c)>

// CHECK-LABEL: func.func @columns
// CHECK-SAME: (%[[X:.*]]: memref<9x23xf32>, %[[Y:.*]]: memref<23xf32>)
// CHECK: %[[MASK:.*]] = vector.constant_mask [3]
// CHECK: %[[REST:.*]] = vector.maskedload %[[Y]][%c20], %[[MASK]]
// CHECK: %[[SUMS:.*]]:6 = scf.for %[[ROW:[a-z0-9]+]] = %c0 to %c9 step %c1 iter_args({{.*}}, %[[LAST:[a-z0-9]+]] = %[[REST]])
// CHECK-COUNT-5: vector.load %[[X]][%[[ROW]], %{{.*}}] : memref<9x23xf32>, vector<4xf32>
// CHECK: %[[EDGE:.*]] = vector.maskedload %[[X]][%[[ROW]], %c20], %[[MASK]]
// CHECK-NEXT: arith.addf %[[EDGE]], %[[LAST]]
// CHECK: vector.maskedstore %[[Y]][%c20], %[[MASK]], %[[SUMS]]#5
func.func @columns(%x: memref<9x23xf32>, %y: memref<23xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<9x23xf32>) outs(%y : memref<23xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// A pool of integers: rows next to each other, whose windows share what they read. Each line of the image is read once for all.

#data = affine_map<(c, h, w, y, x) -> (c, h + y, w + x)>
#window = affine_map<(c, h, w, y, x) -> (y, x)>
#result = affine_map<(c, h, w, y, x) -> (c, h, w)>

// CHECK-LABEL: func.func @pool
// CHECK-SAME: (%[[X:.*]]: memref<1x6x6xi32>, %[[Y:.*]]: memref<1x4x4xi32>)
// CHECK-COUNT-4: vector.load %[[Y]]
// CHECK-COUNT-18: vector.load %[[X]][%{{.*}}, %{{.*}}, %{{.*}}] : memref<1x6x6xi32>, vector<4xi32>
// CHECK-NOT: vector.load
// CHECK-COUNT-4: vector.store %{{.*}}, %[[Y]]
func.func @pool(%x: memref<1x6x6xi32>, %y: memref<1x4x4xi32>) {
  %w = memref.alloca() : memref<3x3xi32>
  linalg.generic {indexing_maps = [#data, #window, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<1x6x6xi32>, memref<3x3xi32>) outs(%y : memref<1x4x4xi32>) {
  ^bb0(%in: i32, %unused: i32, %out: i32):
    %most = arith.maxsi %in, %out : i32
    linalg.yield %most : i32
  }
  return
}

// -----

// The weight, whose elements are fixed along vectors, is larger than the image: rows are outermost, and it is read once.

#data = affine_map<(f, h, w, c) -> (c, h, w)>
#weight = affine_map<(f, h, w, c) -> (f, c)>
#result = affine_map<(f, h, w, c) -> (f, h, w)>

// CHECK-LABEL: func.func @large_weight
// CHECK-SAME: (%[[X:.*]]: memref<16x2x4xf32>, %[[W:.*]]: memref<20x16xf32>, %[[Y:.*]]: memref<20x2x4xf32>)
// CHECK: scf.for %[[F:[a-z0-9]+]] = %c0 to %c20 step %c10
// CHECK-NEXT: scf.for %[[H:[a-z0-9]+]] = %c0 to %c2 step %c1
// CHECK: scf.for %[[C:[a-z0-9]+]] = %c0 to %c16 step %c1
// CHECK-NEXT: %[[V:.*]] = vector.load %[[X]][%[[C]], %[[H]], %c0]
// CHECK-NEXT: memref.load %[[W]][%[[F]], %[[C]]]
func.func @large_weight(%x: memref<16x2x4xf32>, %w: memref<20x16xf32>, %y: memref<20x2x4xf32>) {
  linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<16x2x4xf32>, memref<20x16xf32>) outs(%y : memref<20x2x4xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// With channels last the weight moves along vectors. It is larger than what stays in the cache: vectors are outermost,
// and a panel of it meets all rows before the next one is read.

#data = affine_map<(h, w, f, c) -> (h, w, c)>
#weight = affine_map<(h, w, f, c) -> (c, f)>
#result = affine_map<(h, w, f, c) -> (h, w, f)>

// CHECK-LABEL: func.func @weight_beyond_the_cache
// CHECK: scf.for %[[F:[a-z0-9]+]] = %c0 to %c256 step %c8
// CHECK-NEXT: scf.for %[[H:[a-z0-9]+]] = %c0 to %c2 step %c1
// CHECK: scf.for %[[BLOCK:[a-z0-9]+]] = %c0 to %c300 step %c150
// CHECK: scf.for %[[C:[a-z0-9]+]] = %[[BLOCK]] to %{{.*}} step %c1
// CHECK: vector.load %arg1[%[[C]], %[[F]]]
func.func @weight_beyond_the_cache(%x: memref<2x4x300xf32>, %w: memref<300x256xf32>, %y: memref<2x4x256xf32>) {
  linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<2x4x300xf32>, memref<300x256xf32>) outs(%y : memref<2x4x256xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: the cache holds the weight, which is read for each row of the image.

#data = affine_map<(h, w, f, c) -> (h, w, c)>
#weight = affine_map<(h, w, f, c) -> (c, f)>
#result = affine_map<(h, w, f, c) -> (h, w, f)>

// CHECK-LABEL: func.func @weight_in_the_cache
// CHECK: scf.for %[[H:[a-z0-9]+]] = %c0 to %c2 step %c1
// CHECK-NEXT: scf.for %[[F:[a-z0-9]+]] = %c0 to %c256 step %c8
// CHECK: scf.for %[[C:[a-z0-9]+]] = %c0 to %c30 step %c1
func.func @weight_in_the_cache(%x: memref<2x4x30xf32>, %w: memref<30x256xf32>, %y: memref<2x4x256xf32>) {
  linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<2x4x30xf32>, memref<30x256xf32>) outs(%y : memref<2x4x256xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Winograd's algorithm with tiles of 4 x 4 results: 36 points, of which a result is a sum each.

#data = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
#weight = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 8, d4, d5, d6, d3 mod 8)>
#points = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 8, 0, d6, d3 mod 8)>
#result = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func.func @winograd_four
// CHECK-SAME: (%[[X:.*]]: memref<1x6x6x4xf32>, %{{.*}}, %[[U:.*]]: memref<1x36x4x8xf32>, %[[Y:.*]]: memref<1x4x4x8xf32>)
// CHECK: memref.alloc() {{.*}} : memref<36x1x4xf32>
// CHECK-COUNT-36: vector.load %[[X]][{{.*}}] : memref<1x6x6x4xf32>, vector<4xf32>
// CHECK: memref.alloc() {{.*}} : memref<36x1x8xf32>
// CHECK: vector.load %[[U]]
// CHECK: math.fma
// CHECK-COUNT-16: vector.store {{.*}}, %[[Y]]
// CHECK-NOT: linalg
// CHECK: return
func.func @winograd_four(%x: memref<1x6x6x4xf32>, %w: memref<1x3x3x4x8xf32>, %u: memref<1x36x4x8xf32>, %y: memref<1x4x4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x4x4x8xf32>)
  linalg.generic {indexing_maps = [#data, #weight, #points, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w, %u : memref<1x6x6x4xf32>, memref<1x3x3x4x8xf32>, memref<1x36x4x8xf32>) outs(%y : memref<1x4x4x8xf32>) attrs = {pipeline.winograd = 4 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
