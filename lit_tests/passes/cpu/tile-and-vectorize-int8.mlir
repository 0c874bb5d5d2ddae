// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize=int8-dots=mixed --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize --canonicalize --cse | FileCheck %s --check-prefix=PLAIN

// A weight in groups of four rows: one load has the groups of 16 columns. Bytes without a sign come first.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k floordiv 4, n * 4 + k mod 4)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @quads
// CHECK-SAME: (%[[A:.*]]: memref<2x8xi8>, %[[B:.*]]: memref<2x64xi8>, %[[C:.*]]: memref<2x16xi32>)
// CHECK: scf.for %[[K:[a-z0-9]+]] = %c0 to %c8 step %c4 iter_args(%[[SUM:[a-z0-9]+]] =
// CHECK: %[[WEIGHT:.*]] = vector.load %[[B]][%{{.*}}, %{{.*}}] : memref<2x64xi8>, vector<64xi8>
// CHECK: %[[QUAD:.*]] = vector.load %[[A]][%c0, %[[K]]] : memref<2x8xi8>, vector<4xi8>
// CHECK: %[[WORD:.*]] = vector.bitcast %[[QUAD]] : vector<4xi8> to vector<1xi32>
// CHECK: %[[NUMBER:.*]] = vector.extract %[[WORD]][0]
// CHECK: %[[ALL:.*]] = vector.broadcast %[[NUMBER]] : i32 to vector<16xi32>
// CHECK: %[[LEFT:.*]] = vector.bitcast %[[ALL]] : vector<16xi32> to vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%[[SUM]], %[[LEFT]], %[[WEIGHT]]) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
// PLAIN-LABEL: func.func @quads
// PLAIN-NOT: llvm.call_intrinsic
// PLAIN: arith.muli
func.func @quads(%a: memref<2x8xi8>, %b: memref<2x64xi8>, %c: memref<2x16xi32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x8xi8>, memref<2x64xi8>) outs(%c : memref<2x16xi32>) {
  ^bb0(%l: i8, %r: i8, %out: i32):
    %x = arith.extui %l : i8 to i32
    %y = arith.extsi %r : i8 to i32
    %product = arith.muli %x, %y : i32
    %sum = arith.addi %out, %product : i32
    linalg.yield %sum : i32
  }
  return
}

// -----

// The last three of seven rows are joined with zeros.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @rows
// CHECK-COUNT-2: llvm.call_intrinsic
func.func @rows(%a: memref<1x7xi8>, %b: memref<7x16xi8>, %c: memref<1x16xi32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<1x7xi8>, memref<7x16xi8>) outs(%c : memref<1x16xi32>) {
  ^bb0(%l: i8, %r: i8, %out: i32):
    %x = arith.extsi %l : i8 to i32
    %y = arith.extui %r : i8 to i32
    %product = arith.muli %x, %y : i32
    %sum = arith.addi %out, %product : i32
    linalg.yield %sum : i32
  }
  return
}

// -----

// Must not: both factors have a sign.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @signed
// CHECK-NOT: llvm.call_intrinsic
// CHECK: arith.muli
func.func @signed(%a: memref<1x8xi8>, %b: memref<8x16xi8>, %c: memref<1x16xi32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<1x8xi8>, memref<8x16xi8>) outs(%c : memref<1x16xi32>) {
  ^bb0(%l: i8, %r: i8, %out: i32):
    %x = arith.extsi %l : i8 to i32
    %y = arith.extsi %r : i8 to i32
    %product = arith.muli %x, %y : i32
    %sum = arith.addi %out, %product : i32
    linalg.yield %sum : i32
  }
  return
}

// -----

// A sum of groups with scales: each group is a sum of integers. One row of data shares the weights of many columns, which
// lose their sign: 128 is taken away from them, times the sum of the data. Lower and upper halves of bytes are words.

#a = affine_map<(n, g, k, h) -> (g, k, h)>
#b = affine_map<(n, g, k, h) -> (g, k floordiv 4, n * 4 + k mod 4)>
#s = affine_map<(n, g, k, h) -> (g, n)>
#c = affine_map<(n, g, k, h) -> (n)>

