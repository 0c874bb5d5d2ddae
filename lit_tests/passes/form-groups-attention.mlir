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
