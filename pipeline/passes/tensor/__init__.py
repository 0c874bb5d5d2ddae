"""linalg on tensors, as torch-mlir leaves it → the same, simpler: reshapes, broadcasts, slices, gathers, checks.

Legalizes what torch-mlir imports in forms that no later pass takes (tm_tensor, ops that trap), and removes what
computes nothing.
"""
