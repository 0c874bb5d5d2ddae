// RUN: pipeline-opt %s --tile-groups="scratch=8192" | FileCheck %s
// RUN: pipeline-opt %s --tile-groups="scratch=8192" --remarks-filter=tile-groups --verify-diagnostics

// What is cut of the innermost loop is some whole vectors: of 8192 bytes, 682 elements of 12 bytes would leave a part.

#points = affine_map<(n) -> (n)>
#all = affine_map<(c, n) -> (c, n)>
#column = affine_map<(c, n) -> (n)>

// CHECK-LABEL: func.func @whole_vectors
// expected-remark @below {{passed: tiles of 672 of the loops that its ops have in common}}
func.func @whole_vectors(%x: tensor<3000xf64>, %y: tensor<2x3000xf64>, %out: tensor<2x3000xf64>) -> tensor<2x3000xf64> attributes {pipeline.kernel = "elementwise"} {
  %f = tensor.empty() : tensor<3000xf32>
  %t = linalg.generic {indexing_maps = [#points, #points], iterator_types = ["parallel"]}
      ins(%x : tensor<3000xf64>) outs(%f : tensor<3000xf32>) {
  ^bb0(%a: f64, %o: f32):
    %v = arith.truncf %a : f64 to f32
    linalg.yield %v : f32
  } -> tensor<3000xf32>
  %e = tensor.empty() : tensor<3000xf64>
  %n = linalg.generic {indexing_maps = [#points, #points], iterator_types = ["parallel"]}
      ins(%t : tensor<3000xf32>) outs(%e : tensor<3000xf64>) {
  ^bb0(%a: f32, %o: f64):
    %v = arith.extf %a : f32 to f64
    linalg.yield %v : f64
  } -> tensor<3000xf64>
  %r = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%y, %n : tensor<2x3000xf64>, tensor<3000xf64>) outs(%out : tensor<2x3000xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %v = arith.mulf %a, %b : f64
    linalg.yield %v : f64
  } -> tensor<2x3000xf64>
  return %r : tensor<2x3000xf64>
}

// Must not fire: all of the loop fits.

// CHECK-LABEL: func.func @short
// expected-remark @below {{passed: tiles of 100 of the loops that its ops have in common}}
func.func @short(%x: tensor<100xf32>, %y: tensor<2x100xf32>, %out: tensor<2x100xf32>) -> tensor<2x100xf32> attributes {pipeline.kernel = "elementwise"} {
  %e = tensor.empty() : tensor<100xf32>
  %n = linalg.generic {indexing_maps = [#points, #points], iterator_types = ["parallel"]}
      ins(%x : tensor<100xf32>) outs(%e : tensor<100xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<100xf32>
  %r = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%y, %n : tensor<2x100xf32>, tensor<100xf32>) outs(%out : tensor<2x100xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<2x100xf32>
  return %r : tensor<2x100xf32>
}
