// RUN: pipeline-opt %s --split-input-file --separate-bias | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --separate-bias --remarks-filter=separate-bias --verify-diagnostics

// The bias is added to the sum, one number for each channel.

// CHECK: #[[ALL:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: #[[CHANNEL:.*]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-LABEL: func.func @convolution(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x6xf32>, %[[W:.*]]: tensor<4x3x3xf32> {{.*}}, %[[B:.*]]: tensor<4xf32>
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[START:.*]] = linalg.fill ins(%[[ZERO]] : f32)
// CHECK: %[[Y:.*]] = linalg.conv_1d_ncw_fcw ins(%[[X]], %[[W]] : {{.*}}) outs(%[[START]] :
// CHECK: %[[Z:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[CHANNEL]], #[[ALL]]]{{.*}}ins(%[[Y]], %[[B]] :
// CHECK: arith.addf
// CHECK: return %[[Z]]
func.func @convolution(%x: tensor<2x3x6xf32>, %w: tensor<4x3x3xf32> {pipeline.weight = "w"},
    %b: tensor<4xf32> {pipeline.weight = "b"}) -> tensor<2x4x4xf32> {
  %e = tensor.empty() : tensor<2x4x4xf32>
  %init = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<2x4x4xf32>) dimensions = [0, 2]
  // expected-remark @below {{passed: adds the bias of conv1d to its result}}
  %y = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<2x3x6xf32>, tensor<4x3x3xf32>)
      outs(%init : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %y : tensor<2x4x4xf32>
}

// -----

// A number for all elements, and in the body of a loop.

// CHECK-LABEL: func.func @in_a_loop(
// CHECK: scf.for
// CHECK: %[[Y:.*]] = linalg.matmul
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} ins(%[[Y]] : tensor<3x3xf32>)
// CHECK: arith.addf
// CHECK: scf.yield %[[Z]]
func.func @in_a_loop(%x: tensor<3x3xf32>, %w: tensor<3x3xf32> {pipeline.weight = "w"}, %n: index) -> tensor<3x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<3x3xf32>
  %init = linalg.fill ins(%two : f32) outs(%e : tensor<3x3xf32>) -> tensor<3x3xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<3x3xf32> {
    // expected-remark @below {{passed: adds the bias of matmul to its result}}
    %y = linalg.matmul ins(%a, %w : tensor<3x3xf32>, tensor<3x3xf32>) outs(%init : tensor<3x3xf32>) -> tensor<3x3xf32>
    scf.yield %y : tensor<3x3xf32>
  }
  return %r : tensor<3x3xf32>
}

// -----

// Must not fire: it starts from zero already.

// CHECK-LABEL: func.func @no_bias(
// CHECK: %[[Y:.*]] = linalg.matmul
// CHECK-NEXT: return %[[Y]]
func.func @no_bias(%x: tensor<2x3xf32>, %w: tensor<3x4xf32> {pipeline.weight = "w"}) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x4xf32>) outs(%init : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// A bias that is data, as in training, is read where it is.

// CHECK: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[CHANNEL:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @bias_that_is_data(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>, %[[W:.*]]: tensor<3x4xf32> {{.*}}, %[[B:.*]]: tensor<4xf32>)
// CHECK: %[[START:.*]] = linalg.fill
// CHECK: %[[Y:.*]] = linalg.matmul ins(%[[X]], %[[W]] : {{.*}}) outs(%[[START]] :
// CHECK: %[[Z:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[CHANNEL]], #[[ALL]]]{{.*}}ins(%[[Y]], %[[B]] :
// CHECK: arith.addf
// CHECK: return %[[Z]]
func.func @bias_that_is_data(%x: tensor<2x3xf32>, %w: tensor<3x4xf32> {pipeline.weight = "w"},
    %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %e = tensor.empty() : tensor<2x4xf32>
  %init = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<2x4xf32>) dimensions = [0]
  // expected-remark @below {{passed: adds the bias of matmul to its result}}
  %y = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x4xf32>) outs(%init : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// Must not fire: what it starts from is data, which may be updated in place.

// CHECK-LABEL: func.func @adds_to_data(
// CHECK: %[[Y:.*]] = linalg.matmul {{.*}} outs(%arg2 :
// CHECK-NEXT: return %[[Y]]
func.func @adds_to_data(%x: tensor<2x3xf32>, %w: tensor<3x4xf32> {pipeline.weight = "w"},
    %z: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x4xf32>) outs(%z : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// Must not fire: integers.

// CHECK-LABEL: func.func @integers(
// CHECK: %[[INIT:.*]] = linalg.broadcast
// CHECK: %[[Y:.*]] = linalg.matmul {{.*}} outs(%[[INIT]] :
// CHECK-NEXT: return %[[Y]]
func.func @integers(%x: tensor<2x3xi32>, %w: tensor<3x4xi32> {pipeline.weight = "w"},
    %b: tensor<4xi32> {pipeline.weight = "b"}) -> tensor<2x4xi32> {
  %e = tensor.empty() : tensor<2x4xi32>
  %init = linalg.broadcast ins(%b : tensor<4xi32>) outs(%e : tensor<2x4xi32>) dimensions = [0]
  %y = linalg.matmul ins(%x, %w : tensor<2x3xi32>, tensor<3x4xi32>) outs(%init : tensor<2x4xi32>) -> tensor<2x4xi32>
  return %y : tensor<2x4xi32>
}
