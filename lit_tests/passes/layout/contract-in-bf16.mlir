// RUN: pipeline-opt %s --split-input-file --contract-in-bf16="round=true least-sum=4" | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --contract-in-bf16="round=true least-sum=4" --remarks-filter=contract-in-bf16 --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --contract-in-bf16="least-sum=4" | FileCheck %s --check-prefix=EXACT
// RUN: pipeline-opt %s --split-input-file --contract-in-bf16="round=true supported=false least-sum=4" | FileCheck %s --check-prefix=OLD
// RUN: pipeline-opt %s --split-input-file --contract-in-bf16="round=true least-sum=4 keep={head}" | FileCheck %s --check-prefix=KEEP
// RUN: pipeline-opt %s --split-input-file --contract-in-bf16="f16=true least-sum=1 least-columns=1" | FileCheck %s --check-prefix=GPU

// Operands are rounded; the sum stays in f32. Without `round`, or a processor that has dot products, nothing changes.

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: (%[[X:.*]]: tensor<5x8xf32>, %[[W:.*]]: tensor<8x6xf32> {pipeline.weight = "head.w"}, %[[INIT:.*]]: tensor<5x6xf32>)
// CHECK: %[[XR:.*]] = linalg.generic
// CHECK-SAME: ins(%[[X]] : tensor<5x8xf32>)
// CHECK: arith.truncf
// CHECK: %[[WR:.*]] = linalg.generic
// CHECK-SAME: ins(%[[W]] : tensor<8x6xf32>)
// CHECK: arith.truncf
// CHECK: linalg.matmul ins(%[[XR]], %[[WR]] : tensor<5x8xbf16>, tensor<8x6xbf16>) outs(%[[INIT]] : tensor<5x6xf32>)
// EXACT-LABEL: func.func @matmul
// EXACT-NEXT: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<5x8xf32>, tensor<8x6xf32>)
// OLD-LABEL: func.func @matmul
// OLD-NEXT: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<5x8xf32>, tensor<8x6xf32>)
// KEEP-LABEL: func.func @matmul
// KEEP-NEXT: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<5x8xf32>, tensor<8x6xf32>)
func.func @matmul(%x: tensor<5x8xf32>, %w: tensor<8x6xf32> {pipeline.weight = "head.w"}, %init: tensor<5x6xf32>) -> tensor<5x6xf32> {
  // expected-remark @below {{passed: dot products of bf16, 2 operands rounded}}
  %r = linalg.matmul ins(%x, %w : tensor<5x8xf32>, tensor<8x6xf32>) outs(%init : tensor<5x6xf32>) -> tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}

// -----

// What was bf16 is read as such, behind a transpose, too: nothing is rounded, whatever the options.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @was_bf16
// CHECK-SAME: (%[[X:.*]]: tensor<5x8xbf16>, %[[W:.*]]: tensor<6x8xbf16>,
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[W]] : tensor<6x8xbf16>)
// CHECK: linalg.matmul ins(%[[X]], %[[T]] : tensor<5x8xbf16>, tensor<8x6xbf16>)
// EXACT-LABEL: func.func @was_bf16
// EXACT: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<5x8xbf16>, tensor<8x6xbf16>)
// KEEP-LABEL: func.func @was_bf16
// KEEP: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<5x8xbf16>, tensor<8x6xbf16>)
// OLD-LABEL: func.func @was_bf16
// OLD: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<5x8xf32>, tensor<8x6xf32>)
func.func @was_bf16(%x: tensor<5x8xbf16>, %w: tensor<6x8xbf16>, %init: tensor<5x6xf32>) -> tensor<5x6xf32> {
  %xe = tensor.empty() : tensor<5x8xf32>
  %x32 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x8xbf16>) outs(%xe : tensor<5x8xf32>) {
  ^bb0(%i: bf16, %o: f32):
    %e = arith.extf %i : bf16 to f32
    linalg.yield %e : f32
  } -> tensor<5x8xf32>
  %we = tensor.empty() : tensor<6x8xf32>
  %w32 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<6x8xbf16>) outs(%we : tensor<6x8xf32>) {
  ^bb0(%i: bf16, %o: f32):
    %e = arith.extf %i : bf16 to f32
    linalg.yield %e : f32
  } -> tensor<6x8xf32>
  %te = tensor.empty() : tensor<8x6xf32>
  %t = linalg.transpose ins(%w32 : tensor<6x8xf32>) outs(%te : tensor<8x6xf32>) permutation = [1, 0]
  // expected-remark @below {{passed: dot products of bf16}}
  %r = linalg.matmul ins(%x32, %t : tensor<5x8xf32>, tensor<8x6xf32>) outs(%init : tensor<5x6xf32>) -> tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}

