// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="amx=true bf16-dots=true int8-dots=mixed" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="amx=true bf16-dots=true int8-dots=mixed" --remarks-filter=tile-and-vectorize --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="bf16-dots=true int8-dots=mixed" --canonicalize --cse | FileCheck %s --check-prefix=DOTS

// Two tiles of rows times two of columns, 32 steps of the sum at a time; then 16 rows' worth of what is left of it. Four
// rows at a time become vectors again.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k floordiv 2, n * 2 + k mod 2)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @bf16
// CHECK-SAME: (%[[A:.*]]: memref<40x80xbf16>, %[[B:.*]]: memref<40x64xbf16>, %[[C:.*]]: memref<40x32xf32>)
// CHECK: %[[ASIDE:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x32xf32>
// CHECK: scf.execute_region no_inline {
// CHECK: x86.amx.tile_zero : !x86.amx.tile<16x16xf32>
// CHECK: scf.for %[[K:[a-z0-9]+]] = %c0 to %c64 step %c32
// CHECK: x86.amx.tile_load %[[A]][%c0, %[[K]]], %c80 : memref<40x80xbf16> into !x86.amx.tile<16x32xbf16>
// CHECK: x86.amx.tile_load %[[B]][%{{.*}}, %{{.*}}], %c64 : memref<40x64xbf16> into !x86.amx.tile<16x32xbf16>
// CHECK-COUNT-4: x86.amx.tile_mulf
// CHECK-COUNT-4: x86.amx.tile_store %[[ASIDE]]
// CHECK: } {pipeline.amx_block}
// CHECK: scf.execute_region no_inline {
// CHECK: x86.amx.tile_load %[[ASIDE]][%c0, %c0] : memref<32x32xf32> into !x86.amx.tile<16x16xf32>
// CHECK: x86.amx.tile_load %[[A]][%c0, %c64], %c80 : memref<40x80xbf16> into !x86.amx.tile<16x16xbf16>
// CHECK: x86.amx.tile_load %[[B]][%c32, %c0], %c64 : memref<40x64xbf16> into !x86.amx.tile<8x32xbf16>
// CHECK: } {pipeline.amx_block}
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c4
// CHECK: vector.load %[[C]]
// CHECK: vector.load %[[ASIDE]]
// CHECK: arith.addf
// CHECK: vector.store %{{.*}}, %[[C]]
// CHECK: memref.dealloc %[[ASIDE]]

// The last eight rows are a block of their own.

// CHECK: memref.alloc() {alignment = 64 : i64} : memref<8x32xf32>
// CHECK: x86.amx.tile_load %[[A]][%c32, %{{.*}}], %c80 : memref<40x80xbf16> into !x86.amx.tile<8x32xbf16>
// DOTS-LABEL: func.func @bf16
// DOTS-NOT: amx
// DOTS: llvm.x86.avx512bf16.dpbf16ps.512
func.func @bf16(%a: memref<40x80xbf16>, %b: memref<40x64xbf16>, %c: memref<40x32xf32>) {
  // expected-remark @below {{passed: tiles of 10 x 2 vectors of 16, added up by AMX}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<40x80xbf16>, memref<40x64xbf16>) outs(%c : memref<40x32xf32>) {
  ^bb0(%l: bf16, %r: bf16, %out: f32):
    %x = arith.extf %l : bf16 to f32
    %y = arith.extf %r : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Bytes, four at a time; each factor has a sign or not. 24 columns are a tile of 16, and one of 8.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k floordiv 4, n * 4 + k mod 4)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @bytes
// CHECK: x86.amx.tile_zero : !x86.amx.tile<16x8xi32>
// CHECK: x86.amx.tile_muli %{{.*}} zext, %{{.*}}, %{{.*}} : !x86.amx.tile<16x64xi8>, !x86.amx.tile<16x64xi8>, !x86.amx.tile<16x16xi32>
// CHECK: x86.amx.tile_load %{{.*}} : memref<16x96xi8> into !x86.amx.tile<16x32xi8>
// CHECK: x86.amx.tile_muli %{{.*}} zext, %{{.*}}, %{{.*}} : !x86.amx.tile<16x64xi8>, !x86.amx.tile<16x32xi8>, !x86.amx.tile<16x8xi32>
func.func @bytes(%a: memref<16x64xi8>, %b: memref<16x96xi8>, %c: memref<16x24xi32>) {
  // expected-remark @below {{passed: tiles of 8 x 2 vectors of 16, added up by AMX}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<16x64xi8>, memref<16x96xi8>) outs(%c : memref<16x24xi32>) {
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

// Of a number of rows that is not known: blocks of 32, of 16 and of 4; single ones by dot products.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k floordiv 2, n * 2 + k mod 2)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @symbolic
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<32x16xf32>
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<16x16xf32>
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<4x16xf32>
// CHECK: llvm.x86.avx512bf16.dpbf16ps.512
func.func @symbolic(%a: memref<?x32xbf16>, %b: memref<16x32xbf16>, %c: memref<?x16xf32>) {
  // expected-remark @below {{passed: tiles of 8 x 1 vectors of 16, added up by AMX}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x32xbf16>, memref<16x32xbf16>) outs(%c : memref<?x16xf32>) {
  ^bb0(%l: bf16, %r: bf16, %out: f32):
    %x = arith.extf %l : bf16 to f32
    %y = arith.extf %r : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not: columns that do not lie in pairs are no tile.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @apart
// CHECK-NOT: amx
func.func @apart(%a: memref<16x32xbf16>, %b: memref<32x16xbf16>, %c: memref<16x16xf32>) {
  // expected-remark @below {{missed: not in AMX's tiles: its columns do not lie in groups}}
  // expected-remark @below {{passed: tiles of 16 x 1 vectors of 16}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<16x32xbf16>, memref<32x16xbf16>) outs(%c : memref<16x16xf32>) {
  ^bb0(%l: bf16, %r: bf16, %out: f32):
    %x = arith.extf %l : bf16 to f32
    %y = arith.extf %r : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Must not: three rows are sums of dot products, and so is a sum of an unknown number of steps.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k floordiv 2, n * 2 + k mod 2)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @few_rows
// CHECK-NOT: amx
func.func @few_rows(%a: memref<3x32xbf16>, %b: memref<16x32xbf16>, %c: memref<3x16xf32>) {
  // expected-remark @below {{missed: not in AMX's tiles: it has 3 rows}}
  // expected-remark @below {{passed: tiles of 3 x 1 vectors of 16}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<3x32xbf16>, memref<16x32xbf16>) outs(%c : memref<3x16xf32>) {
  ^bb0(%l: bf16, %r: bf16, %out: f32):
    %x = arith.extf %l : bf16 to f32
    %y = arith.extf %r : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// CHECK-LABEL: func.func @unknown_sum
// CHECK-NOT: amx
func.func @unknown_sum(%a: memref<16x?xbf16>, %b: memref<?x32xbf16>, %c: memref<16x16xf32>) {
  // expected-remark @below {{missed: not in AMX's tiles: its innermost sum is not known to be of whole groups of 2}}
  // expected-remark @below {{passed: tiles of 16 x 1 vectors of 16}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<16x?xbf16>, memref<?x32xbf16>) outs(%c : memref<16x16xf32>) {
  ^bb0(%l: bf16, %r: bf16, %out: f32):
    %x = arith.extf %l : bf16 to f32
    %y = arith.extf %r : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}
