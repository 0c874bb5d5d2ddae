// RUN: pipeline-opt %s --split-input-file --guard-traps | FileCheck %s

// An index that comes from data is checked beside the gather, which reads index 0 where it is out of range.

#id = affine_map<(d0) -> (d0)>

// CHECK: module attributes {pipeline.checks = ["index out of range{{.*}}"]}
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[I:.*]]: tensor<4xindex>, %[[X:.*]]: tensor<9xf32>, %{{.*}}: tensor<4xf32>, %[[STATUS:.*]]: memref<1xi64> {pipeline.status})
// CHECK: arith.cmpi ult
// CHECK: arith.andi
// CHECK: scf.if
// CHECK: memref.store %{{.*}}, %[[STATUS]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[AT:.*]], %
// CHECK: %[[SAFE:.*]] = arith.select %[[INSIDE]], %[[AT]], %
// CHECK: tensor.extract %[[X]][%[[SAFE]]]
func.func @main(%i: tensor<4xindex>, %x: tensor<9xf32>, %out: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%i : tensor<4xindex>) outs(%out : tensor<4xf32>) {
  ^bb0(%at: index, %old: f32):
    %e = tensor.extract %x[%at] : tensor<9xf32>
    linalg.yield %e : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Rows and columns are checked along their own loops, not once for each pair.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[I:.*]]: tensor<4xindex>, %[[J:.*]]: tensor<5xindex>,
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[I]] : tensor<4xindex>)
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[J]] : tensor<5xindex>)
// CHECK: arith.andi
// CHECK: scf.if
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]}
func.func @main(%i: tensor<4xindex>, %j: tensor<5xindex>, %x: tensor<9x9xf32>, %out: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %r = linalg.generic {indexing_maps = [#row, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i, %j : tensor<4xindex>, tensor<5xindex>) outs(%out : tensor<4x5xf32>) {
  ^bb0(%a: index, %b: index, %old: f32):
    %e = tensor.extract %x[%a, %b] : tensor<9x9xf32>
    linalg.yield %e : f32
  } -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// -----

// Must not fire: an index of the loop is in range, a constant divisor is not 0, and 1/0 of floats is infinity, so that
// torch-mlir's assert against it goes.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @main
// CHECK-NOT: pipeline.status
// CHECK-NOT: cf.assert
// CHECK-NOT: scf.if
// CHECK: %[[L:.*]] = linalg.index 0
// CHECK: tensor.extract %{{.*}}[%[[L]]]
// CHECK: arith.divsi %{{.*}}, %c7
// CHECK: arith.divf
// CHECK-NOT: scf.if
// CHECK: return
func.func @main(%n: tensor<4xi64>, %x: tensor<4xf32>, %out: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi64>) {
  %c7 = arith.constant 7 : i64
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%n : tensor<4xi64>) outs(%out, %n : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%i: i64, %old: f32, %o: i64):
    %l = linalg.index 0 : index
    %e = tensor.extract %x[%l] : tensor<4xf32>
    %q = arith.divsi %i, %c7 : i64
    %nonzero = arith.cmpf one, %e, %zero : f32
    cf.assert %nonzero, "unimplemented: tensor with zero element"
    %d = arith.divf %one, %e : f32
    linalg.yield %d, %q : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi64>
}

// -----

// The check runs over the loops that the index depends on: one index fetches three columns.

#row = affine_map<(d0, d1) -> (d0)>
#both = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[I:.*]]: tensor<4xindex>, %[[X:.*]]: tensor<9x3xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}], iterator_types = ["reduction"]} ins(%[[I]] : tensor<4xindex>)
// CHECK: arith.cmpi ult
// CHECK: scf.if
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
func.func @main(%i: tensor<4xindex>, %x: tensor<9x3xf32>, %out: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %r = linalg.generic {indexing_maps = [#row, #both], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<4xindex>) outs(%out : tensor<4x3xf32>) {
  ^bb0(%at: index, %old: f32):
    %column = linalg.index 1 : index
    %e = tensor.extract %x[%at, %column] : tensor<9x3xf32>
    linalg.yield %e : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// Must not fire: of no columns nothing is fetched, so the index need not be in range; nor of none at run time.

#row = affine_map<(d0, d1) -> (d0)>
#both = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @main
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins({{.*}}tensor<4x0xf32>)
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins({{.*}}tensor<4x?xf32>)
func.func @main(%i: tensor<4xindex>, %x: tensor<9x0xf32>, %out: tensor<4x0xf32>, %y: tensor<9x?xf32>,
                %out2: tensor<4x?xf32>) -> (tensor<4x0xf32>, tensor<4x?xf32>) {
  %r = linalg.generic {indexing_maps = [#row, #both], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<4xindex>) outs(%out : tensor<4x0xf32>) {
  ^bb0(%at: index, %old: f32):
    %column = linalg.index 1 : index
    %e = tensor.extract %x[%at, %column] : tensor<9x0xf32>
    linalg.yield %e : f32
  } -> tensor<4x0xf32>
  %s = linalg.generic {indexing_maps = [#row, #both], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<4xindex>) outs(%out2 : tensor<4x?xf32>) {
  ^bb0(%at: index, %old: f32):
    %column = linalg.index 1 : index
    %e = tensor.extract %y[%at, %column] : tensor<9x?xf32>
    linalg.yield %e : f32
  } -> tensor<4x?xf32>
  return %r, %s : tensor<4x0xf32>, tensor<4x?xf32>
}

// -----

// A number outside of kernels is divided under a check, too: a size may be 0.

// CHECK: module attributes {pipeline.checks = ["integer division by zero{{.*}}"]}
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[N:.*]]: i64, %[[STATUS:.*]]: memref<1xi64> {pipeline.status})
// CHECK: %[[NONZERO:.*]] = arith.cmpi ne, %[[N]], %
// CHECK: scf.if
// CHECK: memref.store %{{.*}}, %[[STATUS]]
// CHECK: arith.select %[[NONZERO]], %[[N]], %
// CHECK: arith.divui
func.func @main(%n: i64) -> i64 {
  %c100 = arith.constant 100 : i64
  %r = arith.floordivsi %c100, %n : i64
  return %r : i64
}

// -----

// Must not fire: a number is divided by a constant.

// CHECK: module attributes {pipeline.checks = []}
// CHECK-LABEL: func.func @main
// CHECK-NOT: pipeline.status
// CHECK: arith.floordivsi
func.func @main(%n: i64) -> i64 {
  %c2 = arith.constant 2 : i64
  %r = arith.floordivsi %n, %c2 : i64
  return %r : i64
}

// -----

// A size that may be negative is checked, and is 0 where tensors are of it; the number itself stays.

// CHECK: module attributes {pipeline.checks = ["a size is negative{{.*}}"]}
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<?x4xf32>, %[[STATUS:.*]]: memref<1xi64> {pipeline.status})
// CHECK: %[[REST:.*]] = arith.subi
// CHECK: %[[SIZE:.*]] = arith.maxsi %[[REST]], %{{.*}} : index
// CHECK: %[[OK:.*]] = arith.cmpi sge, %[[REST]], %{{.*}} : index
// CHECK: %[[FAILED:.*]] = arith.cmpi eq, %[[OK]],
// CHECK: scf.if %[[FAILED]]
// CHECK: memref.store %{{.*}}, %[[STATUS]]
// CHECK: tensor.empty(%[[SIZE]])
// CHECK-NOT: arith.cmpi sge
// CHECK: tensor.empty(%[[SIZE]])
// CHECK: tensor.extract_slice %[[X]][%[[REST]], 0] [%[[SIZE]], 4] [1, 1]
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}}, %[[REST]]
func.func @main(%x: tensor<?x4xf32>) -> (tensor<?xf32>, tensor<?x4xf32>, tensor<?x4xf32>, index) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %rest = arith.subi %n, %c3 : index
  %a = tensor.empty(%rest) : tensor<?xf32>
  %b = tensor.empty(%rest) : tensor<?x4xf32>
  %c = tensor.extract_slice %x[%rest, 0] [%rest, 4] [1, 1] : tensor<?x4xf32> to tensor<?x4xf32>
  return %a, %b, %c, %rest : tensor<?xf32>, tensor<?x4xf32>, tensor<?x4xf32>, index
}

