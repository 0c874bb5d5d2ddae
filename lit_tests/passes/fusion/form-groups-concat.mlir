// RUN: pipeline-opt %s --split-input-file --form-groups | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --form-groups --remarks-filter=form-groups --verify-diagnostics

// A concatenation joins the group that reads it, and so does what computes a part. Both readers come along.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @read
// CHECK: "fusion.group"(%{{.*}}, %{{.*}})
// CHECK: arith.negf
// CHECK: tensor.insert_slice
// CHECK: tensor.insert_slice
// CHECK: math.exp
// CHECK: math.sin
// CHECK: label = "fused_neg_concat_exp_sin"
// CHECK-NOT: fusion.group
func.func @read(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %ea = tensor.empty() : tensor<4x3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x3xf32>) outs(%ea : tensor<4x3xf32>) {
  ^bb0(%x: f32, %out: f32):
    %v = arith.negf %x : f32
    linalg.yield %v : f32
  } -> tensor<4x3xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  // expected-remark @below {{is in one elementwise group with its producer, linalg.generic}}
  %0 = tensor.insert_slice %n into %e[0, 0] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x8xf32>
  // expected-remark @below {{is in one elementwise group with its producer, tensor.insert_slice}}
  %1 = tensor.insert_slice %b into %0[0, 3] [4, 5] [1, 1] : tensor<4x5xf32> into tensor<4x8xf32>
  // expected-remark @below {{is in one elementwise group with its producer, tensor.insert_slice}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %v = math.exp %x : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{elementwise group of 5 ops}}
  // expected-remark @below {{is in one elementwise group with its producer, tensor.insert_slice}}
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %v = math.sin %x : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %r, %s : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Must not fire: it is a result as well, so that it has to be in its place anyway.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @returned
// CHECK: tensor.insert_slice
// CHECK: %[[C:.*]] = tensor.insert_slice
// CHECK: "fusion.group"(%[[C]])
func.func @returned(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x8xf32>
  %1 = tensor.insert_slice %b into %0[0, 3] [4, 5] [1, 1] : tensor<4x5xf32> into tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %v = math.exp %x : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %r, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Must not fire: a part is missing, so the rest is what was there before.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @part
// CHECK: %[[N:.*]] = "fusion.group"
// CHECK: label = "neg"
// CHECK: %[[C:.*]] = tensor.insert_slice %[[N]] into %{{.*}}[0, 2]
// CHECK: "fusion.group"(%[[C]])
// CHECK: label = "exp"
func.func @part(%a: tensor<4x3xf32>, %whole: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %ea = tensor.empty() : tensor<4x3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x3xf32>) outs(%ea : tensor<4x3xf32>) {
  ^bb0(%x: f32, %out: f32):
    %v = arith.negf %x : f32
    linalg.yield %v : f32
  } -> tensor<4x3xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = tensor.insert_slice %n into %whole[0, 2] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x8xf32>
  // expected-remark @below {{it only gives a result its place}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %v = math.exp %x : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// Must not fire: a product reads it, and an op that is not elementwise reads it besides the group.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @product
// CHECK: label = "neg"
// CHECK: tensor.insert_slice
// CHECK: tensor.insert_slice
// CHECK: label = "matmul"
// CHECK: label = "exp"
func.func @product(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>, %w: tensor<8x2xf32>, %o: tensor<4x2xf32>)
    -> (tensor<4x2xf32>, tensor<4x8xf32>) {
  %ea = tensor.empty() : tensor<4x3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x3xf32>) outs(%ea : tensor<4x3xf32>) {
  ^bb0(%x: f32, %out: f32):
    %v = arith.negf %x : f32
    linalg.yield %v : f32
  } -> tensor<4x3xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = tensor.insert_slice %n into %e[0, 0] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x8xf32>
  %1 = tensor.insert_slice %b into %0[0, 3] [4, 5] [1, 1] : tensor<4x5xf32> into tensor<4x8xf32>
  // expected-remark @below {{table cpu takes nothing as prologue of matmul, not concat}}
  %p = linalg.matmul ins(%1, %w : tensor<4x8xf32>, tensor<8x2xf32>) outs(%o : tensor<4x2xf32>) -> tensor<4x2xf32>
  // expected-remark @below {{ops that are not of the group's kind read the concatenation, too}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %v = math.exp %x : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %p, %r : tensor<4x2xf32>, tensor<4x8xf32>
}
