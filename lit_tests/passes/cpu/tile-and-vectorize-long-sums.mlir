// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --canonicalize --cse | FileCheck %s

// A long sum of floats is one of partial sums of at most 192 terms, which start from nothing: 200 are two of 100.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @product
// CHECK-DAG: %[[NOTHING:.*]] = arith.constant dense<-0.000000e+00> : vector<4xf32>
// CHECK: %[[OLD:.*]] = vector.load %arg2
// CHECK: scf.for %[[FIRST:.*]] = %c0 to %c200 step %c100 iter_args(%[[TOTAL:.*]] = %[[OLD]])
// CHECK-NEXT: %[[END:.*]] = arith.addi %[[FIRST]], %c100
// CHECK-NEXT: %[[PART:.*]] = scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1 iter_args(%[[SUM:.*]] = %[[NOTHING]])
// CHECK: math.fma %{{.*}}, %{{.*}}, %[[SUM]]
// CHECK: arith.addf %[[TOTAL]], %[[PART]]
func.func @product(%x: memref<1x200xf32>, %w: memref<200x4xf32>, %y: memref<1x4xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<1x200xf32>, memref<200x4xf32>) outs(%y : memref<1x4xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// A size that is known only later counts as long; the last block may be shorter.

#in = affine_map<(c, r) -> (r, c)>
#out = affine_map<(c, r) -> (c)>

// CHECK-LABEL: func.func @columns_of_any_length
// CHECK: %[[ROWS:.*]] = memref.dim %arg0, %c0
// CHECK: scf.for %[[FIRST:.*]] = %c0 to %[[ROWS]] step %c192
// CHECK-NEXT: %[[AFTER:.*]] = arith.addi %[[FIRST]], %c192
// CHECK-NEXT: %[[END:.*]] = arith.minui %[[AFTER]], %[[ROWS]]
// CHECK-NEXT: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1
func.func @columns_of_any_length(%x: memref<?x4xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Rows of one line: blocks of steps of all vectors along the line; 4 vectors of 4 elements, 250 steps in two blocks.

#line = affine_map<(r, c) -> (r, c)>
#number = affine_map<(r, c) -> (r)>

// CHECK-LABEL: func.func @rows
// CHECK: scf.for %[[FIRST:.*]] = %c0 to %c4000 step %c2000
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %c16
func.func @rows(%x: memref<3x4000xf32>, %y: memref<3xf32>) {
  linalg.generic {indexing_maps = [#line, #number], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x4000xf32>) outs(%y : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not fire: a short sum; a maximum; a sum of integers, which is exact.

#in = affine_map<(c, r) -> (r, c)>
#out = affine_map<(c, r) -> (c)>

// CHECK-LABEL: func.func @short
// CHECK: scf.for %{{.*}} = %c0 to %c192 step %c1
func.func @short(%x: memref<192x4xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<192x4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  }
  return
}

// CHECK-LABEL: func.func @maximum
// CHECK: scf.for %{{.*}} = %c0 to %c500 step %c1
func.func @maximum(%x: memref<500x4xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<500x4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %most = arith.maximumf %in, %out : f32
    linalg.yield %most : f32
  }
  return
}

// CHECK-LABEL: func.func @integers
// CHECK: scf.for %{{.*}} = %c0 to %c500 step %c1
func.func @integers(%x: memref<500x4xi32>, %y: memref<4xi32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<500x4xi32>) outs(%y : memref<4xi32>) {
  ^bb0(%in: i32, %out: i32):
    %sum = arith.addi %in, %out : i32
    linalg.yield %sum : i32
  }
  return
}
