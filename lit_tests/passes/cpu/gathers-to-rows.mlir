// RUN: pipeline-opt %s --gathers-to-rows | FileCheck %s
// RUN: pipeline-opt %s --gathers-to-rows --remarks-filter=gathers-to-rows --verify-diagnostics

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#line = affine_map<(d0, d1) -> (d1)>

// What is the same for a row is computed once for it; the rest runs along the row.

// CHECK-LABEL: func.func @embedding
// CHECK-SAME: (%[[I:.*]]: memref<5xi64>, %[[T:.*]]: memref<30x16xf32>, %[[B:.*]]: memref<16xf32>, %[[S:.*]]: memref<5xf32>, %[[O:.*]]: memref<5x16xf32>)
// CHECK: scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[N:.*]] = memref.load %[[I]]
// CHECK: %[[F:.*]] = memref.load %[[S]]
// CHECK: %[[P:.*]] = arith.index_cast %[[N]]
// CHECK: %[[OK:.*]] = arith.cmpi ult, %[[P]]
// CHECK: %[[Q:.*]] = arith.select %[[OK]], %[[P]]

// CHECK-DAG: %[[ROW:.*]] = memref.subview %[[T]][%[[Q]], 0] [1, 16] [1, 1]
// CHECK-DAG: %[[OUT:.*]] = memref.subview %[[O]][%{{.*}}, 0] [1, 16] [1, 1]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%[[B]], %[[ROW]], %[[F]] : {{.*}}, f32) outs(%[[OUT]] :
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[E:.*]]: f32, %[[G:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[E]], %[[G]]
// CHECK-NEXT: %[[X:.*]] = arith.addf %[[M]], %[[A]]
// CHECK-NEXT: linalg.yield %[[X]]
func.func @embedding(%i: memref<5xi64>, %t: memref<30x16xf32>, %b: memref<16xf32>, %s: memref<5xf32>, %o: memref<5x16xf32>) {
  %c30 = arith.constant 30 : index
  %c0 = arith.constant 0 : index
  // expected-remark @below {{passed: reads 1 tables row by row}}
  linalg.generic {indexing_maps = [#row, #line, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i, %b, %s : memref<5xi64>, memref<16xf32>, memref<5xf32>) outs(%o : memref<5x16xf32>) {
  ^bb0(%n: i64, %a: f32, %f: f32, %out: f32):
    %p = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    %ok = arith.cmpi ult, %p, %c30 : index
    %q = arith.select %ok, %p, %c0 : index
    %e = memref.load %t[%q, %j] : memref<30x16xf32>
    %m = arith.mulf %e, %f : f32
    %x = arith.addf %m, %a : f32
    linalg.yield %x : f32
  }
  return
}

// From a computed column on; sizes that are known at run time only.

// CHECK-LABEL: func.func @slice
// CHECK-SAME: (%[[T:.*]]: memref<?x?xf32>, %[[K:.*]]: index, %[[O:.*]]: memref<?x?xf32>)
// CHECK: scf.for %[[R:.*]] =
// CHECK: %[[N:.*]] = memref.dim %[[O]], %{{.*}}
// CHECK: memref.subview %[[T]][%[[R]], %[[K]]] [1, %{{.*}}] [1, 1]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]}
func.func @slice(%t: memref<?x?xf32>, %k: index, %o: memref<?x?xf32>) {
  // expected-remark @below {{passed: reads 1 tables row by row}}
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%o : memref<?x?xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %p = arith.addi %k, %j : index
    %e = memref.load %t[%i, %p] : memref<?x?xf32>
    linalg.yield %e : f32
  }
  return
}

// Must not fire: the column is computed, steps backwards, is used for more than the place, or is no row of the table.

// CHECK-LABEL: func.func @not_rows
// CHECK-NOT: scf.for
// CHECK-NOT: memref.subview
func.func @not_rows(%i: memref<5x16xi64>, %t: memref<30x16xf32>, %o: memref<5x16xf32>, %w: memref<5x16xindex>, %z: memref<16x30xf32>) {
  %c15 = arith.constant 15 : index
  %c0 = arith.constant 0 : index
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i : memref<5x16xi64>) outs(%o : memref<5x16xf32>) {
  ^bb0(%n: i64, %out: f32):
    %p = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    %e = memref.load %t[%p, %j] : memref<30x16xf32>
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%o : memref<5x16xf32>) {
  ^bb0(%out: f32):
    %k = linalg.index 0 : index
    %j = linalg.index 1 : index
    %p = arith.subi %c15, %j : index
    %e = memref.load %t[%k, %p] : memref<30x16xf32>
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      outs(%o, %w : memref<5x16xf32>, memref<5x16xindex>) {
  ^bb0(%out: f32, %place: index):
    %j = linalg.index 1 : index
    %e = memref.load %t[%c0, %j] : memref<30x16xf32>
    linalg.yield %e, %j : f32, index
  }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%o : memref<5x16xf32>) {
  ^bb0(%out: f32):
    %j = linalg.index 1 : index
    %e = memref.load %z[%j, %c0] : memref<16x30xf32>
    linalg.yield %e : f32
  }
  return
}

// Must not fire: rows that are too short, and sums along them.

// CHECK-LABEL: func.func @not_worth_it
// CHECK-NOT: scf.for
// CHECK-NOT: memref.subview
func.func @not_worth_it(%t: memref<30x4xf32>, %k: index, %o: memref<5x4xf32>, %u: memref<30x16xf32>, %r: memref<5x16xf32>, %s: memref<5xf32>) {
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%o : memref<5x4xf32>) {
  ^bb0(%out: f32):
    %j = linalg.index 1 : index
    %e = memref.load %t[%k, %j] : memref<30x4xf32>
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%r : memref<5x16xf32>) outs(%s : memref<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %j = linalg.index 1 : index
    %e = memref.load %u[%k, %j] : memref<30x16xf32>
    %x = arith.addf %out, %e : f32
    linalg.yield %x : f32
  }
  return
}
