"""ELF, the format of object files and of shared objects, as far as LLVM writes it and we do; 64 bits, little-endian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.errors import ArtifactError

HEADER = np.dtype(
    [
        ("ident", "V16"),
        ("type", "<u2"),
        ("machine", "<u2"),
        ("version", "<u4"),
        ("entry", "<u8"),
        ("segments", "<u8"),
        ("sections", "<u8"),
        ("flags", "<u4"),
        ("size", "<u2"),
        ("segment_size", "<u2"),
        ("segment_count", "<u2"),
        ("section_size", "<u2"),
        ("section_count", "<u2"),
        ("section_names", "<u2"),
    ]
)
SEGMENT = np.dtype(
    [
        ("type", "<u4"),
        ("flags", "<u4"),
        ("offset", "<u8"),
        ("address", "<u8"),
        ("physical", "<u8"),
        ("file_size", "<u8"),
        ("size", "<u8"),
        ("align", "<u8"),
    ]
)
SECTION = np.dtype(
    [
        ("name", "<u4"),
        ("type", "<u4"),
        ("flags", "<u8"),
        ("address", "<u8"),
        ("offset", "<u8"),
        ("size", "<u8"),
        ("link", "<u4"),
        ("info", "<u4"),
        ("align", "<u8"),
        ("entry_size", "<u8"),
    ]
)
SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
DYNAMIC = np.dtype([("tag", "<i8"), ("value", "<u8")])

IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)
RELOCATABLE, SHARED = 1, 3

# Machines, and what Python's `platform.machine` calls them.
X86_64, AARCH64 = 62, 183
MACHINES = {X86_64: "x86_64", AARCH64: "aarch64"}

# Types and flags of sections.
PROGBITS, SYMTAB, STRTAB, RELA, HASH, DYNAMIC_TABLE, NOBITS, DYNSYM = 1, 2, 3, 4, 5, 6, 8, 11
WRITE, ALLOC, EXECUTE = 1, 2, 4

# Symbols: binding, type, and numbers of sections that are none.
LOCAL, GLOBAL, WEAK = 0, 1, 2
OBJECT, FUNCTION = 1, 2
UNDEFINED, ABSOLUTE = 0, 0xFFF1


#: Begins the names of words that hold the addresses of functions that no library here has; see `linker`.
IMPORT = "pipeline_import_"


@dataclass(frozen=True)
class ElfFile:
    """An ELF file in memory, to be read."""

    data: bytes

    @cached_property
    def header(self) -> np.void:
        """The file's header; raises `ArtifactError` if the bytes are no ELF file for a machine of `MACHINES`."""
        if len(self.data) < HEADER.itemsize or self.data[:7] != IDENT[:7]:
            raise ArtifactError("not an object file for this machine: it has no header of ELF")
        header = np.frombuffer(self.data, HEADER, 1)[0]
        if header["machine"] not in MACHINES:
            raise ArtifactError(f"not an object file for this machine: it is for ELF's machine {header['machine']}")
        return header

    @cached_property
    def sections(self) -> np.ndarray:
        """The headers of the sections."""
        return self._table(SECTION, int(self.header["sections"]), int(self.header["section_count"]))

    @cached_property
    def section_names(self) -> list[str]:
        """The names of the sections."""
        return self.names(self.sections["name"], int(self.header["section_names"]))

    def names(self, starts: np.ndarray, section: int) -> list[str]:
        """Strings by where they start in a table of strings, which is a section."""
        table = self.content(section)
        return [table[start : table.index(b"\0", start)].decode() for start in starts.tolist()]

    def content(self, section: int) -> bytes:
        """The bytes of a section."""
        header = self.sections[section]
        start, size = int(header["offset"]), int(header["size"])
        return b"" if header["type"] == NOBITS else self.data[start : start + size]

    def table(self, section: int, kind: np.dtype) -> np.ndarray:
        """The rows of a section that is a table."""
        header = self.sections[section]
        return self._table(kind, int(header["offset"]), int(header["size"]) // kind.itemsize)

    def _table(self, kind: np.dtype, start: int, count: int) -> np.ndarray:
        if start + count * kind.itemsize > len(self.data):
            raise ArtifactError("an object file is cut short")
        return np.frombuffer(self.data, kind, count, start)

    def dynamic_symbols(self) -> dict[str, int]:
        """The value of each symbol that the loader knows, by name."""
        table = int(np.flatnonzero(self.sections["type"] == DYNSYM)[0])
        symbols = self.table(table, SYMBOL)
        names = self.names(symbols["name"], int(self.sections[table]["link"]))
        return dict(zip(names, symbols["value"].tolist(), strict=True))

    @cached_property
    def symbol_table(self) -> int:
        """The number of the section with the symbols."""
        found = np.flatnonzero(self.sections["type"] == SYMTAB)
        return int(found[0]) if len(found) else 0

    @cached_property
    def symbols(self) -> np.ndarray:
        """The symbols; none where the file has no table of them."""
        return self.table(self.symbol_table, SYMBOL) if self.symbol_table else np.empty(0, SYMBOL)

    def symbol_names(self, numbers: np.ndarray) -> list[str]:
        """The names of some symbols."""
        return self.names(self.symbols["name"][numbers], int(self.sections[self.symbol_table]["link"]))


def functions(data: bytes) -> list[tuple[str, int, int]]:
    """(name, address from the start, size) of every function of a shared object."""
    file = ElfFile(data)
    kinds = file.symbols["info"] & 15
    numbers = np.flatnonzero((kinds == FUNCTION) & (file.symbols["section"] != UNDEFINED))
    names = file.symbol_names(numbers)
    chosen = file.symbols[numbers]
    return list(zip(names, chosen["value"].tolist(), chosen["size"].tolist(), strict=True))


def string_table(names: Sequence[str]) -> tuple[bytes, list[int]]:
    """A table of strings, and where each of them starts in it."""
    table, starts = bytearray(b"\0"), []
    for name in names:
        starts.append(len(table))
        table += name.encode() + b"\0"
    return bytes(table), starts


def hash_table(names: Sequence[str]) -> bytes:
    """The table by which a loader finds symbols; `names` are those of all symbols but the first, which has none."""
    count = len(names) + 1
    buckets, chain = [0] * count, [0] * count
    for number, name in enumerate(names, 1):
        bucket = _hash(name) % count
        chain[number], buckets[bucket] = buckets[bucket], number
    return np.array([count, count, *buckets, *chain], "<u4").tobytes()


def _hash(name: str) -> int:
    """ELF's hash function of names."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value
