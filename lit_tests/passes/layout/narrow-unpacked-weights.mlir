// RUN: pipeline-opt %s --split-input-file --narrow-unpacked-weights --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --narrow-unpacked-weights --remarks-filter=narrow-unpacked-weights --verify-diagnostics

// Eight numbers of four bits of an i32: one op computes them as bytes; what reads integers of 32 bits gets them extended.

#packed = affine_map<(k, i, n) -> (k, 0, n)>
#shift = affine_map<(k, i, n) -> (0, i, 0)>
#all = affine_map<(k, i, n) -> (k, i, n)>

// CHECK-DAG: #[[PACKED:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[SHIFT:.*]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-LABEL: func.func @four_bits
// CHECK-SAME: (%[[Q:.*]]: tensor<8x16xi32> {{{.*}}}, %[[S:.*]]: tensor<8xi32> {{{.*}}}, %[[X:.*]]: tensor<8x8x16xi32>)
// CHECK-NOT: tensor<8x8x16xi32>) outs
// CHECK: %[[BYTES:.*]] = linalg.generic {indexing_maps = [#[[PACKED]], #[[SHIFT]], {{.*}} ins(%[[Q]], %[[S]] : tensor<8x16xi32>, tensor<8xi32>) outs(%{{.*}} : tensor<8x8x16xi8>)
// CHECK: arith.shrsi
// CHECK: %[[NUMBER:.*]] = arith.andi %{{.*}}, %c15_i32
// CHECK: arith.trunci %[[NUMBER]] : i32 to i8
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[BYTES]] : tensor<8x8x16xi8>) outs(%{{.*}} : tensor<8x8x16xi32>)
// CHECK: arith.extsi
// CHECK: linalg.generic {{.*}} ins(%[[WIDE]], %[[X]]
func.func @four_bits(%q: tensor<8x16xi32> {pipeline.weight = "q"}, %s: tensor<8xi32> {pipeline.weight = "s"}, %x: tensor<8x8x16xi32>) -> tensor<8x8x16xi32> {
  %mask = arith.constant 15 : i32
  %a = tensor.expand_shape %q [[0], [1, 2]] output_shape [8, 1, 16] : tensor<8x16xi32> into tensor<8x1x16xi32>
  %b = tensor.expand_shape %s [[0, 1, 2]] output_shape [1, 8, 1] : tensor<8xi32> into tensor<1x8x1xi32>
  %e = tensor.empty() : tensor<8x8x16xi32>
  %moved = linalg.generic {indexing_maps = [#packed, #shift, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b : tensor<8x1x16xi32>, tensor<1x8x1xi32>) outs(%e : tensor<8x8x16xi32>) {
  ^bb0(%w: i32, %by: i32, %o: i32):
    %v = arith.shrsi %w, %by : i32
    linalg.yield %v : i32
  } -> tensor<8x8x16xi32>
  // expected-remark @below {{passed: computes numbers of four bits out of weights}}
  %number = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%moved : tensor<8x8x16xi32>) outs(%e : tensor<8x8x16xi32>) {
  ^bb0(%w: i32, %o: i32):
    %v = arith.andi %w, %mask : i32
    linalg.yield %v : i32
  } -> tensor<8x8x16xi32>
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%number, %x : tensor<8x8x16xi32>, tensor<8x8x16xi32>) outs(%e : tensor<8x8x16xi32>) {
  ^bb0(%n: i32, %i: i32, %o: i32):
    %v = arith.addi %n, %i : i32
    linalg.yield %v : i32
  } -> tensor<8x8x16xi32>
  return %r : tensor<8x8x16xi32>
}

// -----

// Must not: integers of data, and those that may be larger than bytes.

#id = affine_map<(k, n) -> (k, n)>

// CHECK-LABEL: func.func @others
// CHECK-NOT: i8
func.func @others(%q: tensor<8x16xi32> {pipeline.weight = "q"}, %x: tensor<8x16xi32>) -> (tensor<8x16xi32>, tensor<8x16xi32>) {
  %mask = arith.constant 15 : i32
  %large = arith.constant 511 : i32
  %e = tensor.empty() : tensor<8x16xi32>
  %data = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x16xi32>) outs(%e : tensor<8x16xi32>) {
  ^bb0(%w: i32, %o: i32):
    %v = arith.andi %w, %mask : i32
    linalg.yield %v : i32
  } -> tensor<8x16xi32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<8x16xi32>) outs(%e : tensor<8x16xi32>) {
  ^bb0(%w: i32, %o: i32):
    %v = arith.andi %w, %large : i32
    linalg.yield %v : i32
  } -> tensor<8x16xi32>
  return %data, %wide : tensor<8x16xi32>, tensor<8x16xi32>
}
