"""Object files for programs of others: symbols are named after the model, and the weights may lie inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.runtime.native import elf
from pipeline.runtime.native.elf import ElfFile

#: By ELF's number of the machine: the code of a function that returns an address, and its relocations, as (offset,
#: kind, addend).
_GET = {
    elf.X86_64: (b"\x48\x8d\x05" + bytes(4) + b"\xc3", [(3, 2, -4)]),  # lea weights(%rip), %rax; ret
    elf.AARCH64: (  # adrp x0, weights; add x0, x0, #:lo12:weights; ret
        bytes.fromhex("00000090 00000091 c0035fd6"),
        [(0, 275, 0), (4, 277, 0)],
    ),
}
_WEIGHTS_ALIGN = 64


def renamed(data: bytes, names: Mapping[str, str]) -> bytes:
    """The object file with other names for symbols."""
    editor = _Editor(ElfFile(data))
    numbers = np.flatnonzero(editor.symbols["info"] >> 4 != elf.LOCAL)
    for number, name in zip(numbers.tolist(), editor.file.symbol_names(numbers), strict=True):
        if name in names:
            editor.symbols[number]["name"] = editor.add_name(names[name])
    return editor.finish()


def with_weights(data: bytes, weights: Sequence[bytes | memoryview], function: str) -> bytes:
    """The object file with weights as constants, and a function `const char *function(void)` that has their address."""
    editor = _Editor(ElfFile(data))
    place = editor.add_section(".rodata.weights", elf.PROGBITS, elf.ALLOC, weights, align=_WEIGHTS_ALIGN)
    get, places = _GET[int(editor.file.header["machine"])]
    code = editor.add_section(".text.weights", elf.PROGBITS, elf.ALLOC | elf.EXECUTE, [get], align=16)
    target = editor.add_symbol(f"{function}_data", elf.OBJECT, place, sum(map(len, weights)), hidden=True)
    editor.add_symbol(function, elf.FUNCTION, code, len(get))
    rows = [(place, target << 32 | kind, addend) for place, kind, addend in places]
    row = np.array(rows, elf.RELOCATION).tobytes()
    table = editor.file.symbol_table
    editor.add_section(".rela.text.weights", elf.RELA, 0, [row], info=code, link=table, entry=elf.RELOCATION.itemsize)
    return editor.finish()


class _Editor:
    """An object file that is being changed. What is new goes behind the old, which stays where it is."""

    def __init__(self, file: ElfFile):
        self.file, self.symbols = file, file.symbols.copy()
        self._sections = file.sections.copy()
        self._behind: list[Any] = []
        self._end = len(file.data)
        self._titles = int(file.header["section_names"])
        self._strings = int(file.sections[file.symbol_table]["link"])
        self._tables = {number: bytearray(file.content(number)) for number in {self._titles, self._strings}}

    def add_name(self, name: str, table: int | None = None) -> int:
        """Where a string starts in a table of strings, that of symbols by default."""
        strings = self._tables[self._strings if table is None else table]
        strings += name.encode() + b"\0"
        return len(strings) - len(name.encode()) - 1

    def add_section(
        self,
        name: str,
        kind: int,
        flags: int,
        content: Sequence[bytes | memoryview],
        align: int = 8,
        link: int = 0,
        info: int = 0,
        entry: int = 0,
    ) -> int:
        """The number of a new section."""
        offset, size = self._append(content, align)
        row = (self.add_name(name, self._titles), kind, flags, 0, offset, size, link, info, align, entry)
        self._sections = np.append(self._sections, np.array([row], elf.SECTION))
        return len(self._sections) - 1

    def add_symbol(self, name: str, kind: int, section: int, size: int, *, hidden: bool = False) -> int:
        """The number of a new symbol, at the start of a section; only what is linked with it sees a hidden one."""
        row = (self.add_name(name), elf.GLOBAL << 4 | kind, 2 * hidden, section, 0, size)
        self.symbols = np.append(self.symbols, np.array([row], elf.SYMBOL))
        return len(self.symbols) - 1

    def _append(self, content: Sequence[bytes | memoryview], align: int) -> tuple[int, int]:
        """Where content comes to lie in the file, and how long it is."""
        gap, size = -self._end % align, sum(map(len, content))
        self._behind += [bytes(gap), *content]
        offset = self._end + gap
        self._end = offset + size
        return offset, size

    def finish(self) -> bytes:
        """The new file."""
        changed: dict[int, bytes] = {number: bytes(strings) for number, strings in self._tables.items()}
        changed[self.file.symbol_table] = self.symbols.tobytes()
        for number, content in changed.items():
            row = self._sections[number]
            row["offset"], row["size"] = self._append([content], 8)
        header = np.frombuffer(self.file.data, elf.HEADER, 1).copy()
        header[0]["sections"], _ = self._append([self._sections.tobytes()], 8)
        header[0]["section_count"] = len(self._sections)
        return b"".join([header.tobytes(), self.file.data[elf.HEADER.itemsize :], *self._behind])
