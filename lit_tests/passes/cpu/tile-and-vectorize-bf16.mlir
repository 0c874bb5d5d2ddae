// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize=bf16-dots=true --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize --canonicalize --cse | FileCheck %s --check-prefix=PLAIN

// A weight in pairs of rows: one load has the pairs of 16 columns, and one number is a pair of a row of the data.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k floordiv 2, n * 2 + k mod 2)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @pairs
// CHECK-SAME: (%[[A:.*]]: memref<2x8xbf16>, %[[B:.*]]: memref<4x32xbf16>, %[[C:.*]]: memref<2x16xf32>)
// CHECK: scf.for %[[K:[a-z0-9]+]] = %c0 to %c8 step %c2 iter_args(%[[SUM:[a-z0-9]+]] =
// CHECK: %[[B16:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<4x32xbf16> to memref<4x32xi16>
// CHECK: %[[WEIGHT:.*]] = vector.load %[[B16]][%{{.*}}, %{{.*}}] : memref<4x32xi16>, vector<32xi16>
// CHECK: %[[A16:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<2x8xbf16> to memref<2x8xi16>
// CHECK: %[[PAIR:.*]] = vector.load %[[A16]][%c0, %[[K]]] : memref<2x8xi16>, vector<2xi16>
// CHECK: %[[WORD:.*]] = vector.bitcast %[[PAIR]] : vector<2xi16> to vector<1xi32>
// CHECK: %[[NUMBER:.*]] = vector.extract %[[WORD]][0]
// CHECK: %[[ALL:.*]] = vector.broadcast %[[NUMBER]] : i32 to vector<16xi32>
// CHECK: %[[LEFT:.*]] = vector.bitcast %[[WEIGHT]] : vector<32xi16> to vector<32xbf16>
// CHECK: %[[RIGHT:.*]] = vector.bitcast %[[ALL]] : vector<16xi32> to vector<32xbf16>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%[[SUM]], %[[LEFT]], %[[RIGHT]]) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
// PLAIN-LABEL: func.func @pairs
// PLAIN-NOT: llvm.call_intrinsic
// PLAIN: math.fma
func.func @pairs(%a: memref<2x8xbf16>, %b: memref<4x32xbf16>, %c: memref<2x16xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x8xbf16>, memref<4x32xbf16>) outs(%c : memref<2x16xf32>) {
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

// Rows that do not lie in pairs are joined in registers. The last one of seven is paired with zeros.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @rows
// CHECK: scf.for %{{.*}} = %c0 to %c6 step %c2
// CHECK: %[[LOW:.*]] = vector.load %{{.*}} : memref<7x16xi16>, vector<16xi16>
// CHECK: %[[HIGH:.*]] = vector.load %{{.*}} : memref<7x16xi16>, vector<16xi16>
// CHECK-DAG: %[[LOWER:.*]] = arith.extui %[[LOW]] : vector<16xi16> to vector<16xi32>
// CHECK-DAG: %[[HIGHER:.*]] = arith.extui %[[HIGH]] : vector<16xi16> to vector<16xi32>
// CHECK: %[[UP:.*]] = arith.shli %[[HIGHER]]
// CHECK: arith.ori %[[UP]], %[[LOWER]]
// CHECK: llvm.call_intrinsic
// CHECK: scf.yield
// CHECK: arith.extui %{{.*}} : vector<16xi16> to vector<16xi32>
// CHECK-NOT: arith.ori
// CHECK: llvm.call_intrinsic
func.func @rows(%a: memref<1x7xbf16>, %b: memref<7x16xbf16>, %c: memref<1x16xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<1x7xbf16>, memref<7x16xbf16>) outs(%c : memref<1x16xf32>) {
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

// Must not fire: the products are rounded to bf16 before they are added up, or one factor is no bf16.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @others
// CHECK-NOT: llvm.call_intrinsic
// CHECK: return
func.func @others(%a: memref<2x8xbf16>, %b: memref<8x16xbf16>, %f: memref<8x16xf32>, %c: memref<2x16xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x8xbf16>, memref<8x16xbf16>) outs(%c : memref<2x16xf32>) {
  ^bb0(%l: bf16, %r: bf16, %out: f32):
    %x = arith.extf %l : bf16 to f32
    %y = arith.extf %r : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %rounded = arith.truncf %product : f32 to bf16
    %wide = arith.extf %rounded : bf16 to f32
    %sum = arith.addf %out, %wide : f32
    linalg.yield %sum : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %f : memref<2x8xbf16>, memref<8x16xf32>) outs(%c : memref<2x16xf32>) {
  ^bb0(%l: bf16, %r: f32, %out: f32):
    %x = arith.extf %l : bf16 to f32
    %product = arith.mulf %x, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// The bits of f16 seen as bf16, which a vector has as integers, and back.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @seen_as_the_other
// CHECK: %[[LOADED:.*]] = vector.load %{{.*}} : memref<16xi16>, vector<16xi16>
// CHECK: arith.extui %[[LOADED]] : vector<16xi16> to vector<16xi32>
// CHECK: %[[ROUNDED:.*]] = arith.trunci %{{.*}} : vector<16xi32> to vector<16xi16>
// CHECK: %[[HALF:.*]] = arith.bitcast %[[ROUNDED]] : vector<16xi16> to vector<16xf16>
// CHECK: arith.negf %[[HALF]] : vector<16xf16>
func.func @seen_as_the_other(%x: memref<16xf16>, %y: memref<16xf16>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<16xf16>) outs(%y : memref<16xf16>) {
  ^bb0(%in: f16, %out: f16):
    %seen = arith.bitcast %in : f16 to bf16
    %wide = arith.extf %seen : bf16 to f32
    %more = arith.addf %wide, %wide : f32
    %narrow = arith.truncf %more : f32 to bf16
    %back = arith.bitcast %narrow : bf16 to f16
    %negated = arith.negf %back : f16
    linalg.yield %negated : f16
  }
  return
}

// -----

// A weight of bytes that several rows share: the floats of two rows become a word of two bf16 in registers, and the scale
// of a column is applied to its sum. The last of an odd number of terms has zeros beside it.

#a = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#s = affine_map<(m, n, k) -> (n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @bytes
// CHECK-SAME: (%[[A:.*]]: memref<3x9xbf16>, %[[W:.*]]: memref<9x16xi8>, %[[S:.*]]: memref<16xf32>, %[[C:.*]]: memref<3x16xf32>)
// CHECK: %[[SUMS:.*]]:3 = scf.for %[[K:[a-z0-9]+]] = %c0 to %c8 step %c2 iter_args(
// CHECK: %[[ROW:.*]] = vector.load %[[W]][%[[K]], %c0] : memref<9x16xi8>, vector<16xi8>
// CHECK: %[[FIRST:.*]] = arith.sitofp %[[ROW]] : vector<16xi8> to vector<16xf32>
// CHECK: %[[NEXT:.*]] = vector.load %[[W]][%{{.*}}, %c0] : memref<9x16xi8>, vector<16xi8>
// CHECK: %[[SECOND:.*]] = arith.sitofp %[[NEXT]] : vector<16xi8> to vector<16xf32>
// CHECK: %[[LOW:.*]] = vector.bitcast %[[FIRST]] : vector<16xf32> to vector<16xi32>
// CHECK: %[[HIGH:.*]] = vector.bitcast %[[SECOND]] : vector<16xf32> to vector<16xi32>
// CHECK: %[[MOVED:.*]] = arith.shrui %[[LOW]], %{{.*}} : vector<16xi32>
// CHECK: arith.ori %[[MOVED]], %[[HIGH]] : vector<16xi32>
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK: scf.yield
// CHECK: %[[LAST:.*]] = vector.load %[[W]][%c8, %c0]
// CHECK: arith.shrui
// CHECK-NOT: arith.ori
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK: %[[SCALE:.*]] = vector.load %[[S]][%c0]
// CHECK-COUNT-3: math.fma %{{.*}}, %[[SCALE]], %{{.*}}
// PLAIN-LABEL: func.func @bytes
// PLAIN-NOT: call_intrinsic
func.func @bytes(%x: memref<3x9xbf16>, %w: memref<9x16xi8>, %s: memref<16xf32>, %y: memref<3x16xf32>) {
  linalg.generic {indexing_maps = [#a, #w, #s, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w, %s : memref<3x9xbf16>, memref<9x16xi8>, memref<16xf32>) outs(%y : memref<3x16xf32>) {
  ^bb0(%a: bf16, %q: i8, %c: f32, %o: f32):
    %e = arith.extf %a : bf16 to f32
    %f = arith.sitofp %q : i8 to f32
    %g = arith.mulf %f, %c : f32
    %h = arith.mulf %e, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}

// -----

// Must not fire: two rows alone, whose products take less time than what makes words of bytes; what bf16 has not exactly, as integers
// up to 328.

#a = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @not_in_words
// CHECK-NOT: call_intrinsic
// PLAIN-LABEL: func.func @not_in_words
func.func @not_in_words(%few: memref<2x8xbf16>, %x: memref<3x8xbf16>, %w: memref<8x16xi8>, %y: memref<2x16xf32>, %z: memref<3x16xf32>) {
  %third = arith.constant 0.3 : f32
  %far = arith.constant 200.0 : f32
  linalg.generic {indexing_maps = [#a, #w, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%few, %w : memref<2x8xbf16>, memref<8x16xi8>) outs(%y : memref<2x16xf32>) {
  ^bb0(%a: bf16, %q: i8, %o: f32):
    %e = arith.extf %a : bf16 to f32
    %f = arith.sitofp %q : i8 to f32
    %h = arith.mulf %e, %f : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  linalg.generic {indexing_maps = [#a, #w, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<3x8xbf16>, memref<8x16xi8>) outs(%z : memref<3x16xf32>) {
  ^bb0(%a: bf16, %q: i8, %o: f32):
    %e = arith.extf %a : bf16 to f32
    %f = arith.sitofp %q : i8 to f32
    %g = arith.subf %f, %third : f32
    %h = arith.mulf %e, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  linalg.generic {indexing_maps = [#a, #w, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<3x8xbf16>, memref<8x16xi8>) outs(%z : memref<3x16xf32>) {
  ^bb0(%a: bf16, %q: i8, %o: f32):
    %e = arith.extf %a : bf16 to f32
    %f = arith.sitofp %q : i8 to f32
    %g = arith.subf %f, %far : f32
    %h = arith.mulf %e, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}

// -----

// One row of a factor that is rounded to bf16 as it is dequantized: there is an instruction for that.

#a = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#s = affine_map<(m, n, k) -> (n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @rounded
// CHECK: %[[Q:.*]] = arith.sitofp %{{.*}} : vector<16xi8> to vector<16xf32>
// CHECK: %[[W:.*]] = arith.mulf %[[Q]], %{{.*}} : vector<16xf32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%[[W]]) : (vector<16xf32>) -> vector<16xbf16>
// CHECK: math.fma
// PLAIN-LABEL: func.func @rounded
// PLAIN-NOT: call_intrinsic
func.func @rounded(%x: memref<1x8xf32>, %w: memref<8x16xi8>, %s: memref<16xf32>, %y: memref<1x16xf32>) {
  linalg.generic {indexing_maps = [#a, #w, #s, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w, %s : memref<1x8xf32>, memref<8x16xi8>, memref<16xf32>) outs(%y : memref<1x16xf32>) {
  ^bb0(%a: f32, %q: i8, %c: f32, %o: f32):
    %f = arith.sitofp %q : i8 to f32
    %g = arith.mulf %f, %c : f32
    %r = arith.truncf %g : f32 to bf16
    %e = arith.extf %r : bf16 to f32
    %h = arith.mulf %a, %e : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}

// -----

// Beside data in bf16, one row of such a factor is added up two terms at a time; both are rounded by one instruction.

#a = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#s = affine_map<(m, n, k) -> (n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @rounded_pairs
// CHECK: %[[W0:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: %[[W1:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: %[[BOTH:.*]] = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"(%[[W1]], %[[W0]]) : (vector<16xf32>, vector<16xf32>) -> vector<32xbf16>
// CHECK: vector.shuffle %[[BOTH]], %{{.*}} [0, 16, 1, 17, {{.*}}, 15, 31] : vector<32xbf16>, vector<32xbf16>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-NOT: math.fma
// The last term has no second one.
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// PLAIN-LABEL: func.func @rounded_pairs
// PLAIN-NOT: call_intrinsic
func.func @rounded_pairs(%x: memref<1x9xbf16>, %w: memref<9x16xi8>, %s: memref<16xf32>, %y: memref<1x16xf32>) {
  linalg.generic {indexing_maps = [#a, #w, #s, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w, %s : memref<1x9xbf16>, memref<9x16xi8>, memref<16xf32>) outs(%y : memref<1x16xf32>) {
  ^bb0(%a: bf16, %q: i8, %c: f32, %o: f32):
    %b = arith.extf %a : bf16 to f32
    %f = arith.sitofp %q : i8 to f32
    %g = arith.mulf %f, %c : f32
    %r = arith.truncf %g : f32 to bf16
    %e = arith.extf %r : bf16 to f32
    %h = arith.mulf %b, %e : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}

// -----

// Must not: bytes alone are multiplied in f32 in fewer instructions than they would be made bf16.

#a = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @one_row_of_bytes
// CHECK-NOT: call_intrinsic
// CHECK: math.fma
// CHECK-NOT: call_intrinsic
// CHECK: return
func.func @one_row_of_bytes(%x: memref<1x8xbf16>, %w: memref<8x16xi8>, %y: memref<1x16xf32>) {
  linalg.generic {indexing_maps = [#a, #w, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<1x8xbf16>, memref<8x16xi8>) outs(%y : memref<1x16xf32>) {
  ^bb0(%a: bf16, %q: i8, %o: f32):
    %b = arith.extf %a : bf16 to f32
    %f = arith.sitofp %q : i8 to f32
    %h = arith.mulf %b, %f : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  }
  return
}
