"""A functional FX graph → linalg on tensors, through torch-mlir; regions, numbers, random numbers, barriers."""
