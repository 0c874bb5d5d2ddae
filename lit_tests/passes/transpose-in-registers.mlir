// RUN: pipeline-opt %s --split-input-file --transpose-in-registers="vector-bytes=16" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --transpose-in-registers="vector-bytes=16" --remarks-filter=transpose-in-registers --verify-diagnostics

// Tiles of 4 x 4: four rows are read, eight shuffles turn them, four columns are written. 10 and 15 are no multiples of
// 4: what is left is copied element by element, at the end of each band and below the last one.

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @edges
// CHECK-SAME: (%[[X:.*]]: memref<10x15xf32>, %[[Y:.*]]: memref<15x10xf32>)
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C10:.*]] = arith.constant 10 : index
// CHECK-DAG: %[[C12:.*]] = arith.constant 12 : index
// CHECK-DAG: %[[C15:.*]] = arith.constant 15 : index
// CHECK: scf.for %[[COLUMN:.*]] = %{{.*}} to %[[C12]] step %[[C4]]
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %[[C8]] step %[[C4]]
// CHECK: %[[R0:.*]] = vector.load %[[X]][%[[ROW]], %[[COLUMN]]] : memref<10x15xf32>, vector<4xf32>
// CHECK: %[[R1:.*]] = vector.load %[[X]]
// CHECK: %[[R2:.*]] = vector.load %[[X]]
// CHECK: %[[R3:.*]] = vector.load %[[X]]
// CHECK: %[[A:.*]] = vector.shuffle %[[R0]], %[[R1]] [0, 4, 2, 6]
// CHECK: %[[B:.*]] = vector.shuffle %[[R0]], %[[R1]] [1, 5, 3, 7]
// CHECK: %[[C:.*]] = vector.shuffle %[[R2]], %[[R3]] [0, 4, 2, 6]
// CHECK: %[[D:.*]] = vector.shuffle %[[R2]], %[[R3]] [1, 5, 3, 7]
// CHECK: %[[C0:.*]] = vector.shuffle %[[A]], %[[C]] [0, 1, 4, 5]
// CHECK: vector.shuffle %[[A]], %[[C]] [2, 3, 6, 7]
// CHECK: vector.shuffle %[[B]], %[[D]] [0, 1, 4, 5]
// CHECK: vector.shuffle %[[B]], %[[D]] [2, 3, 6, 7]
// CHECK: vector.store %[[C0]], %[[Y]][%[[COLUMN]], %[[ROW]]] : memref<15x10xf32>, vector<4xf32>
// CHECK-COUNT-3: vector.store
// CHECK: scf.for %{{.*}} = %[[C8]] to %[[C10]]
// CHECK: memref.load %[[X]]
// CHECK: memref.store
// CHECK: scf.for %{{.*}} = %[[C12]] to %[[C15]]
// CHECK: memref.load %[[X]]
// CHECK: memref.store
// CHECK-NOT: linalg.generic
func.func @edges(%x: memref<10x15xf32>, %y: memref<15x10xf32>) {
  // expected-remark @below {{passed: transposed in tiles of 4 x 4}}
  linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<10x15xf32>) outs(%y : memref<15x10xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// Other dimensions are loops around it, sizes may be known at run time only; 64-bit elements have tiles of 2 x 2.

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#p = affine_map<(d0, d1, d2) -> (d2, d0, d1)>

// CHECK-LABEL: func.func @permuted
// CHECK-SAME: (%[[X:.*]]: memref<?x3x?xi64>, %[[Y:.*]]: memref<3x?x?xi64>)
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK: vector.load %[[X]][%{{.*}}, %[[I]], %{{.*}}] : memref<?x3x?xi64>, vector<2xi64>
// CHECK-COUNT-2: vector.shuffle
// CHECK: vector.store %{{.*}}, %[[Y]][%[[I]], %{{.*}}, %{{.*}}]
func.func @permuted(%x: memref<?x3x?xi64>, %y: memref<3x?x?xi64>) {
  // expected-remark @below {{passed: transposed in tiles of 2 x 2}}
  linalg.generic {indexing_maps = [#p, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<?x3x?xi64>) outs(%y : memref<3x?x?xi64>) {
  ^bb0(%a: i64, %o: i64):
    linalg.yield %a : i64
  }
  return
}

// -----

// The innermost dimension stays where it is: rows are copied.

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#rows = affine_map<(d0, d1, d2) -> (d1, d0, d2)>

// CHECK-LABEL: func.func @rows
// CHECK: linalg.generic
func.func @rows(%x: memref<8x8x8xf32>, %y: memref<8x8x8xf32>) {
  linalg.generic {indexing_maps = [#rows, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<8x8x8xf32>) outs(%y : memref<8x8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// It computes something.

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @computes
// CHECK: linalg.generic
func.func @computes(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  return
}

// -----

// It yields what the output holds already.

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @keeps
// CHECK: linalg.generic
func.func @keeps(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %o : f32
  }
  return
}

// -----

// A diagonal is read: the input's map is no permutation.

#id = affine_map<(d0, d1) -> (d0, d1)>
#sum = affine_map<(d0, d1) -> (d1, d0 + d1)>

// CHECK-LABEL: func.func @skewed
// CHECK: linalg.generic
func.func @skewed(%x: memref<8x15xf32>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#sum, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x15xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// Columns that do not lie one behind the other cannot be read as vectors.

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @strided
// CHECK: linalg.generic
func.func @strided(%x: memref<8x8xf32, strided<[16, 2]>>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32, strided<[16, 2]>>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// Too small.

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @small
// CHECK: linalg.generic
func.func @small(%x: memref<8x3xf32>, %y: memref<3x8xf32>) {
  // expected-remark @below {{missed: there is no room for a tile of 4 x 4}}
  linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x3xf32>) outs(%y : memref<3x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// Small elements.

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @bytes
// CHECK: linalg.generic
func.func @bytes(%x: memref<64x64xi8>, %y: memref<64x64xi8>) {
  // expected-remark @below {{missed: elements of 8 bits are not transposed in registers}}
  linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x64xi8>) outs(%y : memref<64x64xi8>) {
  ^bb0(%a: i8, %o: i8):
    linalg.yield %a : i8
  }
  return
}

// -----

// No dimensions.

#none = affine_map<() -> ()>

// CHECK-LABEL: func.func @number
// CHECK: linalg.generic
func.func @number(%x: memref<f32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [#none, #none], iterator_types = []}
      ins(%x : memref<f32>) outs(%y : memref<f32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// Must not fire: it is the epilogue of a product, which transposes what it has in registers.

// CHECK-LABEL: func.func @epilogue
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: vector.shuffle
func.func @epilogue(%x: memref<8x3xf32>, %w: memref<3x8xf32>, %between: memref<8x8xf32>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<8x3xf32>, memref<3x8xf32>) outs(%between : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], iterator_types = ["parallel", "parallel"]} ins(%between : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
