// RUN: pipeline-opt %s --load-plugin=%S/Inputs/toy.py --split-input-file --verify-diagnostics

func.func @types(%x: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error @below {{'toy.square' op has operand and result of different types}}
  %s = "toy.square"(%x) : (tensor<4xf32>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}

// -----

func.func @operands(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{op expects exactly 1 operands, but got 2}}
  %s = "toy.square"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}
