// RUN: pipeline-opt %s --split-input-file --propagate-layouts=always | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --propagate-layouts --remarks-filter=propagate-layouts -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

// Convolutions of bytes are linalg.generics, told by their maps: a sum over channels, then one of each channel by itself.

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#x = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 * 2 + d5, d3 * 2 + d6)>
#w = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>
#y = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
#dx = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 + d4, d3 + d5 * 2)>
#dw = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d4, d5)>
#dy = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 * 2 + d4, d2 * 2 + d5, d6)>
// CHECK-DAG: #[[W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
// CHECK-DAG: #[[DX:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5 * 2, d3)>
// CHECK-DAG: #[[DW:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[D:.*]]: tensor<1x4x9x9xi8>, %[[Q:.*]]: tensor<16x4x3x3xi8> {{.*}}, %[[V:.*]]: tensor<16x2x2xi8>
// CHECK: %[[L:.*]] = linalg.transpose ins(%[[D]] : {{.*}}) outs({{.*}} : tensor<1x9x9x4xi8>) permutation = [0, 2, 3, 1]
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[Q]] : {{.*}}) outs({{.*}} : tensor<3x3x4x16xi8>) permutation = [2, 3, 1, 0]
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[X]], #[[W]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
// CHECK-SAME: ins(%[[L]], %[[T]] : {{.*}}) outs({{.*}} : tensor<1x4x4x16xi32>)
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[C]] : tensor<1x4x4x16xi32>) outs({{.*}} : tensor<1x4x4x16xi8>)
// CHECK: %[[U:.*]] = linalg.transpose ins(%[[V]] : {{.*}}) outs({{.*}} : tensor<2x2x16xi8>) permutation = [1, 2, 0]
// CHECK: linalg.generic {indexing_maps = [#[[DX]], #[[DW]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
// CHECK-SAME: ins(%[[B]], %[[U]] : {{.*}}) outs({{.*}} : tensor<1x3x2x16xi32>)
// REMARK: missed: channels stay first
func.func @chain(%x: tensor<1x4x9x9xi8>, %q: tensor<16x4x3x3xi8> {pipeline.weight = "q"},
    %v: tensor<16x2x2xi8> {pipeline.weight = "v"}) -> tensor<1x16x3x2xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x16x4x4xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<1x16x4x4xi32>) -> tensor<1x16x4x4xi32>
  %c = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %q : tensor<1x4x9x9xi8>, tensor<16x4x3x3xi8>) outs(%f : tensor<1x16x4x4xi32>) {
  ^bb0(%a: i8, %b: i8, %o: i32):
    %l = arith.extui %a : i8 to i32
    %r = arith.extsi %b : i8 to i32
    %p = arith.muli %l, %r : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<1x16x4x4xi32>
  %g = tensor.empty() : tensor<1x16x4x4xi8>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c : tensor<1x16x4x4xi32>) outs(%g : tensor<1x16x4x4xi8>) {
  ^bb0(%a: i32, %o: i8):
    %t = arith.trunci %a : i32 to i8
    linalg.yield %t : i8
  } -> tensor<1x16x4x4xi8>
  %h = tensor.empty() : tensor<1x16x3x2xi32>
  %k = linalg.fill ins(%zero : i32) outs(%h : tensor<1x16x3x2xi32>) -> tensor<1x16x3x2xi32>
  %d = linalg.generic {indexing_maps = [#dx, #dw, #dy], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%n, %v : tensor<1x16x4x4xi8>, tensor<16x2x2xi8>) outs(%k : tensor<1x16x3x2xi32>) {
  ^bb0(%a: i8, %b: i8, %o: i32):
    %l = arith.extui %a : i8 to i32
    %r = arith.extsi %b : i8 to i32
    %p = arith.muli %l, %r : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<1x16x3x2xi32>
  return %d : tensor<1x16x3x2xi32>
}

// -----

// Must not: the window moves along channels.

#x = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4 + d5, d2, d3 + d6)>
#w = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>
#y = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func.func @along_channels
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @along_channels(%x: tensor<1x6x4x6xi8>, %q: tensor<16x4x3x3xi8> {pipeline.weight = "q"}, %f: tensor<1x16x4x4xi32>) -> tensor<1x16x4x4xi32> {
  %c = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %q : tensor<1x6x4x6xi8>, tensor<16x4x3x3xi8>) outs(%f : tensor<1x16x4x4xi32>) {
  ^bb0(%a: i8, %b: i8, %o: i32):
    %l = arith.extui %a : i8 to i32
    %r = arith.extsi %b : i8 to i32
    %p = arith.muli %l, %r : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<1x16x4x4xi32>
  return %c : tensor<1x16x4x4xi32>
}
