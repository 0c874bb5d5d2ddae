// RUN: pipeline-opt %s --hoist-index-computations | FileCheck %s
// RUN: pipeline-opt %s --hoist-index-computations --remarks-filter=hoist-index-computations --verify-diagnostics

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// The places of rows and columns of a resized image are computed once for each row, and once for each column.

// CHECK-DAG: #[[LINE:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @resized
// CHECK-SAME: (%[[X:.*]]: memref<9x9xf32>, %[[SCALES:.*]]: memref<6xf32>, %[[Y:.*]]: memref<4x6xf32>)
// CHECK: %[[ROWS:.*]] = memref.alloc() : memref<4xi64>
// CHECK: linalg.generic {indexing_maps = [#[[LINE]]], iterator_types = ["parallel"]} outs(%[[ROWS]] : memref<4xi64>)
// CHECK: linalg.index 0
// CHECK: arith.fptosi
// CHECK: %[[COLUMNS:.*]] = memref.alloc() : memref<6xi64>
// CHECK: linalg.generic {indexing_maps = [#[[LINE]], #[[LINE]]], iterator_types = ["parallel"]} ins(%[[SCALES]] : memref<6xf32>) outs(%[[COLUMNS]] : memref<6xi64>)
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[SCALES]], %[[ROWS]], %[[COLUMNS]] :
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %[[R:.*]]: i64, %[[C:.*]]: i64, %{{.*}}: f32):
// CHECK-NEXT: %[[I:.*]] = arith.index_cast %[[R]]
// CHECK-NEXT: %[[J:.*]] = arith.index_cast %[[C]]
// CHECK-NEXT: memref.load %[[X]][%[[I]], %[[J]]]
// CHECK: memref.dealloc %[[ROWS]]
// CHECK: memref.dealloc %[[COLUMNS]]
func.func @resized(%x: memref<9x9xf32>, %scales: memref<6xf32>, %y: memref<4x6xf32>) {
  %two = arith.constant 2.0 : f32
  // expected-remark @below {{passed: computes 2 lines ahead}}
  linalg.generic {indexing_maps = [#column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%scales : memref<6xf32>) outs(%y : memref<4x6xf32>) {
  ^bb0(%scale: f32, %out: f32):
    %i = linalg.index 0 : index
    %i64 = arith.index_cast %i : index to i64
    %if = arith.sitofp %i64 : i64 to f32
    %half = arith.divf %if, %two : f32
    %ir = arith.fptosi %half : f32 to i64
    %row = arith.index_cast %ir : i64 to index
    %j = linalg.index 1 : index
    %j64 = arith.index_cast %j : index to i64
    %jf = arith.sitofp %j64 : i64 to f32
    %scaled = arith.divf %jf, %scale : f32
    %jr = arith.fptosi %scaled : f32 to i64
    %column = arith.index_cast %jr : i64 to index
    %element = memref.load %x[%row, %column] : memref<9x9xf32>
    linalg.yield %element : f32
  }
  return
}

// Must not fire: what is cheap, depends on both loops, computes no places, or is in a loop already.

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @left_alone(%x: memref<9x9xf32>, %s: memref<4xf32>, %y: memref<4x6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%y : memref<4x6xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %next = arith.addi %i, %c1 : index
    %element = memref.load %x[%next, %j] : memref<9x9xf32>
    linalg.yield %element : f32
  }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%y : memref<4x6xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %both = arith.addi %i, %j : index
    %third = arith.divui %both, %c3 : index
    %element = memref.load %x[%third, %third] : memref<9x9xf32>
    linalg.yield %element : f32
  }
  linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : memref<4xf32>) outs(%y : memref<4x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %root = math.sqrt %in : f32
    %product = arith.mulf %root, %out : f32
    linalg.yield %product : f32
  }
  scf.for %k = %c0 to %c3 step %c1 {
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%y : memref<4x6xf32>) {
    ^bb0(%out: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %third = arith.divui %i, %c3 : index
      %element = memref.load %x[%third, %j] : memref<9x9xf32>
      linalg.yield %element : f32
    }
  }
  return
}
