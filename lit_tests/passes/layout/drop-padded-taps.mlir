// RUN: pipeline-opt %s --split-input-file --drop-padded-taps | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --drop-padded-taps --remarks-filter=drop-padded-taps --verify-diagnostics

// Three taps that lie 20 apart in lines of 30: the first reads data in the last ten places alone, the last one in the
// first ten, and in the middle there is one.

// CHECK-LABEL: func.func @bands
// CHECK-SAME: (%[[X:.*]]: tensor<1x128x30xf32>, %[[W:.*]]: tensor<256x128x3xf32> {{.*}}, %[[B:.*]]: tensor<256xf32>)
// CHECK: %[[W0:.*]] = tensor.extract_slice %[[W]][0, 0, 1] [256, 128, 2] [1, 1, 1]
// CHECK: %[[B0:.*]] = linalg.broadcast ins(%[[B]] : tensor<256xf32>) outs({{.*}} : tensor<1x256x10xf32>)
// CHECK: %[[C0:.*]] = linalg.conv_1d_ncw_fcw {{.*}} ins(%[[X]], %[[W0]] : {{.*}}) outs(%[[B0]] : {{.*}}) -> tensor<1x256x10xf32>
// CHECK: %[[I0:.*]] = tensor.insert_slice %[[C0]] into %{{.*}}[0, 0, 0] [1, 256, 10] [1, 1, 1]
// CHECK: tensor.extract_slice %[[X]][0, 0, 10] [1, 128, 10] [1, 1, 1]
// CHECK: tensor.extract_slice %[[W]][0, 0, 1] [256, 128, 1] [1, 1, 1]
// CHECK: %[[I1:.*]] = tensor.insert_slice %{{.*}} into %[[I0]][0, 0, 10] [1, 256, 10] [1, 1, 1]
// CHECK: tensor.extract_slice %[[W]][0, 0, 0] [256, 128, 2] [1, 1, 1]
// CHECK: %[[I2:.*]] = tensor.insert_slice %{{.*}} into %[[I1]][0, 0, 20] [1, 256, 10] [1, 1, 1]
// CHECK: return %[[I2]]
func.func @bands(%x: tensor<1x128x30xf32>, %w: tensor<256x128x3xf32> {pipeline.weight = "w"}, %b: tensor<256xf32>) -> tensor<1x256x30xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 20] high[0, 0, 20] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x128x30xf32> to tensor<1x128x70xf32>
  %e = tensor.empty() : tensor<1x256x30xf32>
  %init = linalg.broadcast ins(%b : tensor<256xf32>) outs(%e : tensor<1x256x30xf32>) dimensions = [0, 2]
  // expected-remark @below {{computes 56 % of its products, in 3 parts: others are of padding}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<20> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p, %w : tensor<1x128x70xf32>, tensor<256x128x3xf32>) outs(%init : tensor<1x256x30xf32>) -> tensor<1x256x30xf32>
  return %c : tensor<1x256x30xf32>
}

// -----

// The outer taps read no data at all: the weight is its middle, and nothing is padded.

// CHECK-LABEL: func.func @nowhere
// CHECK-SAME: (%[[X:.*]]: tensor<1x128x30xf32>, %[[W:.*]]: tensor<256x128x3xf32>, %[[I:.*]]: tensor<1x256x30xf32>)
// CHECK: %[[S:.*]] = tensor.extract_slice %[[W]][0, 0, 1] [256, 128, 1] [1, 1, 1]
// CHECK: linalg.conv_1d_ncw_fcw {{.*}} ins(%[[X]], %[[S]] : {{.*}}) outs(%[[I]] : {{.*}})
func.func @nowhere(%x: tensor<1x128x30xf32>, %w: tensor<256x128x3xf32>, %init: tensor<1x256x30xf32>) -> tensor<1x256x30xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 30] high[0, 0, 30] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x128x30xf32> to tensor<1x128x90xf32>
  // expected-remark @below {{computes 33 % of its products: others are of padding}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<30> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p, %w : tensor<1x128x90xf32>, tensor<256x128x3xf32>) outs(%init : tensor<1x256x30xf32>) -> tensor<1x256x30xf32>
  return %c : tensor<1x256x30xf32>
}

// -----

// Padded as transposed convolutions are, and the gradients of others by their data.

// CHECK-LABEL: func.func @inserted
// CHECK-SAME: (%[[X:.*]]: tensor<1x128x30xf32>, %[[W:.*]]: tensor<256x128x3xf32>, %[[I:.*]]: tensor<1x256x30xf32>)
// CHECK: %[[S:.*]] = tensor.extract_slice %[[W]][0, 0, 1] [256, 128, 1] [1, 1, 1]
// CHECK: linalg.conv_1d_ncw_fcw {{.*}} ins(%[[X]], %[[S]] : {{.*}}) outs(%[[I]] : {{.*}})
func.func @inserted(%x: tensor<1x128x30xf32>, %w: tensor<256x128x3xf32>, %init: tensor<1x256x30xf32>) -> tensor<1x256x30xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x128x90xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x128x90xf32>) -> tensor<1x128x90xf32>
  %p = tensor.insert_slice %x into %z[0, 0, 30] [1, 128, 30] [1, 1, 1] : tensor<1x128x30xf32> into tensor<1x128x90xf32>
  // expected-remark @below {{computes 33 % of its products: others are of padding}}
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<30> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p, %w : tensor<1x128x90xf32>, tensor<256x128x3xf32>) outs(%init : tensor<1x256x30xf32>) -> tensor<1x256x30xf32>
  return %c : tensor<1x256x30xf32>
}

