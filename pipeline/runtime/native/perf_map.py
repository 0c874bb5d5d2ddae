"""Names of kernels for Linux' `perf`, where `PIPELINE_PERF_MAP` is set: lines in /tmp/perf-PID.map.

Both are what `perf` expects of code that is made at run time; it looks nowhere else.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr: name, type, flags, address, offset, size, link, ...
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym: name, info, other, section, value, size
_SYMBOL_TABLE, _FUNCTION, _GLOBAL = 2, 2, 1


def wanted() -> bool:
    """Whether the user asked for the map."""
    return os.environ.get("PIPELINE_PERF_MAP", "") not in ("", "0")


def path() -> Path:
    """Where `perf` looks for the map of this process."""
    return Path(f"/tmp/perf-{os.getpid()}.map")


def append(objects: Sequence[bytes], address_of: Callable[[str], int]) -> None:
    """Writes where the functions of object files lie; `address_of` knows those that have global names."""
    places = [place for object_file in objects for place in _functions(object_file, address_of)]
    with path().open("a") as file:
        file.writelines(f"{start:x} {size:x} {name}\n" for name, start, size in places)


def _functions(elf: bytes, address_of: Callable[[str], int]) -> Iterator[tuple[str, int, int]]:
    """(name, address, size) of every function whose section holds one with a global name."""
    functions = list(_function_symbols(elf))
    starts = {section: address_of(name) - value for name, binding, section, value, _ in functions if binding == _GLOBAL}
    for name, _, section, value, size in functions:
        if section in starts:
            yield name, starts[section] + value, size


def _function_symbols(elf: bytes) -> Iterator[tuple[str, int, int, int, int]]:
    """(name, binding, section, offset in the section, size) of each function of an ELF object."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    (count,) = struct.unpack_from("<H", elf, 0x3C)
    sections = [_SECTION.unpack_from(elf, table + number * _SECTION.size) for number in range(count)]
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for at in range(offset, offset + size, _SYMBOL.size):
            name, info, _, section, value, length = _SYMBOL.unpack_from(elf, at)
            if info & 15 == _FUNCTION:
                start = names + name
                yield elf[start : elf.index(b"\0", start)].decode(), info >> 4, section, value, length
