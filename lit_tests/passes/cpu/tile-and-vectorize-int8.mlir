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
