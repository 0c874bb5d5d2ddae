// RUN: pipeline-opt %s --split-transposed-convs="most=4" --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-transposed-convs="most=4" --remarks-filter=split-transposed-convs --verify-diagnostics

// Results at even places meet two taps, those at odd ones a single one: y[2 q] = x[q - 1] w[0] + x[q] w[2].

// CHECK-LABEL: func.func @steps
// CHECK-SAME: (%[[X:.*]]: tensor<1x2x3xf32>, %[[W:.*]]: tensor<4x2x3xf32>)
// CHECK: %[[EVEN:.*]] = tensor.extract_slice %[[W]][0, 0, 0] [4, 2, 2] [1, 1, 2]
// CHECK: %[[AROUND:.*]] = tensor.insert_slice %[[X]] into %{{.*}}[0, 0, 1] [1, 2, 3] [1, 1, 1] : tensor<1x2x3xf32> into tensor<1x2x5xf32>
// CHECK: %[[Y0:.*]] = linalg.conv_1d_ncw_fcw {{.*}} ins(%[[AROUND]], %[[EVEN]] :
// CHECK: %[[HALF:.*]] = tensor.insert_slice %[[Y0]] into %{{.*}}[0, 0, 0, 0]
// CHECK: %[[ODD:.*]] = tensor.extract_slice %[[W]][0, 0, 1] [4, 2, 1] [1, 1, 2]
// CHECK: %[[Y1:.*]] = linalg.conv_1d_ncw_fcw {{.*}} ins(%{{.*}}, %[[ODD]] :
// CHECK: %[[BOTH:.*]] = tensor.insert_slice %[[Y1]] into %[[HALF]][1, 0, 0, 0]
// CHECK: %[[MIXED:.*]] = linalg.generic {{.*}} ins(%[[BOTH]] :
// CHECK: %[[LINE:.*]] = tensor.collapse_shape %{{.*}} {{\[}}[0], [1], [2, 3]] : tensor<1x4x4x2xf32> into tensor<1x4x8xf32>
// CHECK: tensor.extract_slice %[[LINE]][0, 0, 0] [1, 4, 7]
func.func @steps(%x: tensor<1x2x3xf32>, %w: tensor<4x2x3xf32>) -> tensor<1x4x7xf32> {
  %zero = arith.constant 0.0 : f32
  %around = tensor.empty() : tensor<1x2x9xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%around : tensor<1x2x9xf32>) -> tensor<1x2x9xf32>
  %spread = tensor.insert_slice %x into %zeros[0, 0, 2] [1, 2, 3] [1, 1, 2] : tensor<1x2x3xf32> into tensor<1x2x9xf32>
  %out = tensor.empty() : tensor<1x4x7xf32>
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>
  // expected-remark @below {{passed: becomes 2 convolutions without the zeros between}}
  %y = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%spread, %w : tensor<1x2x9xf32>, tensor<4x2x3xf32>) outs(%start : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>
  return %y : tensor<1x4x7xf32>
}

// What the sums start from is added to them, where it is no number.

// CHECK-LABEL: func.func @from_a_tensor
// CHECK-SAME: %[[FROM:[a-z0-9]+]]: tensor<1x4x7xf32>)
// CHECK-COUNT-2: linalg.conv_1d_ncw_fcw
// CHECK: %[[Y:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [1, 4, 7]
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %[[FROM]] :
// CHECK: arith.addf
func.func @from_a_tensor(%x: tensor<1x2x3xf32>, %w: tensor<4x2x3xf32>, %from: tensor<1x4x7xf32>) -> tensor<1x4x7xf32> {
  %zero = arith.constant 0.0 : f32
  %around = tensor.empty() : tensor<1x2x9xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%around : tensor<1x2x9xf32>) -> tensor<1x2x9xf32>
  %spread = tensor.insert_slice %x into %zeros[0, 0, 2] [1, 2, 3] [1, 1, 2] : tensor<1x2x3xf32> into tensor<1x2x9xf32>
  // expected-remark @below {{passed: becomes 2 convolutions without the zeros between}}
  %y = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%spread, %w : tensor<1x2x9xf32>, tensor<4x2x3xf32>) outs(%from : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>
  return %y : tensor<1x4x7xf32>
}

// Must not fire: no zeros between, other numbers than zeros, gaps in the kernel, too many.

// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: linalg.conv_1d_ncw_fcw
// CHECK-NOT: linalg.conv_1d_ncw_fcw
// CHECK: return
func.func @others(%x: tensor<1x2x3xf32>, %w: tensor<4x2x3xf32>)
    -> (tensor<1x4x7xf32>, tensor<1x4x7xf32>, tensor<1x4x5xf32>, tensor<1x4x19xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e9 = tensor.empty() : tensor<1x2x9xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e9 : tensor<1x2x9xf32>) -> tensor<1x2x9xf32>
  %ones = linalg.fill ins(%one : f32) outs(%e9 : tensor<1x2x9xf32>) -> tensor<1x2x9xf32>
  %e7 = tensor.empty() : tensor<1x4x7xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e7 : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>

  %dense = tensor.insert_slice %x into %zeros[0, 0, 2] [1, 2, 3] [1, 1, 1] : tensor<1x2x3xf32> into tensor<1x2x9xf32>
  %a = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%dense, %w : tensor<1x2x9xf32>, tensor<4x2x3xf32>) outs(%start : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>

  %among = tensor.insert_slice %x into %ones[0, 0, 2] [1, 2, 3] [1, 1, 2] : tensor<1x2x3xf32> into tensor<1x2x9xf32>
  %b = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%among, %w : tensor<1x2x9xf32>, tensor<4x2x3xf32>) outs(%start : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>

  %spread = tensor.insert_slice %x into %zeros[0, 0, 2] [1, 2, 3] [1, 1, 2] : tensor<1x2x3xf32> into tensor<1x2x9xf32>
  %e5 = tensor.empty() : tensor<1x4x5xf32>
  %start5 = linalg.fill ins(%zero : f32) outs(%e5 : tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  // expected-remark @below {{missed: it has steps or gaps of its own}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<2> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%spread, %w : tensor<1x2x9xf32>, tensor<4x2x3xf32>) outs(%start5 : tensor<1x4x5xf32>) -> tensor<1x4x5xf32>

  %e21 = tensor.empty() : tensor<1x2x21xf32>
  %zeros21 = linalg.fill ins(%zero : f32) outs(%e21 : tensor<1x2x21xf32>) -> tensor<1x2x21xf32>
  %far = tensor.insert_slice %x into %zeros21[0, 0, 2] [1, 2, 3] [1, 1, 5] : tensor<1x2x3xf32> into tensor<1x2x21xf32>
  %e19 = tensor.empty() : tensor<1x4x19xf32>
  %start19 = linalg.fill ins(%zero : f32) outs(%e19 : tensor<1x4x19xf32>) -> tensor<1x4x19xf32>
  // expected-remark @below {{missed: 5 would be many}}
  %e = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%far, %w : tensor<1x2x21xf32>, tensor<4x2x3xf32>) outs(%start19 : tensor<1x4x19xf32>) -> tensor<1x4x19xf32>
  return %a, %b, %c, %e : tensor<1x4x7xf32>, tensor<1x4x7xf32>, tensor<1x4x5xf32>, tensor<1x4x19xf32>
}
