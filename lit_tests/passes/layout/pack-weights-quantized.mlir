// RUN: pipeline-opt %s --split-input-file --pack-weights="columns=4 least-bytes=32 nibble-words=true" --canonicalize | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --pack-weights="columns=4 least-bytes=32 nibble-words=true" --remarks-filter=pack-weights --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --pack-weights="columns=4 least-bytes=32" --canonicalize | FileCheck %s --check-prefix=BYTES

// Scales of groups lie in panels as their weight does; numbers of four bits in words of eight, where those are read.

#x = affine_map<(m, n, g, k, h) -> (m, g, k, h)>
#w = affine_map<(m, n, g, k, h) -> (g, k, n)>
#s = affine_map<(m, n, g, k, h) -> (g, n)>
#y = affine_map<(m, n, g, k, h) -> (m, n)>

// CHECK: func.func private @product(%{{.*}}: tensor<5x3x4x2xf32>, %[[W:.*]]: tensor<2x3x1x16xi8>, %[[S:.*]]: tensor<2x3x4xbf16>, %{{.*}}: tensor<5x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[W]], %[[S]] : tensor<5x3x4x2xf32>, tensor<2x3x1x16xi8>, tensor<2x3x4xbf16>)
// BYTES: func.func private @product(%{{.*}}: tensor<5x3x4x2xf32>, %[[W:.*]]: tensor<2x3x4x4xi8>, %[[S:.*]]: tensor<2x3x4xbf16>, %{{.*}}: tensor<5x8xf32>)
func.func private @product(%x: tensor<5x3x4x2xf32>, %w: tensor<3x4x8xi8>, %s: tensor<3x8xbf16>, %y: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {pipeline.kernel = "matmul"} {
  %bits = arith.constant 4 : i8
  %mask = arith.constant 15 : i8
  // expected-remark @below {{passed: reads its weight in panels of 4 columns of quads, its scales, too}}
  %r = linalg.generic {indexing_maps = [#x, #w, #s, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w, %s : tensor<5x3x4x2xf32>, tensor<3x4x8xi8>, tensor<3x8xbf16>) outs(%y : tensor<5x8xf32>) {
  ^bb0(%a: f32, %b: i8, %c: bf16, %o: f32):
    %i = linalg.index 4 : index
    %d = arith.index_castui %i : index to i8
    %e = arith.muli %d, %bits : i8
    %t = arith.shrui %b, %e : i8
    %u = arith.andi %t, %mask : i8
    %f = arith.uitofp %u : i8 to f32
    %g = arith.extf %c : bf16 to f32
    %v = arith.mulf %f, %g : f32
    %h = arith.mulf %a, %v : f32
    %z = arith.addf %o, %h : f32
    linalg.yield %z : f32
  } -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

func.func @main(%x: tensor<5x3x4x2xf32> {pipeline.argument = 0 : i64}, %w: tensor<3x4x8xi8> {pipeline.weight = "w"}, %s: tensor<3x8xbf16> {pipeline.weight = "s"}) -> tensor<5x8xf32> {
  %e = tensor.empty() : tensor<5x8xf32>
  %r = call @product(%x, %w, %s, %e) : (tensor<5x3x4x2xf32>, tensor<3x4x8xi8>, tensor<3x8xbf16>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

// Must not: scales that are an argument of the call.

#x = affine_map<(m, n, g, k) -> (m, g, k)>
#w = affine_map<(m, n, g, k) -> (g, k, n)>
#s = affine_map<(m, n, g, k) -> (g, n)>
#y = affine_map<(m, n, g, k) -> (m, n)>

// CHECK: func.func private @scaled(%{{.*}}: tensor<5x3x4xf32>, %{{.*}}: tensor<2x3x4x4xi8>, %{{.*}}: tensor<3x8xf32>, %{{.*}}: tensor<5x8xf32>)
func.func private @scaled(%x: tensor<5x3x4xf32>, %w: tensor<3x4x8xi8>, %s: tensor<3x8xf32>, %y: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {pipeline.kernel = "matmul"} {
  // expected-remark @below {{passed: reads its weight in panels of 4 columns}}
  %r = linalg.generic {indexing_maps = [#x, #w, #s, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %s : tensor<5x3x4xf32>, tensor<3x4x8xi8>, tensor<3x8xf32>) outs(%y : tensor<5x8xf32>) {
  ^bb0(%a: f32, %b: i8, %c: f32, %o: f32):
    %f = arith.sitofp %b : i8 to f32
    %v = arith.mulf %f, %c : f32
    %h = arith.mulf %a, %v : f32
    %z = arith.addf %o, %h : f32
    linalg.yield %z : f32
  } -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

func.func @main(%x: tensor<5x3x4xf32> {pipeline.argument = 0 : i64}, %w: tensor<3x4x8xi8> {pipeline.weight = "w"}, %s: tensor<3x8xf32> {pipeline.argument = 1 : i64}) -> tensor<5x8xf32> {
  %e = tensor.empty() : tensor<5x8xf32>
  %r = call @scaled(%x, %w, %s, %e) : (tensor<5x3x4xf32>, tensor<3x4x8xi8>, tensor<3x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}
