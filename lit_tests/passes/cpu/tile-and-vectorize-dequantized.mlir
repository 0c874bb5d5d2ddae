// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize --canonicalize --cse | FileCheck %s

// The scale of a group is applied to its sum, not to each of its terms.

#x = affine_map<(m, n, g, k) -> (m, g, k)>
#w = affine_map<(m, n, g, k) -> (g, k, n)>
#s = affine_map<(m, n, g, k) -> (g, n)>
#y = affine_map<(m, n, g, k) -> (m, n)>

// CHECK-LABEL: func.func @groups
// CHECK-SAME: (%[[X:.*]]: memref<1x3x8xf32>, %[[W:.*]]: memref<3x8x16xi8>, %[[S:.*]]: memref<3x16xf32>, %[[Y:.*]]: memref<1x16xf32>)
// CHECK: %[[ALL:.*]] = scf.for %[[G:[a-z0-9]+]] = %c0 to %c3 step %c1 iter_args(%[[TOTAL:[a-z0-9]+]] =
// CHECK: %[[SUM:.*]] = scf.for %[[K:[a-z0-9]+]] = %c0 to %c8 step %c1 iter_args(%[[PART:[a-z0-9]+]] =
// CHECK-NOT: arith.mulf
// CHECK: memref.prefetch %[[W]]
// CHECK: %[[Q:.*]] = arith.sitofp %{{.*}} : vector<16xi8> to vector<16xf32>
// CHECK: math.fma %{{.*}}, %[[Q]], %[[PART]]
// CHECK: %[[SCALE:.*]] = vector.load %[[S]][%[[G]], %c0]
// CHECK: math.fma %[[SUM]], %[[SCALE]], %[[TOTAL]]
func.func @groups(%x: memref<1x3x8xf32>, %w: memref<3x8x16xi8>, %s: memref<3x16xf32>, %y: memref<1x16xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #s, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %s : memref<1x3x8xf32>, memref<3x8x16xi8>, memref<3x16xf32>) outs(%y : memref<1x16xf32>) {
  ^bb0(%a: f32, %q: i8, %c: f32, %o: f32):
    %f = arith.sitofp %q : i8 to f32
    %g = arith.mulf %f, %c : f32
    %h = arith.mulf %a, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}

// -----

// Data is summed up beside the products for what is taken away from the weights. Rows that share these prefetch nothing.

#x = affine_map<(m, n, g, k) -> (m, g, k)>
#w = affine_map<(m, n, g, k) -> (g, k, n)>
#s = affine_map<(m, n, g, k) -> (g, n)>
#y = affine_map<(m, n, g, k) -> (m, n)>

// CHECK-LABEL: func.func @zeros
// CHECK-NOT: memref.prefetch
// CHECK: %[[SUMS:.*]]:4 = scf.for %{{[a-z0-9]+}} = %c0 to %c8
// CHECK-NOT: arith.subf
// CHECK: %[[SHIFT:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: %[[TAKEN:.*]] = math.fma %[[SUMS]]#2, %[[SHIFT]]
// CHECK: math.fma %[[SUMS]]#0, %{{.*}}, %[[TAKEN]]
func.func @zeros(%x: memref<2x3x8xf32>, %w: memref<3x8x16xi8>, %z: memref<3x16xf32>, %s: memref<3x16xf32>, %y: memref<2x16xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #s, #s, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %z, %s : memref<2x3x8xf32>, memref<3x8x16xi8>, memref<3x16xf32>, memref<3x16xf32>) outs(%y : memref<2x16xf32>) {
  ^bb0(%a: f32, %q: i8, %zero: f32, %c: f32, %o: f32):
    %f = arith.sitofp %q : i8 to f32
    %d = arith.subf %f, %zero : f32
    %g = arith.mulf %d, %c : f32
    %h = arith.mulf %a, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}

// -----