// CHECK-LABEL: func.func @nibbles
// CHECK-SAME: (%[[A:.*]]: memref<3x8x2xi8>, %[[B:.*]]: memref<3x2x64xi8>, %[[S:.*]]: memref<3x16xf32>, %{{.*}}: memref<16xf32>)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0> : vector<16xi32>
// CHECK-DAG: %[[ONES:.*]] = arith.constant dense<16843009> : vector<16xi32>
// CHECK: %[[TOTAL:.*]] = scf.for %[[G:[a-z0-9]+]] = %c0 to %c3 step %c1 iter_args(%[[OLD:[a-z0-9_]+]] = %{{.*}}) -> (vector<16xf32>)
// CHECK: %[[SUMS:.*]]:2 = scf.for %[[K:[a-z0-9]+]] = %c0 to %c8 step %c4 iter_args(%[[SUM:[a-z0-9_]+]] = %[[ZERO]], %[[DATA:[a-z0-9_]+]] = %[[ZERO]])
// CHECK: vector.load %[[A]][%[[G]], %[[K]], %c0] : memref<3x8x2xi8>, vector<8xi8>
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 0, 2, 4, 6, 8, 10, 12, 14,
// CHECK: vector.shuffle {{.*}} [1, 3, 5, 7, 1, 3, 5, 7, 9, 11, 13, 15,
// CHECK: vector.load %[[B]][%[[G]], {{.*}}] : memref<3x2x64xi8>, vector<64xi8>
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: %[[ALL:.*]] = vector.bitcast %[[ONES]] : vector<16xi32> to vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%[[DATA]], %[[ALL]],
// CHECK: arith.muli %[[SUMS]]#1, %{{.*}} : vector<16xi32>
// CHECK: arith.subi %[[SUMS]]#0
// CHECK: %[[FLOAT:.*]] = arith.sitofp
// CHECK: %[[SCALE:.*]] = vector.load %[[S]]
// CHECK: math.fma %[[FLOAT]], %[[SCALE]], %[[OLD]]
// PLAIN-LABEL: func.func @nibbles
// PLAIN-NOT: llvm.call_intrinsic
// PLAIN: arith.muli
func.func @nibbles(%a: memref<3x8x2xi8>, %b: memref<3x2x64xi8>, %s: memref<3x16xf32>, %c: memref<16xf32>) {
  %four = arith.constant 4 : i8
  %mask = arith.constant 15 : i8
  %eight = arith.constant 8 : i8
  %shift = arith.constant 128 : i32
  linalg.generic {indexing_maps = [#a, #b, #s, #c], iterator_types = ["parallel", "reduction", "reduction", "reduction"]}
      ins(%a, %b, %s : memref<3x8x2xi8>, memref<3x2x64xi8>, memref<3x16xf32>) outs(%c : memref<16xf32>) {
  ^bb0(%l: i8, %r: i8, %scale: f32, %out: f32):
    %half = linalg.index 3 : index
    %count = arith.index_castui %half : index to i8
    %bits = arith.muli %count, %four : i8
    %moved = arith.shrui %r, %bits : i8
    %number = arith.andi %moved, %mask : i8
    %signed = arith.subi %number, %eight : i8
    %x = arith.extui %l : i8 to i32
    %data = arith.subi %x, %shift : i32
    %y = arith.extsi %signed : i8 to i32
    %product = arith.muli %data, %y : i32
    %float = arith.sitofp %product : i32 to f32
    %scaled = arith.mulf %float, %scale : f32
    %sum = arith.addf %out, %scaled : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// The epilogue rounds as it converts. Edges of bytes are masked, except those of a single lane.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// CHECK-LABEL: func.func @rounded
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: llvm.call_intrinsic "llvm.lrint"({{.*}}) : (vector<16xf32>) -> vector<16xi32>
// CHECK: vector.maskedstore {{.*}} vector<16xi8>
func.func @rounded(%a: memref<2x8xi8>, %b: memref<8x24xi8>, %e: memref<2x24xi8>) {
  %zero = arith.constant 0 : i32
  %c = memref.alloc() : memref<2x24xi32>
  linalg.fill ins(%zero : i32) outs(%c : memref<2x24xi32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x8xi8>, memref<8x24xi8>) outs(%c : memref<2x24xi32>) {
  ^bb0(%l: i8, %r: i8, %out: i32):
    %x = arith.extui %l : i8 to i32
    %y = arith.extsi %r : i8 to i32
    %product = arith.muli %x, %y : i32
    %sum = arith.addi %out, %product : i32
    linalg.yield %sum : i32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<2x24xi32>) outs(%e : memref<2x24xi8>) {
  ^bb0(%in: i32, %out: i8):
    %f = arith.sitofp %in : i32 to f32
    %r = math.roundeven %f : f32
    %i = arith.fptosi %r : f32 to i32
    %t = arith.trunci %i : i32 to i8
    linalg.yield %t : i8
  }
  memref.dealloc %c : memref<2x24xi32>
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// CHECK-LABEL: func.func @single_lane
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: vector.maskedstore {{.*}} vector<16xi8>
// CHECK: return
func.func @single_lane(%a: memref<2x8xi8>, %b: memref<8x17xi8>, %e: memref<2x17xi8>) {
  %zero = arith.constant 0 : i32
  %c = memref.alloc() : memref<2x17xi32>
  linalg.fill ins(%zero : i32) outs(%c : memref<2x17xi32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x8xi8>, memref<8x17xi8>) outs(%c : memref<2x17xi32>) {
  ^bb0(%l: i8, %r: i8, %out: i32):
    %x = arith.extui %l : i8 to i32
    %y = arith.extsi %r : i8 to i32
    %product = arith.muli %x, %y : i32
    %sum = arith.addi %out, %product : i32
    linalg.yield %sum : i32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<2x17xi32>) outs(%e : memref<2x17xi8>) {
  ^bb0(%in: i32, %out: i8):
    %t = arith.trunci %in : i32 to i8
    linalg.yield %t : i8
  }
  memref.dealloc %c : memref<2x17xi32>
  return
}
