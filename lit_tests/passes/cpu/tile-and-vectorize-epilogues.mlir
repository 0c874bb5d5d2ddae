// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --remarks-filter=tile-and-vectorize --verify-diagnostics

// A product, its bias and an exp: the accumulators start from a number instead of a fill, the epilogue runs on them, and
// the buffer between the two is gone.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @bias_exp
// CHECK-SAME: (%[[A:.*]]: memref<5x7xf32>, %[[B:.*]]: memref<7x8xf32>, %[[BIAS:.*]]: memref<8xf32>, %[[OUT:.*]]: memref<5x8xf32>)
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK-NOT: linalg.fill
// CHECK-NOT: vector.store
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]]
// CHECK: scf.yield
// CHECK: vector.load %[[BIAS]]
// CHECK: arith.addf
// CHECK: math.exp
// CHECK: vector.store %{{.*}}, %[[OUT]]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @bias_exp(%a: memref<5x7xf32>, %b: memref<7x8xf32>, %bias: memref<8xf32>, %out: memref<5x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %between = memref.alloc() : memref<5x8xf32>
  linalg.fill ins(%zero : f32) outs(%between : memref<5x8xf32>)
  // expected-remark @below {{passed: tiles of 5 x 2 vectors of 4 with 1 epilogues}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<5x7xf32>, memref<7x8xf32>) outs(%between : memref<5x8xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%between, %bias : memref<5x8xf32>, memref<8xf32>) outs(%out : memref<5x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %e = math.exp %s : f32
    linalg.yield %e : f32
  }
  memref.dealloc %between : memref<5x8xf32>
  return
}

// -----

// A buffer that is read elsewhere, here an argument, is written as well.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @second_result
// CHECK-SAME: (%[[A:.*]]: memref<4x4xf32>, %[[FIRST:.*]]: memref<4x4xf32>, %[[SECOND:.*]]: memref<4x4xf32>)
// CHECK-NOT: linalg.fill
// CHECK-DAG: vector.store %{{.*}}, %[[FIRST]]
// CHECK-DAG: vector.store %{{.*}}, %[[SECOND]]
// CHECK-NOT: linalg.generic
func.func @second_result(%a: memref<4x4xf32>, %first: memref<4x4xf32>, %second: memref<4x4xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%first : memref<4x4xf32>)
  // expected-remark @below {{with 1 epilogues}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%first : memref<4x4xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%first : memref<4x4xf32>) outs(%second : memref<4x4xf32>) {
  ^bb0(%x: f32, %o: f32):
    %e = math.exp %x : f32
    linalg.yield %e : f32
  }
  return
}

// -----

// Must not fire: the output of the second op is what the product reads; another tile would find it overwritten.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @writes_an_input
// CHECK-SAME: (%[[A:.*]]: memref<8x8xf32>, %[[P:.*]]: memref<8x8xf32>)
// CHECK: vector.store %{{.*}}, %[[P]]
// CHECK-NOT: math.exp
// CHECK: scf.for
// CHECK: vector.load %[[P]]
// CHECK: math.exp
// CHECK: vector.store %{{.*}}, %[[A]]
func.func @writes_an_input(%a: memref<8x8xf32>, %p: memref<8x8xf32>) {
  // expected-remark @below {{passed: tiles of 4 x 2 vectors of 4}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%p : memref<8x8xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }
  // expected-remark @below {{passed: tiles}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : memref<8x8xf32>) outs(%a : memref<8x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %e = math.exp %x : f32
    linalg.yield %e : f32
  }
  return
}

// -----

// Must not fire: a copy between the two may touch the buffer.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @copy_between
// CHECK: vector.store
// CHECK: memref.copy
// CHECK: math.exp
func.func @copy_between(%a: memref<8x8xf32>, %p: memref<8x8xf32>, %q: memref<8x8xf32>) {
  // expected-remark @below {{passed: tiles of 4 x 2 vectors of 4}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%p : memref<8x8xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }
  memref.copy %a, %p : memref<8x8xf32> to memref<8x8xf32>
  // expected-remark @below {{passed: tiles}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : memref<8x8xf32>) outs(%q : memref<8x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %e = math.exp %x : f32
    linalg.yield %e : f32
  }
  return
}

// -----

// Must not fire: an op that reads the product as it is and transposed, and one with another loop.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>
#inner = affine_map<(d0, d1, d2) -> (d1, d2)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// CHECK-LABEL: func.func @other_loops
// CHECK: math.fma
// CHECK: vector.store
// CHECK: math.exp
// CHECK-LABEL: func.func @two_ways
// CHECK: math.fma
// CHECK: vector.store
// CHECK: math.exp
func.func @other_loops(%a: memref<8x8xf32>, %p: memref<8x8xf32>, %q: memref<3x8x8xf32>) {
  // expected-remark @below {{passed: tiles of 4 x 2 vectors of 4 [}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%p : memref<8x8xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }
  // expected-remark @below {{passed: tiles}}
  linalg.generic {indexing_maps = [#inner, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p : memref<8x8xf32>) outs(%q : memref<3x8x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %e = math.exp %x : f32
    linalg.yield %e : f32
  }
  return
}
func.func @two_ways(%a: memref<8x8xf32>, %p: memref<8x8xf32>, %q: memref<8x8xf32>) {
  // expected-remark @below {{passed: tiles of 4 x 2 vectors of 4 [}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%p : memref<8x8xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }
  // expected-remark @below {{tile}}
  linalg.generic {indexing_maps = [#id, #t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %p : memref<8x8xf32>, memref<8x8xf32>) outs(%q : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %e = math.exp %s : f32
    linalg.yield %e : f32
  }
  return
}

// -----

// Must not fire for the fill: something reads the buffer between the fill and the product, so it has to be there.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @fill_is_read
// CHECK: linalg.fill
// CHECK-NEXT: memref.copy
// CHECK: vector.load
func.func @fill_is_read(%a: memref<8x8xf32>, %p: memref<8x8xf32>, %q: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%p : memref<8x8xf32>)
  memref.copy %p, %q : memref<8x8xf32> to memref<8x8xf32>
  // expected-remark @below {{passed: tiles}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%p : memref<8x8xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }
  return
}