// -----

// Zeros lie between the elements, too.

// CHECK-LABEL: func.func @between
// CHECK: tensor.insert_slice
// CHECK-NOT: tensor.extract_slice
func.func @between(%x: tensor<1x128x15xf32>, %w: tensor<256x128x3xf32>, %init: tensor<1x256x30xf32>) -> tensor<1x256x30xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x128x90xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x128x90xf32>) -> tensor<1x128x90xf32>
  %p = tensor.insert_slice %x into %z[0, 0, 30] [1, 128, 15] [1, 1, 2] : tensor<1x128x15xf32> into tensor<1x128x90xf32>
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<30> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p, %w : tensor<1x128x90xf32>, tensor<256x128x3xf32>) outs(%init : tensor<1x256x30xf32>) -> tensor<1x256x30xf32>
  return %c : tensor<1x256x30xf32>
}

// -----

// What stands around the data are no zeros.

// CHECK-LABEL: func.func @ones
// CHECK: tensor.pad
// CHECK-NOT: tensor.extract_slice
func.func @ones(%x: tensor<1x128x30xf32>, %w: tensor<256x128x3xf32>, %init: tensor<1x256x30xf32>) -> tensor<1x256x30xf32> {
  %one = arith.constant 1.0 : f32
  %p = tensor.pad %x low[0, 0, 30] high[0, 0, 30] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %one : f32
  } : tensor<1x128x30xf32> to tensor<1x128x90xf32>
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<30> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p, %w : tensor<1x128x90xf32>, tensor<256x128x3xf32>) outs(%init : tensor<1x256x30xf32>) -> tensor<1x256x30xf32>
  return %c : tensor<1x256x30xf32>
}

// -----

// Too few of the products read padding.

// CHECK-LABEL: func.func @few
// CHECK: tensor.pad
// CHECK-NOT: tensor.extract_slice
func.func @few(%x: tensor<1x128x30xf32>, %w: tensor<256x128x3xf32>, %init: tensor<1x256x30xf32>) -> tensor<1x256x30xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 4] high[0, 0, 4] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x128x30xf32> to tensor<1x128x38xf32>
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<4> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p, %w : tensor<1x128x38xf32>, tensor<256x128x3xf32>) outs(%init : tensor<1x256x30xf32>) -> tensor<1x256x30xf32>
  return %c : tensor<1x256x30xf32>
}

// -----

// Three parts of one element each would read seven taps of the weight instead of three. (Without that rule: 78 %.)

// CHECK-LABEL: func.func @small
// CHECK: tensor.pad
// CHECK-NOT: tensor.extract_slice
func.func @small(%x: tensor<1x1024x3xf32>, %w: tensor<1024x1024x3xf32> {pipeline.weight = "w"}, %init: tensor<1x1024x3xf32>) -> tensor<1x1024x3xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x1024x3xf32> to tensor<1x1024x5xf32>
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p, %w : tensor<1x1024x5xf32>, tensor<1024x1024x3xf32>) outs(%init : tensor<1x1024x3xf32>) -> tensor<1x1024x3xf32>
  return %c : tensor<1x1024x3xf32>
}

// -----

// As in @bands, but the weight would have to be cut and packed at each call.

// CHECK-LABEL: func.func @cut_each_time
// CHECK: tensor.pad
// CHECK-NOT: tensor.extract_slice
func.func @cut_each_time(%x: tensor<1x128x30xf32>, %w: tensor<256x128x3xf32>, %init: tensor<1x256x30xf32>) -> tensor<1x256x30xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 20] high[0, 0, 20] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x128x30xf32> to tensor<1x128x70xf32>
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<20> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p, %w : tensor<1x128x70xf32>, tensor<256x128x3xf32>) outs(%init : tensor<1x256x30xf32>) -> tensor<1x256x30xf32>
  return %c : tensor<1x256x30xf32>
}

// -----

// Sizes that are found at run time.

// CHECK-LABEL: func.func @unknown
// CHECK: tensor.pad
// CHECK-NOT: tensor.extract_slice
func.func @unknown(%x: tensor<1x128x?xf32>, %w: tensor<256x128x3xf32>, %init: tensor<1x256x?xf32>) -> tensor<1x256x?xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 30] high[0, 0, 30] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x128x?xf32> to tensor<1x128x?xf32>
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<30> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p, %w : tensor<1x128x?xf32>, tensor<256x128x3xf32>) outs(%init : tensor<1x256x?xf32>) -> tensor<1x256x?xf32>
  return %c : tensor<1x256x?xf32>
}
