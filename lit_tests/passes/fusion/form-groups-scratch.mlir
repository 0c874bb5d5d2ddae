// RUN: pipeline-opt %s --split-input-file --form-groups=rules=%S/Inputs/small-scratch.yaml --remarks-filter=form-groups --verify-diagnostics

// Must not fire: 16 bytes of scratch do not hold a row of 7 numbers.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

func.func @long_rows(%x: tensor<5x7xf32>, %line: tensor<5xf32>) -> tensor<5xf32> {
  %full = tensor.empty() : tensor<5x7xf32>
  %neg = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x7xf32>) outs(%full : tensor<5x7xf32>) {
  ^bb0(%a: f32, %out: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<5x7xf32>
  // expected-remark @below {{what is handed on takes 28 bytes at a time, more than 16}}
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%neg : tensor<5x7xf32>) outs(%line : tensor<5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  return %sum : tensor<5xf32>
}

// -----

// A row of 4 numbers fits.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

func.func @short_rows(%x: tensor<5x4xf32>, %line: tensor<5xf32>) -> tensor<5xf32> {
  %full = tensor.empty() : tensor<5x4xf32>
  %neg = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x4xf32>) outs(%full : tensor<5x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<5x4xf32>
  // expected-remark @+2 {{passed: reduction group of 2 ops}}
  // expected-remark @below {{passed: is in one reduction group with its producer, linalg.generic}}
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%neg : tensor<5x4xf32>) outs(%line : tensor<5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  return %sum : tensor<5xf32>
}
