"""LLVM's code generator, by llvmlite, for this machine's processor or others. Code that is loaded needs none."""

from __future__ import annotations

import functools

from llvmlite import binding


@functools.cache
def initialize_llvm(native: bool = True) -> None:
    """Readies LLVM for this machine's processor, or for any, once."""
    if native:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
    else:
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()


@functools.cache
def host_cpu() -> tuple[str, str]:
    """(name, features) of this machine's CPU as LLVM calls them, features as `+avx2,+fma,-sse4a`."""
    initialize_llvm()
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
