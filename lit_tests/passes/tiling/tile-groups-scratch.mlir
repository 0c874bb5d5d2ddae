// RUN: pipeline-opt %s --split-input-file --tile-groups="scratch=64" --canonicalize --cse | FileCheck %s

// Must not fire: what is handed on has scratch of its own where it cannot lie in the memory of a result.

// A result that is computed from it is read behind it, and so is it.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @read_later
// CHECK-DAG: %[[SCRATCH:.*]] = tensor.empty() : tensor<2x7xf32>
// CHECK: scf.for
// CHECK: linalg.generic
// CHECK-SAME: outs(%[[SCRATCH]] : tensor<2x7xf32>)
// CHECK: math.exp
func.func @read_later(%x: tensor<4x7xf32>, %out: tensor<4x7xf32>, %sums: tensor<4xf32>) -> (tensor<4x7xf32>, tensor<4xf32>) attributes {pipeline.kernel = "reduction"} {
  %full = tensor.empty() : tensor<4x7xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x7xf32>) outs(%full : tensor<4x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<4x7xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp : tensor<4x7xf32>) outs(%out : tensor<4x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.negf %a : f32
    linalg.yield %q : f32
  } -> tensor<4x7xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<4x7xf32>) outs(%sums : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r, %sum : tensor<4x7xf32>, tensor<4xf32>
}

// -----

// The kernel reads what is in the memory of the result.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @updated
// CHECK-DAG: %[[SCRATCH:.*]] = tensor.empty() : tensor<2x7xf32>
// CHECK: scf.for
// CHECK: linalg.generic
// CHECK-SAME: outs(%[[SCRATCH]] : tensor<2x7xf32>)
// CHECK: math.exp
func.func @updated(%out: tensor<4x7xf32> {bufferization.writable = true}, %line: tensor<4xf32>) -> tensor<4x7xf32> attributes {pipeline.kernel = "reduction"} {
  %full = tensor.empty() : tensor<4x7xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%out : tensor<4x7xf32>) outs(%full : tensor<4x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<4x7xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%out : tensor<4x7xf32>) outs(%line : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<4x7xf32>, tensor<4xf32>) outs(%out : tensor<4x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<4x7xf32>
  return %r : tensor<4x7xf32>
}

// -----

// Elements of another type.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @other_type
// CHECK-DAG: %[[SCRATCH:.*]] = tensor.empty() : tensor<2x7xf32>
// CHECK: scf.for
// CHECK: linalg.generic
// CHECK-SAME: outs(%[[SCRATCH]] : tensor<2x7xf32>)
// CHECK: math.exp
func.func @other_type(%x: tensor<4x7xf32>, %out: tensor<4x7xf16>) -> tensor<4x7xf16> attributes {pipeline.kernel = "reduction"} {
  %full = tensor.empty() : tensor<4x7xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x7xf32>) outs(%full : tensor<4x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<4x7xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp : tensor<4x7xf32>) outs(%out : tensor<4x7xf16>) {
  ^bb0(%a: f32, %o: f16):
    %q = arith.truncf %a : f32 to f16
    linalg.yield %q : f16
  } -> tensor<4x7xf16>
  return %r : tensor<4x7xf16>
}
