"""Machine code in this process: a shared object, which the system's loader maps from memory."""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pipeline.errors import ArtifactError
from pipeline.runtime.interface.call_record import CALL
from pipeline.runtime.interface.team import USE_TEAM
from pipeline.runtime.native import elf, openmp_team, perf_map
from pipeline.runtime.weights.watched_words import GUARDED, Guarded

#: For names of files that no shared object in this process has had.
_numbers = itertools.count()


class NativeCode:
    """Machine code loaded into this process; its functions live as long as this object."""

    def __init__(self, objects: Sequence[bytes], symbols: Mapping[str, int] | None = None):
        """Loads a shared object, or object files, which are linked first.

        Args:
            symbols: the addresses of what the code calls outside of the system's libraries.

        Raises:
            ArtifactError: this machine cannot load it, or it calls what is not there.
        """
        for data in objects:
            _check_machine(elf.ElfFile(data))
        is_linked = len(objects) == 1 and elf.ElfFile(objects[0]).header["type"] == elf.SHARED
        code = objects[0] if is_linked else _linked(objects)
        self._library = _load(code)
        weakref.finalize(self, _close, self._library._handle).atexit = False  # threads may still run code then
        self._set_imports(code, symbols or {})
        if self._has(USE_TEAM) and openmp_team.addresses():
            self._function(USE_TEAM, None, *[ctypes.c_void_p] * 4)(*openmp_team.addresses())
        if perf_map.wanted():
            name, value = next(item for item in elf.ElfFile(code).dynamic_symbols().items() if item[1])
            perf_map.append(code, self._address(name) - value)

    def _set_imports(self, code: bytes, symbols: Mapping[str, int]) -> None:
        """Tells the code where functions are that it imports."""
        if elf.IMPORT.encode() not in code:
            return
        for word in elf.ElfFile(code).dynamic_symbols():
            name = word.removeprefix(elf.IMPORT)
            if name != word and name not in symbols:
                raise ArtifactError(f"the code calls the function {name}, which nothing has")
            if name != word:
                ctypes.c_uint64.in_dll(self._library, word).value = symbols[name]

    def entry(self, symbol: str) -> Callable[[int], None]:
        """The function `symbol` as a callable that takes the address of its slots."""
        return self._function(symbol, None, ctypes.c_void_p)

    def guarded(self) -> Guarded:
        """The entry that compares watched words first; see `pipeline.runtime.weights.watched_words`."""
        return self._function(GUARDED, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)

    def tensor_entry(self) -> int | None:
        """The address of the entry that takes tensors, if there is one; see `pipeline.runtime.call.tensor_call`."""
        return self._address(CALL) if self._has(CALL) else None

    def number(self, symbol: str) -> ctypes.c_int32 | None:
        """The global 32-bit integer `symbol`, which lives as long as this object; None if there is none."""
        return ctypes.c_int32.in_dll(self._library, symbol) if self._has(symbol) else None

    def _function(self, symbol: str, result: Any, *arguments: Any) -> Any:
        function: Any = ctypes.CFUNCTYPE(result, *arguments)(self._address(symbol))
        function.code = self  # keeps it loaded
        return function

    def _address(self, symbol: str) -> int:
        if not self._has(symbol):
            raise ArtifactError(f"the code has no function {symbol}")
        return ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value or 0

    def _has(self, symbol: str) -> bool:
        return hasattr(self._library, symbol)


def _check_machine(file: elf.ElfFile) -> None:
    """Raises `ArtifactError` if a file is for other machines than this one."""
    machine = elf.MACHINES[int(file.header["machine"])]
    if machine != platform.machine():
        raise ArtifactError(
            f"not an object file for this machine: it is for {machine} machines, this one is {platform.machine()}"
        )


def _linked(objects: Sequence[bytes]) -> bytes:
    from pipeline.runtime.native.linker import link  # not loaded for artifacts, which have been linked

    return link(objects)


_close_library = ctypes.CDLL(None).dlclose
_close_library.argtypes = [ctypes.c_void_p]


def _close(handle: int) -> None:
    _close_library(handle)


def _load(code: bytes) -> ctypes.CDLL:
    """Loads from memory; from a file on the disk where the system has no files in memory, or runs nothing there."""
    try:
        with _memory_file(code) as path:
            return ctypes.CDLL(path, os.RTLD_NOW | os.RTLD_LOCAL)
    except (OSError, AttributeError):  # Python was built for systems that have none in memory
        pass
    try:
        with tempfile.NamedTemporaryFile(prefix="pipeline-", suffix=".so") as file:
            file.write(code)
            file.flush()
            return ctypes.CDLL(file.name, os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise ArtifactError(f"not a shared object that this machine can load: {error}") from error


@contextmanager
def _memory_file(code: bytes) -> Iterator[str]:
    """A path of a file in memory.

    The loader takes a path that it has seen for the shared object that it found there before, though the numbers of
    open files come again. So each path is another spelling: the bits of a count, as `/./` and `//`.
    """
    file = os.memfd_create("pipeline code")
    try:
        with open(file, "wb", closefd=False) as stream:
            stream.write(code)
        spelling = f"{next(_numbers):b}".replace("1", "/./").replace("0", "//")
        yield f"/proc/self/fd/{spelling}{file}"
    finally:
        os.close(file)
