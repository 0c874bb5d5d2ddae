"""linalg on buffers → launches: outlined dispatches, blocks and threads, as Vulkan and CUDA share them.

Leaves gpu, scf, memref and vector, which `targets/vulkan` and `targets/cuda` take to SPIR-V and PTX.
"""
