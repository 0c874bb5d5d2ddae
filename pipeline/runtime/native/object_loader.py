"""Machine code in this process: loads object files and finds functions in them, through llvmlite alone."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline import locks
from pipeline.errors import ArtifactError
from pipeline.runtime.native import openmp_team, perf_map
from pipeline.runtime.weights.watched_words import GUARDED, Guarded

#: LLVM's table of symbols is the process's: what an object is linked to is set right before.
_linking = locks.lock()


@functools.cache
def llvm() -> Any:
    """llvmlite's binding to LLVM; imported late, for what runs on GPUs does without."""
    from llvmlite import binding

    return binding


@functools.cache
def initialize_llvm() -> None:
    """Readies LLVM for this machine's processor, once."""
    llvm().initialize_native_target()
    llvm().initialize_native_asmprinter()
    llvm().load_library_permanently("libgcc_s.so.1")  # conversions of f16 on CPUs that have no instruction for it


@functools.cache
def host_cpu() -> tuple[str, str]:
    """(name, features) of this machine's CPU as LLVM calls them, features as `+avx2,+fma,-sse4a`."""
    initialize_llvm()
    return llvm().get_host_cpu_name(), llvm().get_host_cpu_features().flatten()


def host_features() -> set[str]:
    """What this machine's CPU has, by LLVM's feature names."""
    return {feature[1:] for feature in host_cpu()[1].split(",") if feature.startswith("+")}


class NativeCode:
    """Object files loaded into this process; their functions live as long as it does."""

    def __init__(self, objects: Sequence[bytes], symbols: Mapping[str, int] | None = None):
        """Loads them; `symbols` has the addresses of what they call outside of this process's libraries."""
        initialize_llvm()
        machine = llvm().Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
        self._engine = llvm().create_mcjit_compiler(llvm().parse_assembly(""), machine)
        if any(openmp_team.SPAWN in object_file for object_file in objects):
            symbols = {**openmp_team.addresses(), **(symbols or {})}
        with _linking:
            for name, address in (symbols or {}).items():
                llvm().add_symbol(name, address)
            try:
                for object_file in objects:
                    self._engine.add_object_file(llvm().ObjectFileRef.from_data(object_file))
            except RuntimeError as error:
                raise ArtifactError(f"not an object file for this machine: {error}") from error
            self._engine.finalize_object()
        if perf_map.wanted():
            perf_map.append(objects, self._engine.get_function_address)

    def entry(self, symbol: str) -> Callable[[int], None]:
        """The function `symbol` as a callable that takes the address of its slots."""
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._address(symbol))

    def guarded(self) -> Guarded:
        """The entry that compares watched words first; see `pipeline.runtime.weights.watched_words`."""
        return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(self._address(GUARDED))

    def _address(self, symbol: str) -> int:
        address = self._engine.get_function_address(symbol)
        if not address:
            raise ArtifactError(f"the object files have no function {symbol}")
        return address

    def number(self, symbol: str) -> ctypes.c_int32 | None:
        """The global 32-bit integer `symbol`; None if there is none."""
        address = self._engine.get_global_value_address(symbol)
        return ctypes.c_int32.from_address(address) if address else None
