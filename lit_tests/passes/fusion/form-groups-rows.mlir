// RUN: pipeline-opt %s --split-input-file --form-groups | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --form-groups=rules=%S/Inputs/small-scratch.yaml | FileCheck %s --check-prefix=SMALL

// A softmax over rows: two reductions and what is between them are one group, with what makes its input.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[X:.*]]: tensor<5x7xf32>, %[[LINE:.*]]: tensor<5xf32>)
// CHECK: %[[R:.*]] = "fusion.group"(%[[X]], %[[LINE]])
// CHECK-NOT: "fusion.group"
// CHECK: }) {kind = "reduction", label = "fused_neg_softmax"}
// CHECK-NEXT: return %[[R]]

// With scratch for less than a row, no row is handed on.

// SMALL-LABEL: func.func @softmax
// SMALL: label = "neg"
// SMALL: label = "fused_reduce_max_sub_exp"
// SMALL: kind = "reduction", label = "fused_reduce_add_div"
func.func @softmax(%x: tensor<5x7xf32>, %line: tensor<5xf32>) -> tensor<5x7xf32> {
  %full = tensor.empty() : tensor<5x7xf32>
  %neg = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x7xf32>) outs(%full : tensor<5x7xf32>) {
  ^bb0(%a: f32, %out: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<5x7xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%neg : tensor<5x7xf32>) outs(%line : tensor<5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.maximumf %a, %out : f32
    linalg.yield %m : f32
  } -> tensor<5xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%neg, %max : tensor<5x7xf32>, tensor<5xf32>) outs(%full : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<5x7xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<5x7xf32>) outs(%line : tensor<5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %soft = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<5x7xf32>, tensor<5xf32>) outs(%full : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<5x7xf32>
  return %soft : tensor<5x7xf32>
}

// -----

// The logarithm of the sum instead, and the sum itself: the group has two results.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @log_softmax_and_sum
// CHECK: %[[R:.*]]:2 = "fusion.group"
// CHECK: math.log
// CHECK: kind = "reduction", label = "fused_log_softmax_sub"
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
func.func @log_softmax_and_sum(%x: tensor<5x7xf32>, %line: tensor<5xf32>) -> (tensor<5xf32>, tensor<5x7xf32>) {
  %full = tensor.empty() : tensor<5x7xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x7xf32>) outs(%line : tensor<5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.maximumf %a, %out : f32
    linalg.yield %m : f32
  } -> tensor<5xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<5x7xf32>, tensor<5xf32>) outs(%full : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<5x7xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<5x7xf32>) outs(%line : tensor<5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %soft = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<5x7xf32>, tensor<5xf32>, tensor<5xf32>) outs(%full : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %l = math.log %c : f32
    %d = arith.subf %a, %b : f32
    %q = arith.subf %d, %l : f32
    linalg.yield %q : f32
  } -> tensor<5x7xf32>
  return %sum, %soft : tensor<5xf32>, tensor<5x7xf32>
}

// -----

// A layer norm with its affine part: mean, squares of what is left, their mean, rsqrt by row, weight by column.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @layer_norm
// CHECK: "fusion.group"
// CHECK: kind = "reduction", label = "fused_layer_norm_mul"
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @layer_norm(%x: tensor<5x8xf32>, %line: tensor<5xf32>, %weight: tensor<8xf32>) -> tensor<5x8xf32> {
  %n = arith.constant 8.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %full = tensor.empty() : tensor<5x8xf32>
  %few = tensor.empty() : tensor<5xf32>
  %total = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x8xf32>) outs(%line : tensor<5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %centered = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %total : tensor<5x8xf32>, tensor<5xf32>) outs(%full : tensor<5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.divf %b, %n : f32
    %d = arith.subf %a, %m : f32
    linalg.yield %d : f32
  } -> tensor<5x8xf32>
  %squares = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%centered : tensor<5x8xf32>) outs(%line : tensor<5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %p = arith.mulf %a, %a : f32
    %s = arith.addf %p, %out : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %inverse = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%squares : tensor<5xf32>) outs(%few : tensor<5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.divf %a, %n : f32
    %e = arith.addf %v, %eps : f32
    %r = math.rsqrt %e : f32
    linalg.yield %r : f32
  } -> tensor<5xf32>
  %result = linalg.generic {indexing_maps = [#id, #row, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%centered, %inverse, %weight : tensor<5x8xf32>, tensor<5xf32>, tensor<8xf32>) outs(%full : tensor<5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %c : f32
    linalg.yield %q : f32
  } -> tensor<5x8xf32>
  return %result : tensor<5x8xf32>
}

// -----

// The largest element of each row and its place, which are computed by one op, and a cast of the value.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @place_and_value
// CHECK: %[[R:.*]]:2 = "fusion.group"
// CHECK: linalg.index
// CHECK: arith.extf
// CHECK: kind = "reduction"
// CHECK-NOT: "fusion.group"
// CHECK: return %[[R]]#
func.func @place_and_value(%x: tensor<5x7xf32>, %line: tensor<5xf32>, %places: tensor<5xi64>) -> (tensor<5xi64>, tensor<5xf64>) {
  %both:2 = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x7xf32>) outs(%line, %places : tensor<5xf32>, tensor<5xi64>) {
  ^bb0(%a: f32, %out: f32, %place: i64):
    %i = linalg.index 1 : index
    %now = arith.index_cast %i : index to i64
    %larger = arith.cmpf ogt, %a, %out : f32
    %v = arith.select %larger, %a, %out : f32
    %p = arith.select %larger, %now, %place : i64
    linalg.yield %v, %p : f32, i64
  } -> (tensor<5xf32>, tensor<5xi64>)
  %empty = tensor.empty() : tensor<5xf64>
  %wide = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%both#0 : tensor<5xf32>) outs(%empty : tensor<5xf64>) {
  ^bb0(%a: f32, %out: f64):
    %w = arith.extf %a : f32 to f64
    linalg.yield %w : f64
  } -> tensor<5xf64>
  return %both#1, %wide : tensor<5xi64>, tensor<5xf64>
}
