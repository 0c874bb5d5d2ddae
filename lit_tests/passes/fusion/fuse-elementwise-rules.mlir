// RUN: pipeline-opt %s --split-input-file --fuse-elementwise=rules=%S/Inputs/gemm-relu.yaml | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --fuse-elementwise=rules=%S/Inputs/gemm-relu.yaml --remarks-filter=fuse-elementwise --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --fuse-elementwise | FileCheck %s --check-prefix=CPU

// The table takes a product with bias and relu as one call, and nothing else: the two become one op behind the product,
// the exp after them and the exp that makes the bias stay outside. On the CPU all of it is one op.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
#vec = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @epilogue
// CHECK: %[[BIAS:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK-NEXT: %[[R:.*]] = linalg.generic
// CHECK-SAME: ins(%[[P]], %[[BIAS]] :
// CHECK: arith.addf
// CHECK-NEXT: arith.cmpf
// CHECK-NEXT: arith.select
// CHECK-NEXT: linalg.yield
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[R]] :
// CHECK: math.exp
// CHECK-NEXT: linalg.yield

// CPU-LABEL: func.func @epilogue
// CPU: linalg.matmul
// CPU-NEXT: linalg.generic
// CPU: arith.addf
// CPU-NEXT: arith.cmpf
// CPU-NEXT: arith.select
// CPU-NEXT: math.exp
// CPU-NEXT: linalg.yield
func.func @epilogue(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %bias: tensor<4xf32>, %init: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %made = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
      ins(%bias : tensor<4xf32>) outs(%bias : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %e = math.exp %in : f32
    linalg.yield %e : f32
  } -> tensor<4xf32>
  %product = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%product, %made : tensor<4x4xf32>, tensor<4xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
    linalg.yield %sum : f32
  } -> tensor<4x4xf32>
  // expected-remark @below {{missed: does not compute its operand 1, linalg.generic, itself: it would be computed several times for each element}}
  // expected-remark @below {{passed: computes its operand 0, linalg.generic, itself}}
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %c = arith.cmpf ugt, %x, %zero : f32
    %r = arith.select %c, %x, %zero : f32
    linalg.yield %r : f32
  } -> tensor<4x4xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: table npu takes add, relu as epilogue of matmul, not exp [fuse-elementwise, linalg.generic, rule; fused_add_relu at}}
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %e = math.exp %x : f32
    linalg.yield %e : f32
  } -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// Must not fire: with no product before them the table joins nothing, not even what the epilogue takes.

#vec = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @no_anchor
// CHECK: arith.addf
// CHECK-NEXT: linalg.yield
// CHECK: arith.select
// CPU-LABEL: func.func @no_anchor
// CPU: arith.addf
// CPU-NEXT: arith.cmpf
func.func @no_anchor(%a: tensor<4xf32>, %b: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#vec, #vec, #vec], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: table npu has no kind elementwise}}
  %1 = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%x0: f32, %out: f32):
    %c = arith.cmpf ugt, %x0, %zero : f32
    %s = arith.select %c, %x0, %zero : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Must not fire: an exp between the product and what the epilogue would take; and a product of a dtype that is no anchor.

