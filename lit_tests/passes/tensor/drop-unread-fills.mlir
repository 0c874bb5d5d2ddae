// RUN: pipeline-opt %s --drop-unread-fills | FileCheck %s
// RUN: pipeline-opt %s --drop-unread-fills --remarks-filter=drop-unread-fills --verify-diagnostics

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// What a gather overwrites as a whole is not filled.

// CHECK-LABEL: func.func @overwritten
// CHECK-SAME: (%[[X:.*]]: tensor<4x5xf32>)
// CHECK: %[[E:.*]] = tensor.empty()
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic {{.*}} outs(%[[E]] :
func.func @overwritten(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x5xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  // expected-remark @below {{passed: overwrites what is filled for its result 0}}
  %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%filled : tensor<4x5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c4 = arith.constant 4 : index
    %back = arith.subi %c4, %j : index
    %element = tensor.extract %x[%i, %back] : tensor<4x5xf32>
    linalg.yield %element : f32
  } -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// Must not fire: a body that reads what is filled, a sum, and what is no fill.

// CHECK-LABEL: func.func @read
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: linalg.generic {{.*}} outs(%[[F]] :
// CHECK: %[[S:.*]] = linalg.fill
// CHECK: linalg.generic {{.*}} outs(%[[S]] :
// CHECK: linalg.generic {{.*}} outs(%arg0 :
func.func @read(%x: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4xf32>, tensor<4x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x5xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x5xf32>) outs(%filled : tensor<4x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<4x5xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %rows = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x5xf32>) outs(%zeros : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x5xf32>) outs(%x : tensor<4x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %twice = arith.addf %in, %in : f32
    linalg.yield %twice : f32
  } -> tensor<4x5xf32>
  return %y, %rows, %z : tensor<4x5xf32>, tensor<4xf32>, tensor<4x5xf32>
}
