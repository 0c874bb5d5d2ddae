"""Executables on devices: Vulkan and CUDA through ctypes, the plan of launches, CUDA graphs."""
