"""The CUDA target: kernels as PTX and, where ptxas is at hand, machine code."""
