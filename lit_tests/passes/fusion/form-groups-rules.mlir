// RUN: pipeline-opt %s --split-input-file --form-groups=rules=%S/Inputs/gemm-relu.yaml --remarks-filter=form-groups --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --form-groups=rules=%S/Inputs/gemm-relu.yaml | FileCheck %s

// The table takes a product of f32 with an addition and a relu, and nothing else.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @relu
// CHECK: label = "fused_matmul_add_relu"
// CHECK-NOT: "fusion.group"
// CHECK: return
func.func @relu(%a: tensor<4x4xf32>, %init: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %product = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark @+2 {{passed: matmul group of 2 ops}}
  // expected-remark @below {{passed: is in one matmul group with its producer, linalg.matmul}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%product : tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %sum = arith.addf %x, %x : f32
    %positive = arith.cmpf ugt, %sum, %zero : f32
    %relu = arith.select %positive, %sum, %zero : f32
    linalg.yield %relu : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// Must not fire: exp is not in the table.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @exp
// CHECK: label = "matmul"
// CHECK: label = "exp"
func.func @exp(%a: tensor<4x4xf32>, %init: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %product = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark @below {{table npu takes add, relu as epilogue of matmul, not exp}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%product : tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %exp = math.exp %x : f32
    linalg.yield %exp : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// Must not fire: products of f64 stay alone.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @double
// CHECK: label = "matmul"
// CHECK: label = "add"
func.func @double(%a: tensor<4x4xf64>, %init: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %product = linalg.matmul ins(%a, %a : tensor<4x4xf64>, tensor<4x4xf64>) outs(%init : tensor<4x4xf64>) -> tensor<4x4xf64>
  // expected-remark @below {{missed}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%product : tensor<4x4xf64>) outs(%init : tensor<4x4xf64>) {
  ^bb0(%x: f64, %out: f64):
    %sum = arith.addf %x, %x : f64
    linalg.yield %sum : f64
  } -> tensor<4x4xf64>
  return %r : tensor<4x4xf64>
}
