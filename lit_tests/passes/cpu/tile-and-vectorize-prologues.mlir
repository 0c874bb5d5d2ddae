// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --remarks-filter=tile-and-vectorize --verify-diagnostics

// The exponentials of a row and their sum in one loop; they are stored, for something else reads them.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @exp_and_sum
// CHECK-SAME: (%[[X:.*]]: memref<2x64xf32>, %[[E:.*]]: memref<2x64xf32>, %[[S:.*]]: memref<2xf32>)
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: scf.for %[[J:[a-z0-9]+]] = {{.*}} iter_args
// CHECK: vector.load %[[X]][%[[I]], %[[J]]]
// CHECK: math.exp
// CHECK: vector.store %{{.*}}, %[[E]][%[[I]], %[[J]]]
// CHECK-NOT: vector.load %[[E]]
// CHECK: arith.addf
// CHECK: scf.yield
// CHECK: vector.reduction <add>
// CHECK: memref.store %{{.*}}, %[[S]][%[[I]]]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @exp_and_sum(%x: memref<2x64xf32>, %e: memref<2x64xf32>, %s: memref<2xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<2x64xf32>) outs(%e : memref<2x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  }
  linalg.fill ins(%zero : f32) outs(%s : memref<2xf32>)
  // expected-remark @below {{passed: tiles of 1 x 4 vectors of 4 with 1 prologues}}
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : memref<2x64xf32>) outs(%s : memref<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// Two prologues, one of which reads what the other computes; what only they read is not stored. The end is masked.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: memref<2x7xf32>, %[[S:.*]]: memref<2xf32>)
// CHECK-NOT: vector.store
// CHECK-NOT: memref.alloc
// CHECK: vector.maskedload %[[X]]
// CHECK-NEXT: arith.negf
// CHECK-NEXT: math.exp
// CHECK-NOT: vector.store
// CHECK: return
func.func @chain(%x: memref<2x7xf32>, %s: memref<2xf32>) {
  %n = memref.alloc() : memref<2x7xf32>
  %e = memref.alloc() : memref<2x7xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<2x7xf32>) outs(%n : memref<2x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%n : memref<2x7xf32>) outs(%e : memref<2x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  }
  // expected-remark @below {{passed: tiles of 1 x 2 vectors of 4 with 2 prologues}}
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : memref<2x7xf32>) outs(%s : memref<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  }
  memref.dealloc %n : memref<2x7xf32>
  memref.dealloc %e : memref<2x7xf32>
  return
}

// -----

// Must not fire: the reduction reads other elements, too, which have to be there before.

#id = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0, d1) -> (d0, 0)>
#row = affine_map<(d0, d1) -> (d0)>

func.func @other_elements(%x: memref<8x8xf32>, %e: memref<8x8xf32>, %s: memref<8xf32>) {
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%e : memref<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  }
  // expected-remark @below {{passed: tiles of 1 x 2 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #first, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e, %e : memref<8x8xf32>, memref<8x8xf32>) outs(%s : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %v = arith.addf %p, %o : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// Must not fire: the op before reads the sums that the reduction overwrites.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

func.func @overwritten(%x: memref<2x64xf32>, %e: memref<2x64xf32>, %s: memref<2xf32>) {
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<2x64xf32>, memref<2xf32>) outs(%e : memref<2x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  }
  // expected-remark @below {{passed: tiles of 1 x 4 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : memref<2x64xf32>) outs(%s : memref<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// Must not fire: it would be computed once for each row.

#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

func.func @again(%x: memref<64xf32>, %y: memref<2x64xf32>, %e: memref<64xf32>, %s: memref<2xf32>) {
  // expected-remark @below {{passed: tiles of 1 x 1 vectors of 4}}
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : memref<64xf32>) outs(%e : memref<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  }
  // expected-remark @below {{passed: tiles of 1 x 4 vectors of 4}}
  linalg.generic {indexing_maps = [#id, #column, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y, %e : memref<2x64xf32>, memref<64xf32>) outs(%s : memref<2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %v = arith.addf %p, %o : f32
    linalg.yield %v : f32
  }
  return
}
