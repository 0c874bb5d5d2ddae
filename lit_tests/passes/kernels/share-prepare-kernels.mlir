// RUN: pipeline-opt %s --split-input-file --share-prepare-kernels | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --share-prepare-kernels --remarks-filter=share-prepare-kernels --verify-diagnostics

// Kernels that differ in a size are one; the sizes in which they do not differ stay, and so does what is no size.

// CHECK-LABEL: func.func private @scale
// CHECK-SAME: (%[[W:.*]]: tensor<?x32xf32>, %[[S:.*]]: tensor<?xf32>, %[[OUT:.*]]: tensor<32x?xf32>) -> tensor<32x?xf32>
// CHECK: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[N:.*]] = tensor.dim %[[W]], %[[C0]] : tensor<?x32xf32>
// CHECK: tensor.empty(%[[N]]) : tensor<?xf32>
// CHECK-NOT: func.func private
// CHECK: func.func @prepare(%[[V:.*]]: tensor<4x32xf32>, %[[T:.*]]: tensor<4xf32>, %[[X:.*]]: tensor<8x32xf32>, %[[U:.*]]: tensor<8xf32>)
// CHECK-DAG: %[[V0:.*]] = tensor.cast %[[V]] : tensor<4x32xf32> to tensor<?x32xf32>
// CHECK-DAG: %[[T0:.*]] = tensor.cast %[[T]] : tensor<4xf32> to tensor<?xf32>
// CHECK: %[[R:.*]] = call @scale(%[[V0]], %[[T0]], %{{.*}}) {pipeline.origins = {{\[\["conv2d", "net.py:1"]]}}}
// CHECK-NEXT: tensor.cast %[[R]] : tensor<32x?xf32> to tensor<32x4xf32>
// CHECK: call @scale({{.*}}) : (tensor<?x32xf32>, tensor<?xf32>, tensor<32x?xf32>) -> tensor<32x?xf32>
#row = affine_map<(n) -> (n)>
#in = affine_map<(n, k) -> (n, k)>
#by = affine_map<(n, k) -> (n)>
#turned = affine_map<(n, k) -> (k, n)>
// expected-remark @below {{passed: is the kernel for weights of 2 shapes}}
func.func private @scale(%w: tensor<4x32xf32>, %s: tensor<4xf32>, %out: tensor<32x4xf32>) -> tensor<32x4xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.generic"], pipeline.words = ["mul"]} {
  %e = tensor.empty() : tensor<4xf32>
  %q = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]} ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.sqrt %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#in, #by, #turned], iterator_types = ["parallel", "parallel"]} ins(%w, %q : tensor<4x32xf32>, tensor<4xf32>) outs(%out : tensor<32x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<32x4xf32>
  return %r : tensor<32x4xf32>
}
func.func private @scale_0(%w: tensor<8x32xf32>, %s: tensor<8xf32>, %out: tensor<32x8xf32>) -> tensor<32x8xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.generic"], pipeline.words = ["mul"]} {
  %e = tensor.empty() : tensor<8xf32>
  %q = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]} ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.sqrt %a : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#in, #by, #turned], iterator_types = ["parallel", "parallel"]} ins(%w, %q : tensor<8x32xf32>, tensor<8xf32>) outs(%out : tensor<32x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<32x8xf32>
  return %r : tensor<32x8xf32>
}
func.func @prepare(%v: tensor<4x32xf32>, %t: tensor<4xf32>, %x: tensor<8x32xf32>, %u: tensor<8xf32>) -> (tensor<32x4xf32>, tensor<32x8xf32>) {
  %e0 = tensor.empty() : tensor<32x4xf32>
  %0 = call @scale(%v, %t, %e0) {pipeline.origins = [["conv2d", "net.py:1"]]} : (tensor<4x32xf32>, tensor<4xf32>, tensor<32x4xf32>) -> tensor<32x4xf32>
  %e1 = tensor.empty() : tensor<32x8xf32>
  %1 = call @scale_0(%x, %u, %e1) : (tensor<8x32xf32>, tensor<8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
  return %0, %1 : tensor<32x4xf32>, tensor<32x8xf32>
}

// -----

// One that @main calls keeps its sizes, as do kernels that differ in what they compute, in a size of 1, and in one that
// an index is computed with.

// CHECK: func.func private @of_main(%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32>)
// CHECK: func.func private @exp(%{{.*}}: tensor<8xf32>, %{{.*}}: tensor<8xf32>)
// CHECK: func.func private @log(%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32>)
// CHECK: func.func private @log_of_one(%{{.*}}: tensor<1xf32>, %{{.*}}: tensor<1xf32>)
// CHECK: func.func private @every_other(%{{.*}}: tensor<8xf32>, %{{.*}}: tensor<4xf32>)
// CHECK: func.func private @first_ones(%{{.*}}: tensor<7xf32>, %{{.*}}: tensor<4xf32>)
#row = affine_map<(n) -> (n)>
#twice = affine_map<(n) -> (n * 2)>
func.func private @of_main(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.exp"], pipeline.words = ["exp"]} {
  %r = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @exp(%x: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.exp"], pipeline.words = ["exp"]} {
  %r = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%out : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @log(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.exp"], pipeline.words = ["exp"]} {
  %r = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.log %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @log_of_one(%x: tensor<1xf32>, %out: tensor<1xf32>) -> tensor<1xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.exp"], pipeline.words = ["exp"]} {
  %r = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]} ins(%x : tensor<1xf32>) outs(%out : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.log %a : f32
    linalg.yield %0 : f32
  } -> tensor<1xf32>
  return %r : tensor<1xf32>
}
func.func private @every_other(%x: tensor<8xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.generic"], pipeline.words = ["copy"]} {
  %r = linalg.generic {indexing_maps = [#twice, #row], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @first_ones(%x: tensor<7xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {pipeline.kernel = "elementwise", pipeline.ops = ["linalg.generic"], pipeline.words = ["copy"]} {
  %r = linalg.generic {indexing_maps = [#twice, #row], iterator_types = ["parallel"]} ins(%x : tensor<7xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @prepare(%x: tensor<4xf32>, %y: tensor<8xf32>, %z: tensor<1xf32>, %w: tensor<7xf32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<1xf32>, tensor<4xf32>, tensor<4xf32>) {
  %e0 = tensor.empty() : tensor<8xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %e2 = tensor.empty() : tensor<1xf32>
  %0 = call @exp(%y, %e0) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = call @log(%x, %e1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = call @log_of_one(%z, %e2) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %3 = call @every_other(%y, %e1) : (tensor<8xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = call @first_ones(%w, %e1) : (tensor<7xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %3, %4 : tensor<8xf32>, tensor<4xf32>, tensor<1xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = call @of_main(%x, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
