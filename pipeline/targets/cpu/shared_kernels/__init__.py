"""Kernels whose code several models share: it is compiled once, and kept in the disk cache.

Taken are kernels on buffers, in front of vectorization: where the code of one is known, a declaration stays in its
place, and nothing behind it in the pipeline sees the kernel again. Passes and code generator alike look at one kernel
at a time, so that the same text always becomes the same code (tests/cpu/test_shared_kernels.py).
"""
