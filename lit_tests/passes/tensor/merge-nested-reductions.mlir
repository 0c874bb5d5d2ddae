// RUN: pipeline-opt %s --split-input-file --merge-nested-reductions | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --merge-nested-reductions --remarks-filter=merge-nested-reductions --verify-diagnostics

// Three maxima, one dim at a time; what the innermost reads is computed from two operands.

#x = affine_map<(a, b, c, d) -> (a, b, c, d)>
#row = affine_map<(a, b, c, d) -> (d)>
#w = affine_map<(a, b, c, d) -> (a, b, c)>
#y = affine_map<(a, b, c) -> (a, b, c)>
#v = affine_map<(a, b, c) -> (a, b)>
#z = affine_map<(a, b) -> (a, b)>
#u = affine_map<(a, b) -> (a)>

// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0)>
// CHECK-LABEL: func.func @maxima
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[X]], #[[ROW]], #[[OUT]]], iterator_types = ["parallel", "reduction", "reduction", "reduction"]}
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]] : tensor<2xf32>
func.func @maxima(%x: tensor<2x3x4x5xf32>, %b: tensor<5xf32>, %init: tensor<2xf32>) -> tensor<2xf32> {
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x3x4xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = linalg.generic {indexing_maps = [#x, #row, #w], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %b : tensor<2x3x4x5xf32>, tensor<5xf32>) outs(%f : tensor<2x3x4xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    %m = arith.maximumf %s, %o : f32
    linalg.yield %m : f32
  } -> tensor<2x3x4xf32>
  %g = tensor.empty() : tensor<2x3xf32>
  %h = linalg.fill ins(%least : f32) outs(%g : tensor<2x3xf32>) -> tensor<2x3xf32>
  // expected-remark @below {{passed: merged with the reduction before: 2 dims}}
  %2 = linalg.generic {indexing_maps = [#y, #v], iterator_types = ["parallel", "parallel", "reduction"]} ins(%1 : tensor<2x3x4xf32>) outs(%h : tensor<2x3xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.maximumf %i, %o : f32
    linalg.yield %m : f32
  } -> tensor<2x3xf32>
  // expected-remark @below {{passed: merged with the reduction before: 3 dims}}
  %3 = linalg.generic {indexing_maps = [#z, #u], iterator_types = ["parallel", "reduction"]} ins(%2 : tensor<2x3xf32>) outs(%init : tensor<2xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.maximumf %o, %i : f32
    linalg.yield %m : f32
  } -> tensor<2xf32>
  return %3 : tensor<2xf32>
}

// -----

// Left alone: another combiner; a start that counts; dims that are no rows; a result that others read, too; sums that
// are rounded to 16 bits.

#x = affine_map<(a, b) -> (a, b)>
#r = affine_map<(a, b) -> (a)>
#c = affine_map<(a, b) -> (b)>
#y = affine_map<(a) -> (a)>
#v = affine_map<(a) -> ()>
#cube = affine_map<(a, b, c) -> (a, b, c)>
#flat = affine_map<(a, b, c) -> (a, b)>

// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-10: linalg.generic
func.func @left_alone(%x: tensor<4x5xf32>, %h: tensor<4x5xbf16>, %k: tensor<4x5x6xf32>, %init: tensor<f32>, %half: tensor<bf16>, %cols: tensor<5xf32>)
    -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<bf16>, tensor<5xf32>) {
  %least = arith.constant 0xFF800000 : f32
  %one = arith.constant 1.0 : f32
  %nil = arith.constant 0.0 : bf16
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %fe = linalg.fill ins(%least : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %ones = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %e5 = tensor.empty() : tensor<4x5xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e5 : tensor<4x5xf32>) -> tensor<4x5xf32>
  %eh = tensor.empty() : tensor<4xbf16>
  %fh = linalg.fill ins(%nil : bf16) outs(%eh : tensor<4xbf16>) -> tensor<4xbf16>
  %m1 = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x5xf32>) outs(%fe : tensor<4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.maximumf %i, %o : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  %another = linalg.generic {indexing_maps = [#y, #v], iterator_types = ["reduction"]} ins(%m1 : tensor<4xf32>) outs(%init : tensor<f32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.addf %i, %o : f32
    linalg.yield %m : f32
  } -> tensor<f32>
  %s1 = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x5xf32>) outs(%ones : tensor<4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.addf %i, %o : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  %start = linalg.generic {indexing_maps = [#y, #v], iterator_types = ["reduction"]} ins(%s1 : tensor<4xf32>) outs(%init : tensor<f32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.addf %i, %o : f32
    linalg.yield %m : f32
  } -> tensor<f32>
  %m3 = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x5xf32>) outs(%fe : tensor<4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.maximumf %i, %o : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  %read = linalg.generic {indexing_maps = [#y, #v], iterator_types = ["reduction"]} ins(%m3 : tensor<4xf32>) outs(%init : tensor<f32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.maximumf %i, %o : f32
    linalg.yield %m : f32
  } -> tensor<f32>
  %h1 = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]} ins(%h : tensor<4x5xbf16>) outs(%fh : tensor<4xbf16>) {
  ^bb0(%i: bf16, %o: bf16):
    %m = arith.addf %i, %o : bf16
    linalg.yield %m : bf16
  } -> tensor<4xbf16>
  %rounded = linalg.generic {indexing_maps = [#y, #v], iterator_types = ["reduction"]} ins(%h1 : tensor<4xbf16>) outs(%half : tensor<bf16>) {
  ^bb0(%i: bf16, %o: bf16):
    %m = arith.addf %i, %o : bf16
    linalg.yield %m : bf16
  } -> tensor<bf16>
  %k1 = linalg.generic {indexing_maps = [#cube, #flat], iterator_types = ["parallel", "parallel", "reduction"]} ins(%k : tensor<4x5x6xf32>) outs(%zeros : tensor<4x5xf32>) {
  ^bb0(%i: f32, %j: f32):
    %m = arith.addf %i, %j : f32
    linalg.yield %m : f32
  } -> tensor<4x5xf32>
  %columns = linalg.generic {indexing_maps = [#x, #c], iterator_types = ["reduction", "parallel"]} ins(%k1 : tensor<4x5xf32>) outs(%cols : tensor<5xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.addf %i, %o : f32
    linalg.yield %m : f32
  } -> tensor<5xf32>
  return %another, %start, %read, %init, %m3, %rounded, %columns : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<bf16>, tensor<5xf32>
}