// -----

// Data is rounded before a border of zeros is put around it; a border of something else is rounded with it.

// CHECK-LABEL: func.func @padded_convolution
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : bf16
// CHECK: %[[PAD:.*]] = tensor.pad %{{.*}} low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK: tensor.yield %[[ZERO]] : bf16
// CHECK: linalg.conv_2d_nchw_fchw
// CHECK-SAME: ins(%[[PAD]], %{{.*}} : tensor<1x3x7x7xbf16>, tensor<4x3x3x3xbf16>) outs(%{{.*}} : tensor<1x4x5x5xf32>)
func.func @padded_convolution(%x: tensor<1x3x5x5xf32>, %w: tensor<4x3x3x3xf32>, %init: tensor<1x4x5x5xf32>) -> tensor<1x4x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x3x5x5xf32> to tensor<1x3x7x7xf32>
  // expected-remark @below {{passed: dot products of bf16, 2 operands rounded}}
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%p, %w : tensor<1x3x7x7xf32>, tensor<4x3x3x3xf32>) outs(%init : tensor<1x4x5x5xf32>) -> tensor<1x4x5x5xf32>
  return %r : tensor<1x4x5x5xf32>
}

// -----

// So is data that zeros are put between; where something else is put between, it is rounded with that.

// CHECK-LABEL: func.func @spread_convolution
// CHECK: %[[R:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<1x3x5xbf16>)
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} -> tensor<1x3x11xbf16>
// CHECK: %[[D:.*]] = tensor.insert_slice %[[R]] into %[[Z]][0, 0, 1] [1, 3, 5] [1, 1, 2] : tensor<1x3x5xbf16> into tensor<1x3x11xbf16>
// CHECK: linalg.conv_1d_ncw_fcw
// CHECK-SAME: ins(%[[D]], %{{.*}} : tensor<1x3x11xbf16>, tensor<4x3x2xbf16>)
func.func @spread_convolution(%x: tensor<1x3x5xf32>, %w: tensor<4x3x2xf32>, %init: tensor<1x4x10xf32>) -> tensor<1x4x10xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3x11xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x11xf32>) -> tensor<1x3x11xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 3, 5] [1, 1, 2] : tensor<1x3x5xf32> into tensor<1x3x11xf32>
  // expected-remark @below {{passed: dot products of bf16, 2 operands rounded}}
  %r = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%d, %w : tensor<1x3x11xf32>, tensor<4x3x2xf32>) outs(%init : tensor<1x4x10xf32>) -> tensor<1x4x10xf32>
  return %r : tensor<1x4x10xf32>
}

// -----

// CHECK-LABEL: func.func @between_ones
// CHECK: %[[D:.*]] = tensor.insert_slice {{.*}} : tensor<1x3x5xf32> into tensor<1x3x11xf32>
// CHECK: linalg.generic {{.*}} ins(%[[D]] : tensor<1x3x11xf32>)
func.func @between_ones(%x: tensor<1x3x5xf32>, %w: tensor<4x3x2xf32>, %init: tensor<1x4x10xf32>) -> tensor<1x4x10xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<1x3x11xf32>
  %z = linalg.fill ins(%one : f32) outs(%e : tensor<1x3x11xf32>) -> tensor<1x3x11xf32>
  %d = tensor.insert_slice %x into %z[0, 0, 1] [1, 3, 5] [1, 1, 2] : tensor<1x3x5xf32> into tensor<1x3x11xf32>
  // expected-remark @below {{passed: dot products of bf16, 2 operands rounded}}
  %r = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%d, %w : tensor<1x3x11xf32>, tensor<4x3x2xf32>) outs(%init : tensor<1x4x10xf32>) -> tensor<1x4x10xf32>
  return %r : tensor<1x4x10xf32>
}

// -----

// CHECK-LABEL: func.func @border_of_infinities
// CHECK: %[[PAD:.*]] = tensor.pad %{{.*}} low
// CHECK: tensor.yield %{{.*}} : f32
// CHECK: %[[ROUNDED:.*]] = linalg.generic
// CHECK-SAME: ins(%[[PAD]] : tensor<6x9xf32>)
// CHECK: linalg.matmul ins(%[[ROUNDED]],
func.func @border_of_infinities(%x: tensor<5x8xf32>, %w: tensor<9x6xf32>, %init: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %inf = arith.constant 0x7F800000 : f32
  %p = tensor.pad %x low[0, 0] high[1, 1] {
  ^bb0(%a: index, %b: index):
    tensor.yield %inf : f32
  } : tensor<5x8xf32> to tensor<6x9xf32>
  // expected-remark @below {{passed: dot products of bf16, 2 operands rounded}}
  %r = linalg.matmul ins(%p, %w : tensor<6x9xf32>, tensor<9x6xf32>) outs(%init : tensor<6x6xf32>) -> tensor<6x6xf32>
  return %r : tensor<6x6xf32>
}