// Must not: a scale of its own for each term.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#s = affine_map<(m, n, k) -> (k)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @terms
// CHECK: scf.for
// CHECK: %[[FACTOR:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: math.fma %{{.*}}, %[[FACTOR]], %{{.*}}
func.func @terms(%x: memref<2x8xf32>, %w: memref<8x16xi8>, %s: memref<8xf32>, %y: memref<2x16xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #s, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w, %s : memref<2x8xf32>, memref<8x16xi8>, memref<8xf32>) outs(%y : memref<2x16xf32>) {
  ^bb0(%a: f32, %q: i8, %c: f32, %o: f32):
    %f = arith.sitofp %q : i8 to f32
    %g = arith.mulf %f, %c : f32
    %h = arith.mulf %a, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}

// -----

// Numbers of four bits in words of eight: each vector of words is loaded once, and its numbers are looked up.

#x = affine_map<(m, n, k, h) -> (m, k, h)>
#w = affine_map<(m, n, k, h) -> (k floordiv 4, n * 4 + k mod 4)>
#y = affine_map<(m, n, k, h) -> (m, n)>

// CHECK-LABEL: func.func @words
// CHECK-SAME: (%[[X:.*]]: memref<1x8x2xf32>, %[[W:.*]]: memref<2x64xi8>, %{{.*}})
// CHECK: %[[TABLE:.*]] = arith.constant dense<[-8.000000e+00, -7.000000e+00, {{.*}} : vector<16xf32>
// CHECK: scf.for %[[K:[a-z0-9]+]] = %c0 to %c8 step %c4
// CHECK: %[[BYTES:.*]] = vector.load %[[W]][%{{.*}}, %{{.*}}] : memref<2x64xi8>, vector<64xi8>
// CHECK: %[[WORDS:.*]] = vector.bitcast %[[BYTES]] : vector<64xi8> to vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"(%[[TABLE]], %[[WORDS]])
// CHECK: %[[NEXT:.*]] = arith.shrui %[[WORDS]], %{{.*}} : vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"(%[[TABLE]], %[[NEXT]])
// CHECK-NOT: vector.load %[[W]]
// CHECK: return
func.func @words(%x: memref<1x8x2xf32>, %w: memref<2x64xi8>, %y: memref<1x16xf32>) {
  %bits = arith.constant 4 : i8
  %mask = arith.constant 15 : i8
  %eight = arith.constant 8 : i8
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<1x8x2xf32>, memref<2x64xi8>) outs(%y : memref<1x16xf32>) {
  ^bb0(%a: f32, %b: i8, %o: f32):
    %i = linalg.index 3 : index
    %c = arith.index_castui %i : index to i8
    %s = arith.muli %c, %bits : i8
    %t = arith.shrui %b, %s : i8
    %u = arith.andi %t, %mask : i8
    %q = arith.subi %u, %eight : i8
    %f = arith.sitofp %q : i8 to f32
    %h = arith.mulf %a, %f : f32
    %r = arith.addf %o, %h : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// Whatever follows: what of it is computed from the numbers alone is in the table, here integers.

#x = affine_map<(m, n, k, h) -> (m, k, h)>
#w = affine_map<(m, n, k, h) -> (k floordiv 4, n * 4 + k mod 4)>
#z = affine_map<(m, n, k, h) -> (n)>
#y = affine_map<(m, n, k, h) -> (m, n)>

// CHECK-LABEL: func.func @words_of_integers
// CHECK: %[[TABLE:.*]] = arith.constant dense<[0, 1, 2, 3, {{.*}}, 15]> : vector<16xi32>
// CHECK: %[[WORDS:.*]] = vector.bitcast %{{.*}} : vector<64xi8> to vector<16xi32>
// CHECK: %[[Q:.*]] = llvm.call_intrinsic "llvm.x86.avx512.permvar.si.512"(%[[TABLE]], %[[WORDS]]) : (vector<16xi32>, vector<16xi32>) -> vector<16xi32>
// CHECK: %[[D:.*]] = arith.subi %[[Q]], %{{.*}} : vector<16xi32>
// CHECK: arith.sitofp %[[D]] : vector<16xi32> to vector<16xf32>
func.func @words_of_integers(%x: memref<1x8x2xf32>, %w: memref<2x64xi8>, %z: memref<16xi32>, %y: memref<1x16xf32>) {
  %bits = arith.constant 4 : i8
  %mask = arith.constant 15 : i8
  %third = arith.constant 0.3 : f32
  linalg.generic {indexing_maps = [#x, #w, #z, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %z : memref<1x8x2xf32>, memref<2x64xi8>, memref<16xi32>) outs(%y : memref<1x16xf32>) {
  ^bb0(%a: f32, %b: i8, %p: i32, %o: f32):
    %i = linalg.index 3 : index
    %c = arith.index_castui %i : index to i8
    %s = arith.muli %c, %bits : i8
    %t = arith.shrui %b, %s : i8
    %u = arith.andi %t, %mask : i8
    %e = arith.extsi %u : i8 to i32
    %q = arith.subi %e, %p : i32
    %f = arith.sitofp %q : i32 to f32
    %g = arith.mulf %f, %third : f32
    %j = arith.truncf %g : f32 to f16
    %k = arith.extf %j : f16 to f32
    %h = arith.mulf %a, %k : f32
    %r = arith.addf %o, %h : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// Must not: a number that is read in two places, of which no one value is all that is computed from it alone.

#x = affine_map<(m, n, k, h) -> (m, k, h)>
#w = affine_map<(m, n, k, h) -> (k floordiv 4, n * 4 + k mod 4)>
#z = affine_map<(m, n, k, h) -> (n)>
#y = affine_map<(m, n, k, h) -> (m, n)>

// CHECK-LABEL: func.func @words_read_twice
// CHECK-NOT: permvar
// CHECK: arith.andi %{{.*}}, %{{.*}} : vector<16xi8>
// CHECK-NOT: permvar
// CHECK: return
func.func @words_read_twice(%x: memref<1x8x2xf32>, %w: memref<2x64xi8>, %z: memref<16xf32>, %y: memref<1x16xf32>) {
  %bits = arith.constant 4 : i8
  %mask = arith.constant 15 : i8
  linalg.generic {indexing_maps = [#x, #w, #z, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %z : memref<1x8x2xf32>, memref<2x64xi8>, memref<16xf32>) outs(%y : memref<1x16xf32>) {
  ^bb0(%a: f32, %b: i8, %p: f32, %o: f32):
    %i = linalg.index 3 : index
    %c = arith.index_castui %i : index to i8
    %s = arith.muli %c, %bits : i8
    %t = arith.shrui %b, %s : i8
    %u = arith.andi %t, %mask : i8
    %f = arith.uitofp %u : i8 to f32
    %l = arith.subf %f, %p : f32
    %m = arith.addf %f, %p : f32
    %g = arith.mulf %l, %m : f32
    %h = arith.mulf %a, %g : f32
    %r = arith.addf %o, %h : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// Bytes that are no words: each is loaded once, for both of its halves.

#x = affine_map<(m, n, k, h) -> (m, k, h)>
#w = affine_map<(m, n, k, h) -> (k, n)>
#y = affine_map<(m, n, k, h) -> (m, n)>

// CHECK-LABEL: func.func @halves
// CHECK-SAME: (%[[X:.*]]: memref<1x8x2xf32>, %[[W:.*]]: memref<8x16xi8>, %{{.*}})
// CHECK: scf.for %[[K:[a-z0-9]+]] = %c0 to %c8 step %c1
// CHECK: %[[BYTES:.*]] = vector.load %[[W]][%[[K]], %c0] : memref<8x16xi8>, vector<16xi8>
// CHECK: arith.andi %[[BYTES]], %{{.*}} : vector<16xi8>
// CHECK: arith.shrui %[[BYTES]], %{{.*}} : vector<16xi8>
// CHECK-NOT: vector.load %[[W]]
// CHECK: return
func.func @halves(%x: memref<1x8x2xf32>, %w: memref<8x16xi8>, %y: memref<1x16xf32>) {
  %bits = arith.constant 4 : i8
  %mask = arith.constant 15 : i8
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<1x8x2xf32>, memref<8x16xi8>) outs(%y : memref<1x16xf32>) {
  ^bb0(%a: f32, %b: i8, %o: f32):
    %i = linalg.index 3 : index
    %c = arith.index_castui %i : index to i8
    %s = arith.muli %c, %bits : i8
    %t = arith.shrui %b, %s : i8
    %u = arith.andi %t, %mask : i8
    %f = arith.uitofp %u : i8 to f32
    %h = arith.mulf %a, %f : f32
    %r = arith.addf %o, %h : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// Many rows share a weight: its floats are put into a panel, once for the tiles of all rows, which follow each other.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#s = affine_map<(m, n, k) -> (n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @many_rows
// CHECK-SAME: (%[[X:.*]]: memref<40x8xf32>, %[[W:.*]]: memref<8x256xi8>, %[[S:.*]]: memref<256xf32>, %[[Y:.*]]: memref<40x256xf32>)
// CHECK: scf.for %[[N:[a-z0-9]+]] = %c0 to %c256 step %c32
// CHECK: %[[PANEL:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x32xf32>
// CHECK: scf.for %[[K:[a-z0-9]+]] = %c0 to %c8 step %c1
// CHECK: vector.load %[[W]][%[[K]], %[[N]]]
// CHECK: arith.sitofp
// CHECK: vector.store %{{.*}}, %[[PANEL]][%[[K]], %c0]
// CHECK: vector.store %{{.*}}, %[[PANEL]][%[[K]], %c16]
// CHECK: scf.for %[[M:[a-z0-9]+]] = %c0 to
// CHECK-NOT: sitofp
// CHECK: vector.load %[[PANEL]]
// CHECK: math.fma
// CHECK: vector.load %[[S]]
// CHECK: memref.dealloc %[[PANEL]]
func.func @many_rows(%x: memref<40x8xf32>, %w: memref<8x256xi8>, %s: memref<256xf32>, %y: memref<40x256xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #s, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w, %s : memref<40x8xf32>, memref<8x256xi8>, memref<256xf32>) outs(%y : memref<40x256xf32>) {
  ^bb0(%a: f32, %q: i8, %c: f32, %o: f32):
    %f = arith.sitofp %q : i8 to f32
    %g = arith.mulf %f, %c : f32
    %h = arith.mulf %a, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}

// -----

// So are factors that are rounded to 16 bits and have no scale beside that.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @many_rows_of_f16
// CHECK: %[[PANEL:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x32xf32>
// CHECK: arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
// CHECK: vector.store %{{.*}}, %[[PANEL]]
// CHECK: scf.for %{{[a-z0-9]+}} = %c0 to
// CHECK-NOT: truncf
// CHECK: math.fma
// CHECK: memref.dealloc %[[PANEL]]
func.func @many_rows_of_f16(%x: memref<40x8xf32>, %w: memref<8x256xi8>, %y: memref<40x256xf32>) {
  %third = arith.constant 0.3 : f32
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<40x8xf32>, memref<8x256xi8>) outs(%y : memref<40x256xf32>) {
  ^bb0(%a: f32, %q: i8, %o: f32):
    %f = arith.sitofp %q : i8 to f32
    %g = arith.mulf %f, %third : f32
    %t = arith.truncf %g : f32 to f16
    %e = arith.extf %t : f16 to f32
    %h = arith.mulf %a, %e : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}

// -----

// Where it is not known how many rows there are, the panel is filled if they fill more than a tile.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#s = affine_map<(m, n, k) -> (n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @unknown_rows
// CHECK: %[[MANY:.*]] = arith.cmpi uge, %{{.*}}, %{{.*}} : index
// CHECK: scf.if %[[MANY]] {
// CHECK: memref.alloc
// CHECK: memref.dealloc
// CHECK: } else {
// CHECK-NOT: memref.alloc
// CHECK: sitofp
func.func @unknown_rows(%x: memref<?x8xf32>, %w: memref<8x256xi8>, %s: memref<256xf32>, %y: memref<?x256xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #s, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w, %s : memref<?x8xf32>, memref<8x256xi8>, memref<256xf32>) outs(%y : memref<?x256xf32>) {
  ^bb0(%a: f32, %q: i8, %c: f32, %o: f32):
    %f = arith.sitofp %q : i8 to f32
    %g = arith.mulf %f, %c : f32
    %h = arith.mulf %a, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}
