"""The Vulkan target: kernels as SPIR-V, run by any Vulkan driver."""