#vec = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @not_reached
// CHECK: linalg.matvec
// CHECK: math.exp
// CHECK-NEXT: linalg.yield
// CHECK: arith.addf
// CHECK-NEXT: linalg.yield
// CHECK: arith.select
func.func @not_reached(%m: tensor<4x4xf32>, %v: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %product = linalg.matvec ins(%m, %v : tensor<4x4xf32>, tensor<4xf32>) outs(%init : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
      ins(%product : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%x0: f32, %out: f32):
    %s = math.exp %x0 : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: table npu has no kind elementwise}}
  %1 = linalg.generic {indexing_maps = [#vec, #vec, #vec], iterator_types = ["parallel"]}
      ins(%0, %v : tensor<4xf32>, tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: table npu has no kind elementwise}}
  %2 = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
      ins(%1 : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%x0: f32, %out: f32):
    %c = arith.cmpf ugt, %x0, %zero : f32
    %s = arith.select %c, %x0, %zero : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @dtype
// CHECK: linalg.matvec
// CHECK: arith.addf
// CHECK-NEXT: linalg.yield
// CHECK: arith.addf
// CPU-LABEL: func.func @dtype
// CPU: linalg.matvec
// CPU: arith.addf
// CPU-NEXT: arith.addf
func.func @dtype(%m: tensor<4x4xf64>, %v: tensor<4xf64>, %init: tensor<4xf64>) -> tensor<4xf64> {
  %product = linalg.matvec ins(%m, %v : tensor<4x4xf64>, tensor<4xf64>) outs(%init : tensor<4xf64>) -> tensor<4xf64>
  %0 = linalg.generic {indexing_maps = [#vec, #vec, #vec], iterator_types = ["parallel"]}
      ins(%product, %v : tensor<4xf64>, tensor<4xf64>) outs(%init : tensor<4xf64>) {
  ^bb0(%x0: f64, %x1: f64, %out: f64):
    %s = arith.addf %x0, %x1 : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: table npu has no kind elementwise}}
  %1 = linalg.generic {indexing_maps = [#vec, #vec, #vec], iterator_types = ["parallel"]}
      ins(%0, %v : tensor<4xf64>, tensor<4xf64>) outs(%init : tensor<4xf64>) {
  ^bb0(%x0: f64, %x1: f64, %out: f64):
    %s = arith.addf %x0, %x1 : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %1 : tensor<4xf64>
}

// -----

// Must not fire: fusion stops behind an op with this mark, whatever the table says; the mark outlives a fusion before it.

#vec = affine_map<(d0) -> (d0)>

// CPU-LABEL: func.func @barrier
// CPU: math.exp
// CPU-NEXT: arith.addf
// CPU-NEXT: linalg.yield
// CPU: arith.select
func.func @barrier(%a: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%x0: f32, %out: f32):
    %s = math.exp %x0 : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  // expected-remark @below {{does not compute its operand 0, linalg.generic, itself: table npu has no kind elementwise}}
  %1 = linalg.generic {indexing_maps = [#vec, #vec, #vec], iterator_types = ["parallel"]}
      ins(%0, %a : tensor<4xf32>, tensor<4xf32>) outs(%init : tensor<4xf32>) attrs = {pipeline.stop_fusion} {
  ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  // expected-remark @below {{does not compute its operand 0, linalg.generic, itself: fusion stops behind it [fuse-elementwise, linalg.generic, barrier}}
  %2 = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
      ins(%1 : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%x0: f32, %out: f32):
    %c = arith.cmpf ugt, %x0, %zero : f32
    %s = arith.select %c, %x0, %zero : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Must not fire: ops of two targets. Two that are marked alike go by the table of that target.

#vec = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @targets
// CHECK: attrs = {pipeline.target = "cpu"}
// CHECK: math.exp
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
// CHECK: arith.select
func.func @targets(%a: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%init : tensor<4xf32>) attrs = {pipeline.target = "cpu"} {
  ^bb0(%x0: f32, %out: f32):
    %s = math.exp %x0 : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  // expected-remark @below {{passed}}
  %1 = linalg.generic {indexing_maps = [#vec, #vec, #vec], iterator_types = ["parallel"]}
      ins(%0, %a : tensor<4xf32>, tensor<4xf32>) outs(%init : tensor<4xf32>) attrs = {pipeline.target = "cpu"} {
  ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  // expected-remark @below {{does not compute its operand 0, linalg.generic, itself: it is for cpu, the consumer for npu [fuse-elementwise, linalg.generic, other-target}}
  %2 = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
      ins(%1 : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%x0: f32, %out: f32):
    %c = arith.cmpf ugt, %x0, %zero : f32
    %s = arith.select %c, %x0, %zero : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