// -----

// Must not fire: sums, products and quotients of sizes are sizes, as is what is at least 0.

// CHECK-LABEL: func.func @main
// CHECK-NOT: pipeline.status
// CHECK-NOT: scf.if
// CHECK: return
func.func @main(%x: tensor<?x4xf32>, %i: index) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %more = arith.addi %n, %c3 : index
  %twice = arith.muli %more, %n : index
  %half = arith.divui %twice, %c3 : index
  %positive = arith.maxsi %i, %c0 : index
  %some = arith.minsi %positive, %half : index
  %a = tensor.empty(%twice, %half) : tensor<?x?xf32>
  %b = tensor.empty(%some) : tensor<?xf32>
  return %a, %b : tensor<?x?xf32>, tensor<?xf32>
}

// -----

// What a pad takes away by a number is taken away first, and checked.

// CHECK: module attributes {pipeline.checks = ["a size is negative{{.*}}"]}
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>, %[[STATUS:.*]]: memref<1xi64> {pipeline.status})
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK: %[[LOW:.*]] = arith.subi %[[N]], %{{.*}} : index
// CHECK: %[[MIN:.*]] = arith.minsi %[[LOW]],
// CHECK: %[[TAKEN:.*]] = arith.subi %{{.*}}, %[[MIN]]
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[TAKEN]]
// CHECK: %[[ADDED:.*]] = arith.maxsi %[[LOW]],
// CHECK: %[[SIZE:.*]] = arith.maxsi %[[LEFT]],
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %[[X]][%[[TAKEN]]] [%[[SIZE]]] [1]
// CHECK: arith.cmpi sge, %[[LEFT]],
// CHECK: memref.store %{{.*}}, %[[STATUS]]
// CHECK: tensor.pad %[[SLICE]] low[%[[ADDED]]] high[%[[N]]]
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %low = arith.subi %n, %c3 : index
  %y = tensor.pad %x low[%low] high[%n] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Must not fire: a size is added.

