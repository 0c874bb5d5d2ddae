// RUN: pipeline-opt %s --split-input-file --fuse-elementwise --canonicalize --form-groups | FileCheck %s

// The situations of the tests of upstream's linalg-fuse-elementwise-ops that fuse-elementwise.mlir does not have: what
// is one op there is one kernel here. Scalars that are no tensors, of dynamic sizes.

#id = affine_map<(d0, d1) -> (d0, d1)>
#none = affine_map<(d0, d1) -> ()>

// CHECK-LABEL: func.func @scalars
// CHECK: "fusion.group"
// CHECK: arith.addf
// CHECK-NEXT: arith.mulf
// CHECK: label = "fused_add_mul"
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @scalars(%x: tensor<?x?xf32>, %s: f32, %t: f32, %out: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #none, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x?xf32>, f32) outs(%out : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #none, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %t : tensor<?x?xf32>, f32) outs(%out : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// Tensors of no dims.

#none = affine_map<() -> ()>

// CHECK-LABEL: func.func @no_dims
// CHECK: label = "fused_add_mul"
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @no_dims(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %out = tensor.empty() : tensor<f32>
  %0 = linalg.generic {indexing_maps = [#none, #none, #none], iterator_types = []}
      ins(%x, %y : tensor<f32>, tensor<f32>) outs(%out : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %1 = linalg.generic {indexing_maps = [#none, #none, #none], iterator_types = []}
      ins(%0, %y : tensor<f32>, tensor<f32>) outs(%out : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// A producer that uses its loop counters is read transposed: they change places.

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @swapped_counters
// CHECK: "fusion.group"
// CHECK: %[[COLUMN:.*]] = linalg.index 1
// CHECK: arith.index_cast %[[COLUMN]]
// CHECK: linalg.index 0
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @swapped_counters(%x: tensor<4x6xi32>) -> tensor<6x4xi32> {
  %e = tensor.empty() : tensor<4x6xi32>
  %out = tensor.empty() : tensor<6x4xi32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x6xi32>) outs(%e : tensor<4x6xi32>) {
  ^bb0(%a: i32, %o: i32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %r = arith.addi %a, %n : i32
    linalg.yield %r : i32
  } -> tensor<4x6xi32>
  %1 = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x6xi32>) outs(%out : tensor<6x4xi32>) {
  ^bb0(%a: i32, %o: i32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %r = arith.subi %a, %n : i32
    linalg.yield %r : i32
  } -> tensor<6x4xi32>
  return %1 : tensor<6x4xi32>
}

// -----

// A reduction over one dim of a tensor whose other dim has size 1.

#id = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0) -> (0, d0)>
#zero = affine_map<(d0) -> (0)>

// CHECK-LABEL: func.func @reduction_with_unit_dim
// CHECK: kind = "reduction", label = "fused_mul_reduce_add"
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @reduction_with_unit_dim(%x: tensor<1x10xf32>, %out: tensor<1xf32>) -> tensor<1xf32> {
  %e = tensor.empty() : tensor<1x10xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<1x10xf32>) outs(%e : tensor<1x10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x10xf32>
  %1 = linalg.generic {indexing_maps = [#first, #zero], iterator_types = ["reduction"]}
      ins(%0 : tensor<1x10xf32>) outs(%out : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %1 : tensor<1xf32>
}

// -----

// A producer with two results, one of which is used; and one that reads what it updates.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @two_results
// CHECK: "fusion.group"
// CHECK-NOT: "fusion.group"
// CHECK: return
// CHECK-LABEL: func.func @updates
// CHECK: "fusion.group"
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @two_results(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e, %e : tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32, %p: f32):
    %r = arith.mulf %a, %a : f32
    %s = arith.addf %r, %a : f32
    linalg.yield %r, %s : f32, f32
  } -> (tensor<8xf32>, tensor<8xf32>)
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0#1 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func @updates(%x: tensor<8xf64>, %y: tensor<8xi32>) -> tensor<8xi32> {
  %0 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%x : tensor<8xf64>) {
  ^bb0(%o: f64):
    %r = math.exp %o : f64
    linalg.yield %r : f64
  } -> tensor<8xf64>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<8xf64>) outs(%y : tensor<8xi32>) {
  ^bb0(%a: f64, %o: i32):
    %n = arith.fptosi %a : f64 to i32
    %r = arith.addi %n, %o : i32
    linalg.yield %r : i32
  } -> tensor<8xi32>
  return %1 : tensor<8xi32>
}

// -----

// What other compilers leave: a reduction that is broadcast back over its rows, a chain of casts around an op.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @broadcast_consumer
// CHECK: "fusion.group"
// CHECK: kind = "reduction", label = "fused_reduce_add_sub"
// CHECK-NOT: "fusion.group"
// CHECK: return
// CHECK-LABEL: func.func @cast_chain
// CHECK: "fusion.group"
// CHECK: arith.extf
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.truncf
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @broadcast_consumer(%x: tensor<5x7xf32>, %line: tensor<5xf32>) -> tensor<5x7xf32> {
  %e = tensor.empty() : tensor<5x7xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x7xf32>) outs(%line : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<5xf32>
  %1 = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<5xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<5x7xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %1 : tensor<5x7xf32>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<5x7xf32>
  return %2 : tensor<5x7xf32>
}
func.func @cast_chain(%x: tensor<5x7xbf16>) -> tensor<5x7xbf16> {
  %f = tensor.empty() : tensor<5x7xf32>
  %h = tensor.empty() : tensor<5x7xbf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x7xbf16>) outs(%f : tensor<5x7xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %r = arith.extf %a : bf16 to f32
    linalg.yield %r : f32
  } -> tensor<5x7xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<5x7xf32>) outs(%h : tensor<5x7xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %e = math.exp %a : f32
    %r = arith.truncf %e : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<5x7xbf16>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<5x7xbf16>) outs(%f : tensor<5x7xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %r = arith.extf %a : bf16 to f32
    linalg.yield %r : f32
  } -> tensor<5x7xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%2 : tensor<5x7xf32>) outs(%h : tensor<5x7xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %e = arith.addf %a, %a : f32
    %r = arith.truncf %e : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<5x7xbf16>
  return %3 : tensor<5x7xbf16>
}
