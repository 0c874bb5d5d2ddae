// RUN: pipeline-opt %s --split-input-file --form-groups | FileCheck %s

// The fill and the empty tensor that a product starts from come along; both products get copies of them.

// CHECK-LABEL: func.func @initial_values
// CHECK-SAME: (%[[A:.*]]: tensor<4x4xf32>, %[[B:.*]]: tensor<4x4xf32>)
// CHECK-NOT: linalg
// CHECK: %[[P:.*]] = "fusion.group"(%[[A]], %[[B]]) ({
// CHECK-NEXT: ^bb0(%[[L:.*]]: tensor<4x4xf32>, %[[R:.*]]: tensor<4x4xf32>):
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[EMPTY:.*]] = tensor.empty() : tensor<4x4xf32>
// CHECK-NEXT: %[[FILL:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]] : tensor<4x4xf32>)
// CHECK-NEXT: %[[PRODUCT:.*]] = linalg.matmul ins(%[[L]], %[[R]] : {{.*}}) outs(%[[FILL]] : tensor<4x4xf32>)
// CHECK-NEXT: "fusion.yield"(%[[PRODUCT]])
// CHECK-NEXT: }) {kind = "matmul", label = "matmul"}
// CHECK-NEXT: "fusion.group"(%[[P]], %[[B]]) ({
// CHECK: linalg.fill
// CHECK: linalg.matmul
func.func @initial_values(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%fill : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.matmul ins(%0, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%fill : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// A fill that something else reads is a group of its own.

// CHECK-LABEL: func.func @a_fill_that_is_read
// CHECK-SAME: (%[[X:.*]]: f32, %[[N:.*]]: index)
// CHECK: %[[FILL:.*]] = "fusion.group"(%[[N]], %[[X]]) ({
// CHECK: linalg.fill
// CHECK: kind = "elementwise", label = "fill"
// CHECK: return %[[FILL]]
func.func @a_fill_that_is_read(%x: f32, %n: index) -> tensor<?xf32> {
  %empty = tensor.empty(%n) : tensor<?xf32>
  %fill = linalg.fill ins(%x : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  return %fill : tensor<?xf32>
}

// -----

// In a branch: what the body captures becomes an operand, a constant is copied in.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @captures
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<4xf32>, %[[S:.*]]: f32)
// CHECK: scf.if %[[C]]
// CHECK-NEXT: "fusion.group"(%[[X]], %[[S]]) ({
// CHECK-NEXT: ^bb0(%[[IN:.*]]: tensor<4xf32>, %[[INNER:.*]]: f32):
// CHECK-NEXT: %[[TWO:.*]] = arith.constant 2.000000e+00
// CHECK: arith.mulf %{{.*}}, %[[INNER]]
// CHECK-NEXT: arith.addf %{{.*}}, %[[TWO]]
// CHECK: kind = "elementwise", label = "fused_mul_add"
func.func @captures(%c: i1, %x: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %two = arith.constant 2.0 : f32
  %r = scf.if %c -> tensor<4xf32> {
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %product = arith.mulf %in, %s : f32
      %sum = arith.addf %product, %two : f32
      linalg.yield %sum : f32
    } -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A marked loop is one group, with the fill that it starts from; what is in it is not grouped again.

// CHECK-LABEL: func.func @marked_loop
// CHECK: "fusion.group"
// CHECK-NOT: "fusion.group"
// CHECK: linalg.fill
// CHECK-NOT: "fusion.group"
// CHECK: scf.for
// CHECK-NOT: "fusion.group"
// CHECK: linalg.fill
// CHECK: kind = "scan"
// CHECK-NOT: "fusion.group"
func.func @marked_loop(%n: index, %x: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %empty = tensor.empty() : tensor<4xf32>
  %fill = linalg.fill ins(%x : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %fill) -> tensor<4xf32> {
    %next = linalg.fill ins(%x : f32) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  } {pipeline.kernel = "scan"}
  return %r : tensor<4xf32>
}

// -----

// A number behind a barrier is copied into the group with its constant.

// CHECK-LABEL: func.func @marked_loop_of_one_iteration
// CHECK: "fusion.group"() ({
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[ONE:.*]] = "fusion.barrier"(%[[C1]])
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[ONE]] step
func.func @marked_loop_of_one_iteration() -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = arith.constant 2.0 : f32
  %one = "fusion.barrier"(%c1) : (index) -> index
  %empty = tensor.empty() : tensor<4xf32>
  %r = scf.for %i = %c0 to %one step %c1 iter_args(%t = %empty) -> tensor<4xf32> {
    %next = linalg.fill ins(%x : f32) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  } {pipeline.kernel = "scan"}
  return %r : tensor<4xf32>
}

// -----

// Must not fire: a loop without a mark stays a loop, around the group of the op in it; arith stays; a group stays.

// CHECK-LABEL: func.func @left_alone
// CHECK: arith.addf
// CHECK-NEXT: scf.for
// CHECK-NEXT: "fusion.group"
// CHECK: label = "exp"
// CHECK: "fusion.group"
// CHECK-NOT: "fusion.group"
// CHECK: label = "mine"
// CHECK-NOT: "fusion.group"
func.func @left_alone(%n: index, %x: f32, %t: tensor<4xf32>) -> (tensor<4xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %twice = arith.addf %x, %x : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> tensor<4xf32> {
    %next = linalg.exp ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  %g = "fusion.group"(%r) ({
  ^bb0(%b: tensor<4xf32>):
    %log = linalg.log ins(%b : tensor<4xf32>) outs(%b : tensor<4xf32>) -> tensor<4xf32>
    "fusion.yield"(%log) : (tensor<4xf32>) -> ()
  }) {kind = "elementwise", label = "mine"} : (tensor<4xf32>) -> tensor<4xf32>
  return %g, %twice : tensor<4xf32>, f32
}
