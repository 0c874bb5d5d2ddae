"""linalg on buffers → loops over vectors, and threads: `tile-and-vectorize`, `parallelize-kernels`, libgomp.

Leaves scf, vector, memref and arith, which MLIR's own conversions take to the LLVM dialect.
"""
