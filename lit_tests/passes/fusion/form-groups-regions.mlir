// RUN: pipeline-opt %s --split-input-file --form-groups | FileCheck %s

// A product and its epilogue in a branch: one group there; the scalar and the tensors from outside become operands.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @branch
// CHECK-SAME: (%[[C:.*]]: i1, %[[A:.*]]: tensor<4x4xf32>, %[[S:.*]]: f32)
// CHECK: scf.if %[[C]]
// CHECK: "fusion.group"(%[[A]], %[[S]])
// CHECK: kind = "matmul", label = "fused_matmul_mul"
// CHECK: scf.yield
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @branch(%c: i1, %a: tensor<4x4xf32>, %s: f32) -> tensor<4x4xf32> {
  %r = scf.if %c -> tensor<4x4xf32> {
    %product = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
    %empty = tensor.empty() : tensor<4x4xf32>
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%product : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %scaled = arith.mulf %in, %s : f32
      linalg.yield %scaled : f32
    } -> tensor<4x4xf32>
    scf.yield %0 : tensor<4x4xf32>
  } else {
    scf.yield %a : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}

// -----

// In a loop: what it carries and what it captures become operands; the group stays inside.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @loop
// CHECK-SAME: (%[[N:.*]]: index, %[[W:.*]]: tensor<4x4xf32>, %[[X:.*]]: tensor<4x4xf32>)
// CHECK: scf.for {{.*}} iter_args(%[[H:.*]] = %[[X]])
// CHECK-NEXT: %[[R:.*]] = "fusion.group"(%[[H]], %[[W]])
// CHECK: kind = "matmul", label = "fused_matmul_tanh"
// CHECK-NEXT: scf.yield %[[R]]
func.func @loop(%n: index, %w: tensor<4x4xf32>, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<4x4xf32> {
    %empty = tensor.empty() : tensor<4x4xf32>
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
    %product = linalg.matmul ins(%h, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%fill : tensor<4x4xf32>) -> tensor<4x4xf32>
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%product : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %tanh = math.tanh %in : f32
      linalg.yield %tanh : f32
    } -> tensor<4x4xf32>
    scf.yield %0 : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}

// -----

// Must not fire over the border of a block: a product outside, what follows it inside of a branch that may not run. What
// the branch reads is a result of the product's group.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @other_block
// CHECK: %[[P:.*]] = "fusion.group"
// CHECK: label = "matmul"
// CHECK: scf.if
// CHECK-NEXT: "fusion.group"(%[[P]])
// CHECK: label = "exp"
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[P]]
func.func @other_block(%c: i1, %a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %product = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = scf.if %c -> tensor<4x4xf32> {
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%product : tensor<4x4xf32>) outs(%product : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %exp = math.exp %in : f32
      linalg.yield %exp : f32
    } -> tensor<4x4xf32>
    scf.yield %0 : tensor<4x4xf32>
  } else {
    scf.yield %product : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}

// -----

// A region of an op that stands between two ops counts as a reader and as a need: the branch reads the product, and the
// last op reads the branch, so the product and the last op are two groups.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @branch_between
// CHECK: %[[P:.*]] = "fusion.group"
// CHECK: label = "matmul"
// CHECK: %[[B:.*]] = scf.if
// CHECK: label = "exp"
// CHECK: "fusion.group"(%[[P]], %[[B]])
// CHECK: label = "add"
func.func @branch_between(%c: i1, %a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %empty = tensor.empty() : tensor<4x4xf32>
  %product = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = scf.if %c -> tensor<4x4xf32> {
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%product : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %exp = math.exp %in : f32
      linalg.yield %exp : f32
    } -> tensor<4x4xf32>
    scf.yield %0 : tensor<4x4xf32>
  } else {
    scf.yield %a : tensor<4x4xf32>
  }
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%product, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
    linalg.yield %sum : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