// -----

// Must not fire: a sum of few products.

// CHECK-LABEL: func.func @short
// CHECK-NOT: bf16
func.func @short(%x: tensor<5x3xf32>, %w: tensor<3x6xf32>, %init: tensor<5x6xf32>) -> tensor<5x6xf32> {
  // expected-remark @below {{missed: computed in f32: it adds up fewer than 4 products}}
  %r = linalg.matmul ins(%x, %w : tensor<5x3xf32>, tensor<3x6xf32>) outs(%init : tensor<5x6xf32>) -> tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}

// -----

// Must not fire: a result of one column.

// CHECK-LABEL: func.func @column
// CHECK-NOT: bf16
func.func @column(%x: tensor<5x8xf32>, %w: tensor<8x1xf32>, %init: tensor<5x1xf32>) -> tensor<5x1xf32> {
  // expected-remark @below {{missed: computed in f32: its result has one column, whose sum runs along vectors}}
  %r = linalg.matmul ins(%x, %w : tensor<5x8xf32>, tensor<8x1xf32>) outs(%init : tensor<5x1xf32>) -> tensor<5x1xf32>
  return %r : tensor<5x1xf32>
}

// -----

// Must not fire: a depthwise convolution.

// CHECK-LABEL: func.func @depthwise
// CHECK-NOT: bf16
func.func @depthwise(%x: tensor<1x4x9x9xf32>, %w: tensor<4x3x3xf32>, %init: tensor<1x4x7x7xf32>) -> tensor<1x4x7x7xf32> {
  // expected-remark @below {{missed: computed in f32: a depthwise convolution adds up few products}}
  %r = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<1x4x9x9xf32>, tensor<4x3x3xf32>) outs(%init : tensor<1x4x7x7xf32>) -> tensor<1x4x7x7xf32>
  return %r : tensor<1x4x7x7xf32>
}

// -----

// Must not fire: products in f64, and what adds up no products.

#row = affine_map<(d0, d1) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @others
// CHECK-NOT: bf16
func.func @others(%x: tensor<5x8xf64>, %w: tensor<8x6xf64>, %init: tensor<5x6xf64>, %y: tensor<5x8xf32>, %sums: tensor<5xf32>)
    -> (tensor<5x6xf64>, tensor<5xf32>) {
  %r = linalg.matmul ins(%x, %w : tensor<5x8xf64>, tensor<8x6xf64>) outs(%init : tensor<5x6xf64>) -> tensor<5x6xf64>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<5x8xf32>) outs(%sums : tensor<5xf32>) {
  ^bb0(%i: f32, %o: f32):
    %e = arith.addf %i, %o : f32
    linalg.yield %e : f32
  } -> tensor<5xf32>
  return %r, %s : tensor<5x6xf64>, tensor<5xf32>
}

// -----

// Tensor cores take f16, too, one column, and short sums; not one factor of each type.

#id = affine_map<(d0, d1) -> (d0, d1)>

