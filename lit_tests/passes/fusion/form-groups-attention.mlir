// RUN: pipeline-opt %s --split-input-file --form-groups | FileCheck %s

// Scores, softmax over the keys, a sum of values by weight: one group, over batch and queries.

#id = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#q = affine_map<(b, q, k, d) -> (b, q, d)>
#k = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, d, k) -> (b, q, k)>
#v = affine_map<(b, q, d, k) -> (b, k, d)>
#mixed = affine_map<(b, q, d, k) -> (b, q, d)>

// CHECK-LABEL: func.func @plain
// CHECK: "fusion.group"
// CHECK-NOT: "fusion.group"
// CHECK: }) {kind = "attention", label = "attention"}
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @plain(%query: tensor<2x5x8xf32>, %key: tensor<2x7x8xf32>, %value: tensor<2x7x8xf32>, %line: tensor<2x5xf32>, %zeros: tensor<2x5x7xf32>, %init: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %scale = arith.constant 0.25 : f32
  %least = arith.constant 0xFF800000 : f32
  %full = tensor.empty() : tensor<2x5x7xf32>
  %scores = linalg.generic {indexing_maps = [#q, #k, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%query, %key : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%zeros : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %out, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x5x7xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scores : tensor<2x5x7xf32>) outs(%line : tensor<2x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.maximumf %a, %out : f32
    linalg.yield %m : f32
  } -> tensor<2x5xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores, %max : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<2x5x7xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%exp : tensor<2x5x7xf32>) outs(%line : tensor<2x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  } -> tensor<2x5xf32>
  %soft = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2x5x7xf32>
  %r = linalg.generic {indexing_maps = [#weights, #v, #mixed], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%soft, %value : tensor<2x5x7xf32>, tensor<2x7x8xf32>) outs(%init : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %out, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  return %r : tensor<2x5x8xf32>
}

// -----

// With a scale, and a mask that is added and broadcast over the batch.

#id = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#q = affine_map<(b, q, k, d) -> (b, q, d)>
#k = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, d, k) -> (b, q, k)>
#v = affine_map<(b, q, d, k) -> (b, k, d)>
#mixed = affine_map<(b, q, d, k) -> (b, q, d)>
#mask = affine_map<(b, q, k) -> (q, k)>

// CHECK-LABEL: func.func @additive
// CHECK: "fusion.group"
// CHECK-NOT: "fusion.group"
// CHECK: }) {kind = "attention", label = "attention"}
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @additive(%query: tensor<2x5x8xf32>, %key: tensor<2x7x8xf32>, %value: tensor<2x7x8xf32>, %line: tensor<2x5xf32>, %zeros: tensor<2x5x7xf32>, %init: tensor<2x5x8xf32>, %mask: tensor<5x7xf32>) -> tensor<2x5x8xf32> {
  %scale = arith.constant 0.25 : f32
  %least = arith.constant 0xFF800000 : f32
  %full = tensor.empty() : tensor<2x5x7xf32>
  %scores = linalg.generic {indexing_maps = [#q, #k, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%query, %key : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%zeros : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %out, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x5x7xf32>
  %masked = linalg.generic {indexing_maps = [#id, #mask, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores, %mask : tensor<2x5x7xf32>, tensor<5x7xf32>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.mulf %a, %scale : f32
    %m = arith.addf %c, %b : f32
    linalg.yield %m : f32
  } -> tensor<2x5x7xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%masked : tensor<2x5x7xf32>) outs(%line : tensor<2x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.maximumf %a, %out : f32
    linalg.yield %m : f32
  } -> tensor<2x5xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%masked, %max : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<2x5x7xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%exp : tensor<2x5x7xf32>) outs(%line : tensor<2x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  } -> tensor<2x5xf32>
  %soft = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2x5x7xf32>
  %r = linalg.generic {indexing_maps = [#weights, #v, #mixed], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%soft, %value : tensor<2x5x7xf32>, tensor<2x7x8xf32>) outs(%init : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %out, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  return %r : tensor<2x5x8xf32>
}

// -----

// With a boolean mask.

#id = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#q = affine_map<(b, q, k, d) -> (b, q, d)>
#k = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, d, k) -> (b, q, k)>
#v = affine_map<(b, q, d, k) -> (b, k, d)>
#mixed = affine_map<(b, q, d, k) -> (b, q, d)>

// CHECK-LABEL: func.func @boolean
// CHECK: "fusion.group"
// CHECK-NOT: "fusion.group"
// CHECK: }) {kind = "attention", label = "attention"}
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @boolean(%query: tensor<2x5x8xf32>, %key: tensor<2x7x8xf32>, %value: tensor<2x7x8xf32>, %line: tensor<2x5xf32>, %zeros: tensor<2x5x7xf32>, %init: tensor<2x5x8xf32>, %mask: tensor<2x5x7xi1>) -> tensor<2x5x8xf32> {
  %scale = arith.constant 0.25 : f32
  %least = arith.constant 0xFF800000 : f32
  %full = tensor.empty() : tensor<2x5x7xf32>
  %scores = linalg.generic {indexing_maps = [#q, #k, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%query, %key : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%zeros : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %out, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x5x7xf32>
  %masked = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores, %mask : tensor<2x5x7xf32>, tensor<2x5x7xi1>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: i1, %out: f32):
    %c = arith.mulf %a, %scale : f32
    %m = arith.select %b, %c, %least : f32
    linalg.yield %m : f32
  } -> tensor<2x5x7xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%masked : tensor<2x5x7xf32>) outs(%line : tensor<2x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.maximumf %a, %out : f32
    linalg.yield %m : f32
  } -> tensor<2x5xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%masked, %max : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<2x5x7xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%exp : tensor<2x5x7xf32>) outs(%line : tensor<2x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  } -> tensor<2x5xf32>
  %soft = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2x5x7xf32>
  %r = linalg.generic {indexing_maps = [#weights, #v, #mixed], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%soft, %value : tensor<2x5x7xf32>, tensor<2x7x8xf32>) outs(%init : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %out, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  return %r : tensor<2x5x8xf32>
}

// -----

// With a mask that is computed from the places.

#id = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#q = affine_map<(b, q, k, d) -> (b, q, d)>
#k = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, d, k) -> (b, q, k)>
#v = affine_map<(b, q, d, k) -> (b, k, d)>
#mixed = affine_map<(b, q, d, k) -> (b, q, d)>

// CHECK-LABEL: func.func @causal
// CHECK: "fusion.group"
// CHECK-NOT: "fusion.group"
// CHECK: }) {kind = "attention", label = "attention"}
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @causal(%query: tensor<2x5x8xf32>, %key: tensor<2x7x8xf32>, %value: tensor<2x7x8xf32>, %line: tensor<2x5xf32>, %zeros: tensor<2x5x7xf32>, %init: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %scale = arith.constant 0.25 : f32
  %least = arith.constant 0xFF800000 : f32
  %full = tensor.empty() : tensor<2x5x7xf32>
  %scores = linalg.generic {indexing_maps = [#q, #k, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%query, %key : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%zeros : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %out, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x5x7xf32>
  %masked = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores : tensor<2x5x7xf32>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.mulf %a, %scale : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %seen = arith.cmpi ule, %j, %i : index
    %m = arith.select %seen, %c, %least : f32
    linalg.yield %m : f32
  } -> tensor<2x5x7xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%masked : tensor<2x5x7xf32>) outs(%line : tensor<2x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.maximumf %a, %out : f32
    linalg.yield %m : f32
  } -> tensor<2x5xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%masked, %max : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<2x5x7xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%exp : tensor<2x5x7xf32>) outs(%line : tensor<2x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  } -> tensor<2x5xf32>
  %soft = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%full : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2x5x7xf32>
  %r = linalg.generic {indexing_maps = [#weights, #v, #mixed], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%soft, %value : tensor<2x5x7xf32>, tensor<2x7x8xf32>) outs(%init : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %out, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  return %r : tensor<2x5x8xf32>
}

// -----

// Grouped queries: two heads of queries share the keys and values of one; the keys are transposed before, by themselves.

#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>
#map4 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d5, d4)>
#map5 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, 0)>

// CHECK-LABEL: func.func @grouped_query
// CHECK: label = "transpose"
// CHECK: "fusion.group"
// CHECK-NOT: "fusion.group"
// CHECK: }) {kind = "attention", label = "fused_mul_attention"}
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @grouped_query(%q: tensor<2x4x5x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>) -> tensor<2x4x5x8xf32> {
  %cst = arith.constant 0.000000e+00 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant 0.35355339059327379 : f64
  %0 = arith.truncf %cst_1 : f64 to f32
  %expanded = tensor.expand_shape %q [[0], [1, 2], [3], [4]] output_shape [2, 2, 2, 5, 8] : tensor<2x4x5x8xf32> into tensor<2x2x2x5x8xf32>
  %1 = tensor.empty() : tensor<2x2x2x5x8xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%expanded : tensor<2x2x2x5x8xf32>) outs(%1 : tensor<2x2x2x5x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %18 = arith.mulf %in, %0 : f32
    linalg.yield %18 : f32
  } -> tensor<2x2x2x5x8xf32>
  %3 = tensor.empty() : tensor<2x2x8x6xf32>
  %4 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x2x6x8xf32>) outs(%3 : tensor<2x2x8x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x2x8x6xf32>
  %5 = tensor.empty() : tensor<2x2x2x5x6xf32>
  %6 = linalg.fill ins(%cst : f32) outs(%5 : tensor<2x2x2x5x6xf32>) -> tensor<2x2x2x5x6xf32>
  %7 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%2, %4 : tensor<2x2x2x5x8xf32>, tensor<2x2x8x6xf32>) outs(%6 : tensor<2x2x2x5x6xf32>) {
  ^bb0(%in: f32, %in_2: f32, %out: f32):
    %18 = arith.mulf %in, %in_2 : f32
    %19 = arith.addf %out, %18 : f32
    linalg.yield %19 : f32
  } -> tensor<2x2x2x5x6xf32>
  %8 = tensor.empty() : tensor<2x2x2x5xf32>
  %9 = linalg.fill ins(%cst_0 : f32) outs(%8 : tensor<2x2x2x5xf32>) -> tensor<2x2x2x5xf32>
  %10 = linalg.generic {indexing_maps = [#map, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%7 : tensor<2x2x2x5x6xf32>) outs(%9 : tensor<2x2x2x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %18 = arith.maximumf %in, %out : f32
    linalg.yield %18 : f32
  } -> tensor<2x2x2x5xf32>
  %11 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%7, %10 : tensor<2x2x2x5x6xf32>, tensor<2x2x2x5xf32>) outs(%5 : tensor<2x2x2x5x6xf32>) {
  ^bb0(%in: f32, %in_2: f32, %out: f32):
    %18 = arith.subf %in, %in_2 : f32
    %19 = math.exp %18 : f32
    linalg.yield %19 : f32
  } -> tensor<2x2x2x5x6xf32>
  %12 = tensor.empty() : tensor<2x2x2x5x1xf32>
  %13 = linalg.fill ins(%cst : f32) outs(%12 : tensor<2x2x2x5x1xf32>) -> tensor<2x2x2x5x1xf32>
  %14 = linalg.generic {indexing_maps = [#map, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%11 : tensor<2x2x2x5x6xf32>) outs(%13 : tensor<2x2x2x5x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %18 = arith.addf %in, %out : f32
    linalg.yield %18 : f32
  } -> tensor<2x2x2x5x1xf32>
  %15 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%11, %14 : tensor<2x2x2x5x6xf32>, tensor<2x2x2x5x1xf32>) outs(%5 : tensor<2x2x2x5x6xf32>) {
  ^bb0(%in: f32, %in_2: f32, %out: f32):
    %18 = arith.divf %in, %in_2 : f32
    linalg.yield %18 : f32
  } -> tensor<2x2x2x5x6xf32>
  %16 = linalg.fill ins(%cst : f32) outs(%1 : tensor<2x2x2x5x8xf32>) -> tensor<2x2x2x5x8xf32>
  %17 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%15, %v : tensor<2x2x2x5x6xf32>, tensor<2x2x6x8xf32>) outs(%16 : tensor<2x2x2x5x8xf32>) {
  ^bb0(%in: f32, %in_2: f32, %out: f32):
    %18 = arith.mulf %in, %in_2 : f32
    %19 = arith.addf %out, %18 : f32
    linalg.yield %19 : f32
  } -> tensor<2x2x2x5x8xf32>
  %collapsed = tensor.collapse_shape %17 [[0], [1, 2], [3], [4]] : tensor<2x2x2x5x8xf32> into tensor<2x4x5x8xf32>
  return %collapsed : tensor<2x4x5x8xf32>
}