// CHECK-LABEL: func.func @main
// CHECK-NOT: pipeline.status
// CHECK-NOT: tensor.extract_slice
// CHECK: tensor.pad %{{.*}} low[%{{.*}}] high[2]
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %y = tensor.pad %x low[%n] high[2] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// An element is divided by a size that may be 0.

#id = affine_map<(d0) -> (d0)>

// CHECK: module attributes {pipeline.checks = ["integer division by zero{{.*}}"]}
// CHECK-LABEL: func.func @main
// CHECK: memref.store
// CHECK: linalg.generic
// CHECK: %[[SAFE:.*]] = arith.select
// CHECK: arith.remui %{{.*}}, %{{.*}} : i64
func.func @main(%x: tensor<?x4xf32>, %i: tensor<6xi64>) -> tensor<6xi64> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %by = arith.index_cast %n : index to i64
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%i : tensor<6xi64>) {
  ^bb0(%old: i64):
    %q = arith.remsi %old, %by : i64
    linalg.yield %q : i64
  } -> tensor<6xi64>
  return %r : tensor<6xi64>
}

// -----

// Must not fire: an index of a loop is divided by a size.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @main
// CHECK-NOT: pipeline.status
// CHECK: arith.remui %{{.*}}, %{{.*}} : index
func.func @main(%x: tensor<?x4xf32>, %i: tensor<?xindex>) -> tensor<?xindex> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%i : tensor<?xindex>) {
  ^bb0(%old: index):
    %at = linalg.index 0 : index
    %q = arith.remui %at, %n : index
    linalg.yield %q : index
  } -> tensor<?xindex>
  return %r : tensor<?xindex>
}
