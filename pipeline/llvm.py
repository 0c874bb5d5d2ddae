"""LLVM's code generator, by llvmlite, ready for this machine's processor. Code that is loaded from files needs none."""

from __future__ import annotations

import functools

from llvmlite import binding


@functools.cache
def initialize_llvm() -> None:
    """Readies LLVM for this machine's processor, once."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


@functools.cache
def host_cpu() -> tuple[str, str]:
    """(name, features) of this machine's CPU as LLVM calls them, features as `+avx2,+fma,-sse4a`."""
    initialize_llvm()
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