// GPU-LABEL: func.func @was_f16
// GPU-SAME: (%[[X:.*]]: tensor<5x3xf16>, %[[W:.*]]: tensor<1x3xf16>, %[[B:.*]]: tensor<3x1xbf16>,
// GPU: %[[T:.*]] = linalg.transpose ins(%[[W]] : tensor<1x3xf16>)
// GPU: linalg.matmul ins(%[[X]], %[[T]] : tensor<5x3xf16>, tensor<3x1xf16>)
// GPU: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<5x3xf32>, tensor<3x1xf32>)
// CHECK-LABEL: func.func @was_f16
// OLD-LABEL: func.func @was_f16
// KEEP-LABEL: func.func @was_f16
// EXACT-LABEL: func.func @was_f16
// EXACT: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<5x3xf32>, tensor<3x1xf32>)
func.func @was_f16(%x: tensor<5x3xf16>, %w: tensor<1x3xf16>, %b: tensor<3x1xbf16>, %init: tensor<5x1xf32>) -> (tensor<5x1xf32>, tensor<5x1xf32>) {
  %x_init = tensor.empty() : tensor<5x3xf32>
  %w_init = tensor.empty() : tensor<1x3xf32>
  %b_init = tensor.empty() : tensor<3x1xf32>
  %t_init = tensor.empty() : tensor<3x1xf32>
  %xf = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5x3xf16>) outs(%x_init : tensor<5x3xf32>) {
  ^bb0(%e: f16, %o: f32):
    %f = arith.extf %e : f16 to f32
    linalg.yield %f : f32
  } -> tensor<5x3xf32>
  %wf = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<1x3xf16>) outs(%w_init : tensor<1x3xf32>) {
  ^bb0(%e: f16, %o: f32):
    %f = arith.extf %e : f16 to f32
    linalg.yield %f : f32
  } -> tensor<1x3xf32>
  %bf = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<3x1xbf16>) outs(%b_init : tensor<3x1xf32>) {
  ^bb0(%e: bf16, %o: f32):
    %f = arith.extf %e : bf16 to f32
    linalg.yield %f : f32
  } -> tensor<3x1xf32>
  %t = linalg.transpose ins(%wf : tensor<1x3xf32>) outs(%t_init : tensor<3x1xf32>) permutation = [1, 0]
  // expected-remark @below {{missed: computed in f32: its result has one column, whose sum runs along vectors}}
  %r = linalg.matmul ins(%xf, %t : tensor<5x3xf32>, tensor<3x1xf32>) outs(%init : tensor<5x1xf32>) -> tensor<5x1xf32>
  // expected-remark @below {{missed: computed in f32: its result has one column, whose sum runs along vectors}}
  %q = linalg.matmul ins(%xf, %bf : tensor<5x3xf32>, tensor<3x1xf32>) outs(%init : tensor<5x1xf32>) -> tensor<5x1xf32>
  return %r, %q : tensor<5x1xf32>, tensor<5x1xf32>
}

// -----

// What a body dequantizes stays there, if bf16 has it as it is: the data alone is read as bf16.

#a = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#s = affine_map<(m, n, k) -> (n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @dequantized
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<5x8xbf16>, tensor<8x6xi8>, tensor<6xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<5x8xf32>, tensor<8x6xi8>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8xf32>, tensor<8x6xi8>, tensor<6xf32>)
// EXACT-LABEL: func.func @dequantized
// EXACT: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<5x8xf32>, tensor<8x6xi8>, tensor<6xf32>)
// OLD-LABEL: func.func @dequantized
// OLD-NOT: bf16
// KEEP-LABEL: func.func @dequantized
// GPU-LABEL: func.func @dequantized
func.func @dequantized(%x: tensor<5x8xf32>, %few: tensor<2x8xf32>, %w: tensor<8x6xi8>, %s: tensor<6xf32>, %init: tensor<5x6xf32>, %init2: tensor<2x6xf32>)
    -> (tensor<5x6xf32>, tensor<5x6xf32>, tensor<2x6xf32>) {
  // expected-remark @below {{passed: dot products of bf16 and dequantized factors, 1 operand rounded}}
  %r = linalg.generic {indexing_maps = [#a, #w, #s, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w, %s : tensor<5x8xf32>, tensor<8x6xi8>, tensor<6xf32>) outs(%init : tensor<5x6xf32>) {
  ^bb0(%a: f32, %q: i8, %c: f32, %o: f32):
    %f = arith.sitofp %q : i8 to f32
    %g = arith.mulf %f, %c : f32
    %h = arith.mulf %a, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  } -> tensor<5x6xf32>
  %t = linalg.generic {indexing_maps = [#a, #w, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x8xf32>, tensor<8x6xi8>) outs(%init : tensor<5x6xf32>) {
  ^bb0(%a: f32, %q: i8, %o: f32):
    %f = arith.sitofp %q : i8 to f32
    %g = math.sin %f : f32
    %h = arith.mulf %a, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  } -> tensor<5x6xf32>
  // expected-remark @below {{missed: computed in f32: few rows share the factor}}
  %u = linalg.generic {indexing_maps = [#a, #w, #s, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%few, %w, %s : tensor<2x8xf32>, tensor<8x6xi8>, tensor<6xf32>) outs(%init2 : tensor<2x6xf32>) {
  ^bb0(%a: f32, %q: i8, %c: f32, %o: f32):
    %f = arith.sitofp %q : i8 to f32
    %g = arith.mulf %f, %c : f32
    %h = arith.mulf %a, %g : f32
    %i = arith.addf %o, %h : f32
    linalg.yield %i : f32
  } -> tensor<2x6xf32>
  return %r, %t, %u : tensor<5x6xf32>, tensor<5x6xf32>, tensor<2x6xf32>
}
