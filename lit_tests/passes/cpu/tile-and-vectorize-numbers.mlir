// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize="vector-bytes=16 registers=16" --canonicalize --cse | FileCheck %s

// A number for each row is loaded once for it, in front of the loop along vectors, and used for the masked rest, too.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#kept = affine_map<(d0, d1) -> (d0, 0)>

// CHECK-LABEL: func.func @scaled_rows
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<3x18xf32>, %[[S:[a-z0-9]+]]: memref<3x1xf32>
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK-NEXT: %[[N:.*]] = memref.load %[[S]][%[[I]], %c0]
// CHECK-NEXT: scf.for %[[J:[a-z0-9]+]] =
// CHECK-NEXT: vector.load %[[X]][%[[I]], %[[J]]]
// CHECK-NEXT: vector.broadcast %[[N]]
// CHECK: vector.maskedload %[[X]]
// CHECK-NEXT: vector.broadcast %[[N]]
// CHECK-NOT: memref.load
// CHECK: return
func.func @scaled_rows(%x: memref<3x18xf32>, %s: memref<3x1xf32>, %y: memref<3x18xf32>) {
  linalg.generic {indexing_maps = [#id, #kept, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<3x18xf32>, memref<3x1xf32>) outs(%y : memref<3x18xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// So is what the ops before a sum along rows read.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @shifted_sums
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<3x38xf32>, %[[M:[a-z0-9]+]]: memref<3xf32>
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: memref.load %[[M]][%[[I]]]
// CHECK: scf.for %[[J:[a-z0-9]+]] =
// CHECK: vector.load %[[X]][%[[I]], %[[J]]]
// CHECK-NOT: memref.load
// CHECK: vector.maskedload %[[X]]
// CHECK-NOT: memref.load
// CHECK: vector.reduction <add>
func.func @shifted_sums(%x: memref<3x38xf32>, %m: memref<3xf32>, %e: memref<3x38xf32>, %s: memref<3xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : memref<3x38xf32>, memref<3xf32>) outs(%e : memref<3x38xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  }
  linalg.fill ins(%zero : f32) outs(%s : memref<3xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : memref<3x38xf32>) outs(%s : memref<3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// Must not fire: the factors of a product are other numbers in each step of its sum.

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[A:[a-z0-9]+]]: memref<1x5xf32>
// CHECK-NOT: memref.load
// CHECK: scf.for %[[K:[a-z0-9]+]] = %c0 to %c5 step %c1
// CHECK: memref.load %[[A]][%{{.*}}, %[[K]]]
func.func @product(%a: memref<1x5xf32>, %b: memref<5x8xf32>, %c: memref<1x8xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<1x5xf32>, memref<5x8xf32>) outs(%c : memref<1x8xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  }
  return
}
