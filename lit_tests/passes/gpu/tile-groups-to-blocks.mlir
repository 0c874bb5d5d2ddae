// RUN: pipeline-opt %s --split-input-file --tile-groups-to-blocks="scratch=300" --canonicalize | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-groups-to-blocks="scratch=300" --remarks-filter=tile-groups-to-blocks --verify-diagnostics

// RUN: pipeline-opt %s --split-input-file --tile-groups-to-blocks="scratch=300 blocks=4" --canonicalize | FileCheck %s --check-prefix=MANY

// One loop over the rows around all ops of a softmax; what they hand on is a row.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func private @rows
// CHECK-SAME: (%[[X:.*]]: tensor<4x64xf32>, %[[OUT:.*]]: tensor<4x64xf32>)
// CHECK-DAG: %[[ROW:.*]] = tensor.empty() : tensor<1x64xf32>
// CHECK-DAG: %[[NUMBER:.*]] = tensor.empty() : tensor<1xf32>
// CHECK: scf.for %[[I:[a-z0-9]+]] = %c0 to %c4 step %c1 iter_args(%[[T:.*]] = %[[OUT]])
// CHECK: tensor.extract_slice %[[X]][%[[I]], 0] [1, 64] [1, 1]
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK: tensor.insert_slice %{{.*}} into %[[T]][%[[I]], 0] [1, 64] [1, 1]
// CHECK: pipeline.parallel = "tiles"
// expected-remark @below {{passed: one block for 1 of the loops that its ops have in common}}
func.func private @rows(%x: tensor<4x64xf32>, %out: tensor<4x64xf32>) -> tensor<4x64xf32> attributes {pipeline.kernel = "reduction"} {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x64xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x64xf32>) outs(%e0 : tensor<4x64xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<4x64xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<4x64xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = arith.addf %in, %o : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<4x64xf32>, tensor<4xf32>) outs(%out : tensor<4x64xf32>) {
  ^bb0(%in: f32, %sum: f32, %o: f32):
    %r = arith.divf %in, %sum : f32
    linalg.yield %r : f32
  } -> tensor<4x64xf32>
  return %d : tensor<4x64xf32>
}

// -----

// Of a kernel with a product a block takes several rows: the most that fit and that the number of rows is a multiple of.
// With `blocks`, fewer where there would be fewer blocks than that.

// MANY-LABEL: func.func private @product
// MANY: scf.for {{.*}} step %c1
// CHECK-LABEL: func.func private @product
// CHECK: scf.for %{{.*}} = %c0 to %c6 step %c3
// CHECK: tensor.extract_slice %{{.*}} [3, 8] [1, 1]
// expected-remark @below {{passed: one block for 3 of the loops that its ops have in common}}
func.func private @product(%x: tensor<6x8xf32>, %y: tensor<8x20xf32>, %out: tensor<6xf32>) -> tensor<6xf32> attributes {pipeline.kernel = "attention"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x20xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x20xf32>) -> tensor<6x20xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<6x8xf32>, tensor<8x20xf32>) outs(%f : tensor<6x20xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x20xf32>
  %g = linalg.fill ins(%zero : f32) outs(%out : tensor<6xf32>) -> tensor<6xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]} ins(%p : tensor<6x20xf32>) outs(%g : tensor<6xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = arith.addf %in, %o : f32
    linalg.yield %r : f32
  } -> tensor<6xf32>
  return %s : tensor<6xf32>
}

// -----

// Must not fire: a row is more than a block may share.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func private @long
// CHECK-NOT: scf.for
// expected-remark @below {{missed: its ops are launches of their own: what they hand on does not fit into shared memory}}
func.func private @long(%x: tensor<4x80xf32>, %out: tensor<4x80xf32>) -> tensor<4x80xf32> attributes {pipeline.kernel = "reduction"} {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x80xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x80xf32>) outs(%e0 : tensor<4x80xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<4x80xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<4x80xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = arith.addf %in, %o : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<4x80xf32>, tensor<4xf32>) outs(%out : tensor<4x80xf32>) {
  ^bb0(%in: f32, %sum: f32, %o: f32):
    %r = arith.divf %in, %sum : f32
    linalg.yield %r : f32
  } -> tensor<4x80xf32>
  return %d : tensor<4x80xf32>
}

// -----

// Must not fire: how long a row is, is not known. How many there are need not be.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func private @unknown
// CHECK-NOT: scf.for
// expected-remark @below {{missed: its ops are launches of their own: the size of a loop inside of a block is not known, or 0}}
func.func private @unknown(%n: index, %x: tensor<4x?xf32>, %out: tensor<4x?xf32>) -> tensor<4x?xf32> attributes {pipeline.kernel = "reduction"} {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty(%n) : tensor<4x?xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x?xf32>) outs(%e0 : tensor<4x?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<4x?xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<4x?xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = arith.addf %in, %o : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<4x?xf32>, tensor<4xf32>) outs(%out : tensor<4x?xf32>) {
  ^bb0(%in: f32, %sum: f32, %o: f32):
    %r = arith.divf %in, %sum : f32
    linalg.yield %r : f32
  } -> tensor<4x?xf32>
  return %d : tensor<4x?xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func private @any_number
// CHECK: scf.for
// expected-remark @below {{passed: one block for 1 of the loops that its ops have in common}}
func.func private @any_number(%n: index, %x: tensor<?x32xf32>, %out: tensor<?x32xf32>) -> tensor<?x32xf32> attributes {pipeline.kernel = "reduction"} {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty(%n) : tensor<?x32xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x32xf32>) outs(%e0 : tensor<?x32xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<?x32xf32>
  %e1 = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<?x32xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = arith.addf %in, %o : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<?x32xf32>, tensor<?xf32>) outs(%out : tensor<?x32xf32>) {
  ^bb0(%in: f32, %sum: f32, %o: f32):
    %r = arith.divf %in, %sum : f32
    linalg.yield %r : f32
  } -> tensor<?x32xf32>
  return %d : tensor<?x32xf32>
}

// -----

// Must not fire: other threads would have to see what is written to the result.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func private @result
// CHECK-NOT: scf.for
// expected-remark @below {{missed: its ops are launches of their own: a result of the kernel is read by another of its ops}}
func.func private @result(%x: tensor<4x64xf32>, %out: tensor<4x64xf32>, %row: tensor<4xf32>) -> (tensor<4x64xf32>, tensor<4xf32>) attributes {pipeline.kernel = "reduction"} {
  %zero = arith.constant 0.0 : f32
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x64xf32>) outs(%out : tensor<4x64xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<4x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<4x64xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = arith.addf %in, %o : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %p, %s : tensor<4x64xf32>, tensor<4xf32>
}

// -----

// Must not fire: with no reduction, a block would have one element.

// CHECK-LABEL: func.func private @elementwise
// CHECK-NOT: scf.for
func.func private @elementwise(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {pipeline.kernel = "elementwise"} {
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%p : tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = arith.negf %in : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %p, %q : tensor<4xf32>, tensor<4xf32>
}
