"""Emitters of contractions: tiles in shared memory, tensor cores, a library's GEMM; no passes."""
