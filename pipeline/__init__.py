"""A PyTorch compiler on MLIR."""
