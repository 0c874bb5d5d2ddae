"""Object files → one shared object, as the system's loader takes it; no linker and no compiler is needed.

The objects are LLVM's, position-independent code for one of `elf.MACHINES`. What they call of each other is bound here,
for good. What they call of the C library, of libm and of libgcc the loader binds. All else that they call is an
*import*: a word in the shared object, `pipeline_import_<name>`, which whoever loads it sets to the address of the
function before any code runs (`object_loader`, or the C header that pipeline-compile writes).

    read only     the tables of the loader, constants, tables for unwinding
    code          the functions, and a jump for each function that is called outside
    writable      global variables, and the words that hold addresses

In memory each of these has pages of its own; in the file they follow each other, and places in a page are the same.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.errors import CompileError
from pipeline.runtime.native import elf
from pipeline.runtime.native.elf import IMPORT, ElfFile
from pipeline.runtime.native.relocations import RELOCATIONS

#: Where functions are looked for that the objects don't define. The order decides which library is said to be needed.
_LIBRARIES = ("libc.so.6", "libm.so.6", "libgcc_s.so.1")  # libgcc: conversions of f16, divisions of 128 bits

_FRAMES = ".eh_frame"

_NEEDED, _HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _RELAENT, _STRSZ, _SYMENT, _SONAME = 1, 4, 5, 6, 7, 8, 9, 10, 11, 14
_LOAD, _DYNAMIC, _EH_FRAME, _STACK = 1, 2, 0x6474E550, 0x6474E551
_READ, _WRITE, _EXECUTE = 4, 2, 1

# The numbers of sections, see `run`.
_TEXT, _DATA = 4, 5


def link(objects: Sequence[bytes], name: str = "") -> bytes:
    """The shared object of object files.

    Args:
        objects: as `pipeline.targets.cpu.machine_code` makes them.
        name: what programs that are linked to it look for; needed by those alone.

    Raises:
        CompileError: the objects have something that a shared object cannot have; says what.
        ArtifactError: they are no object files for a machine that we know.
    """
    return _Linker([_Object(ElfFile(data)) for data in objects], name).run()


@dataclass
class _Object:
    """An object file, and where its parts come to lie.

    Attributes:
        addresses: of its sections, by number; 0 of those that are left out.
        undefined: the numbers of symbols that it does not define.
        values: the addresses of its symbols; of a function outside that of the jump to it.
        words: for each symbol where the word with its address lies; 0 for none.
    """

    file: ElfFile
    addresses: np.ndarray = field(init=False)
    undefined: np.ndarray = field(init=False)
    values: np.ndarray = field(init=False)
    words: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        symbols = self.file.symbols
        self.addresses = np.zeros(len(self.file.sections), np.int64)
        self.values, self.words = np.zeros(len(symbols), np.int64), np.zeros(len(symbols), np.int64)
        bindings = symbols["info"] >> 4
        self.undefined = np.flatnonzero((symbols["section"] == elf.UNDEFINED) & (bindings != elf.LOCAL))

    def relocations(self) -> Iterable[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """(section, kinds, symbols, rows) of what is to be filled in, by section; of those that are not left out."""
        sections = self.file.sections
        for number in np.flatnonzero(sections["type"] == elf.RELA).tolist():
            target = int(sections[number]["info"])
            if sections[target]["flags"] & elf.ALLOC:
                rows = self.file.table(number, elf.RELOCATION)
                yield target, rows["info"] & 0xFFFFFFFF, rows["info"] >> 32, rows


@dataclass
class _Segment:
    """What is laid out one behind the other, with one protection.

    Attributes:
        gap: how much less far from the start it lies in the file than in memory.
    """

    flags: int
    start: int = 0
    end: int = 0
    gap: int = 0

    def place(self, size: int, align: int = 8) -> int:
        """The address of the next `size` bytes."""
        address = -(-self.end // align) * align
        self.end = address + size
        return address

    def following(self, flags: int, page: int) -> _Segment:
        """The segment that comes next in the file, and a page further on in memory."""
        start = _aligned(self.end) + page
        return _Segment(flags, start, start, self.gap + page)


class _Linker:
    """One link; `run` is its order."""

    def __init__(self, objects: Sequence[_Object], name: str):
        self._objects, self._name = objects, name
        self._machine = int(objects[0].file.header["machine"])
        self._relocations = RELOCATIONS[self._machine]
        self._defined: dict[str, tuple[_Object, int]] = {}
        self._outside: dict[str, int] = {}  # the address of the jump to it
        self._word_of: dict[str, int] = {}  # the address of the word with its address
        self._local_words: list[tuple[_Object, int]] = []
        self._pointers: list[tuple[int, int]] = []  # (word, value) of addresses that move with the shared object

    def run(self) -> bytes:
        self._find_symbols()
        wanted = self._find_words()
        functions = list(self._outside)
        self._libraries = {function: library_of(function) for function in functions}
        imports = [function for function, library in self._libraries.items() if library is None]
        found = [function for function, library in self._libraries.items() if library is not None]
        exported = [
            name
            for name, (file, number) in self._defined.items()
            if not file.file.symbols["other"][number] & 3  # visible by default
        ]
        dynamic = [*found, *exported, *(IMPORT + function for function in imports)]
        needed = list(dict.fromkeys(library for library in self._libraries.values() if library is not None))
        strings, starts = elf.string_table([*dynamic, *needed, self._name])
        hashes = elf.hash_table(dynamic)
        relocations = len(found) + wanted + self._absolute()

        constants = _Segment(_READ)
        constants.place(elf.HEADER.itemsize + 6 * elf.SEGMENT.itemsize)
        symbols_at = constants.place((len(dynamic) + 1) * elf.SYMBOL.itemsize)
        strings_at, hashes_at = constants.place(len(strings)), constants.place(len(hashes))
        relocations_at = constants.place(relocations * elf.RELOCATION.itemsize)
        frames_header = constants.place(8)
        self._lay_out(constants, elf.ALLOC, frames=False)
        frames = constants.place(0)
        self._lay_out(constants, elf.ALLOC, frames=True)
        constants.place(4, 4)  # ends the frames

        code = constants.following(_READ | _EXECUTE, self._relocations.page)
        self._lay_out(code, elf.ALLOC | elf.EXECUTE)
        for function in functions:
            self._outside[function] = code.place(self._relocations.jump_bytes)

        data = code.following(_READ | _WRITE, self._relocations.page)
        self._lay_out(data, elf.ALLOC | elf.WRITE)
        for function in functions:
            self._word_of[function] = data.place(8)
        self._place_words(data)
        table = data.place((len(needed) + 11) * elf.DYNAMIC.itemsize)
        stored = data.end
        self._lay_out(data, elf.ALLOC | elf.WRITE, empty=True)

        image = np.zeros(stored, np.uint8)
        self._copy_sections(image)
        self._resolve()
        self._relocate(image)
        for function in functions:
            place = self._outside[function]
            _store(image, place, self._relocations.jump(place, self._word_of[function]))
        for place, value in self._pointers:
            _store(image, place, _word(value, 8))
        _store(image, frames_header, b"\x01\x1b\xff\xff" + _word(frames - frames_header - 4))

        _store(image, symbols_at, self._dynamic_symbols(dynamic, found, starts).tobytes())
        _store(image, strings_at, strings)
        _store(image, hashes_at, hashes)
        kinds = self._relocations
        rows = [(place, kinds.relative, value) for place, value in self._pointers]
        rows += [
            (self._word_of[function], number << 32 | kinds.glob_dat, 0) for number, function in enumerate(found, 1)
        ]
        assert len(rows) == relocations
        _store(image, relocations_at, np.array(rows, elf.RELOCATION).tobytes())
        entries = [(_NEEDED, start) for start in starts[len(dynamic) : -1]]
        entries += [(_SONAME, starts[-1])] * bool(self._name)
        entries += [(_HASH, hashes_at), (_STRTAB, strings_at), (_SYMTAB, symbols_at), (_STRSZ, len(strings))]
        entries += [(_SYMENT, elf.SYMBOL.itemsize)]
        entries += [(_RELA, relocations_at), (_RELASZ, relocations * elf.RELOCATION.itemsize)]
        entries += [(_RELAENT, elf.RELOCATION.itemsize), (0, 0)]
        _store(image, table, np.array(entries, elf.DYNAMIC).tobytes())

        segments = [
            (_LOAD, part.flags, part.start - part.gap, part.start, part.start, size, part.end - part.start, kinds.page)
            for part, size in ((constants, constants.end), (code, code.end - code.start), (data, stored - data.start))
        ]
        length = len(entries) * elf.DYNAMIC.itemsize
        segments += [
            (_DYNAMIC, data.flags, table - data.gap, table, table, length, length, 8),
            (_EH_FRAME, _READ, frames_header, frames_header, frames_header, 8, 8, 4),
            (_STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 16),
        ]
        tables = {
            ".dynsym": (elf.DYNSYM, elf.ALLOC, symbols_at, (len(dynamic) + 1) * elf.SYMBOL.itemsize, 2, 1),
            ".dynstr": (elf.STRTAB, elf.ALLOC, strings_at, len(strings), 0, 0),
            ".hash": (elf.HASH, elf.ALLOC, hashes_at, len(hashes), 1, 0),
            ".text": (elf.PROGBITS, elf.ALLOC | elf.EXECUTE, code.start, code.end - code.start, 0, 0),
            ".data": (elf.PROGBITS, elf.ALLOC | elf.WRITE, data.start, stored - data.start, 0, 0),
            ".dynamic": (elf.DYNAMIC_TABLE, elf.ALLOC | elf.WRITE, table, length, 2, 0),
            ".rela.dyn": (elf.RELA, elf.ALLOC, relocations_at, relocations * elf.RELOCATION.itemsize, 1, 0),
        }
        return _with_sections(self._machine, image, segments, tables, self._function_symbols())

    def _find_symbols(self) -> None:
        """What the objects define for each other, and what none of them defines."""
        for file in self._objects:
            symbols = file.file.symbols
            bindings = symbols["info"] >> 4
            numbers = np.flatnonzero((symbols["section"] != elf.UNDEFINED) & (bindings != elf.LOCAL))
            for number, name in zip(numbers.tolist(), file.file.symbol_names(numbers), strict=True):
                if name not in self._defined or bindings[number] == elf.GLOBAL:
                    if name in self._defined and symbols_binding(self._defined[name]) == elf.GLOBAL:
                        raise CompileError(f"two object files define {name}")
                    self._defined[name] = (file, number)
        for file in self._objects:
            for name in file.file.symbol_names(file.undefined):
                if name not in self._defined:
                    self._outside[name] = 0

    def _find_words(self) -> int:
        """Marks the symbols whose address code takes from a word, and that are defined; how many words that makes."""
        names: set[str] = set()
        for file in self._objects:
            marked = [
                symbols[np.isin(kinds, self._relocations.of_words)] for _, kinds, symbols, _ in file.relocations()
            ]
            numbers = np.unique(np.concatenate(marked)) if marked else np.empty(0, np.int64)
            is_local = (file.file.symbols["info"][numbers] >> 4) == elf.LOCAL
            self._local_words += [(file, number) for number in numbers[is_local].tolist()]
            names.update(file.file.symbol_names(numbers[~is_local]))
        self._shared_words = sorted(names & self._defined.keys())
        return len(self._local_words) + len(self._shared_words)

    def _absolute(self) -> int:
        """How many addresses the objects themselves hold."""
        return sum(
            int((kinds == self._relocations.absolute).sum())
            for file in self._objects
            for _, kinds, _, _ in file.relocations()
        )

    def _lay_out(self, part: _Segment, flags: int, *, frames: bool = False, empty: bool = False) -> None:
        """Places the sections with these flags behind each other."""
        for file in self._objects:
            sections = file.file.sections
            relevant = sections["flags"] & np.uint64(elf.ALLOC | elf.WRITE | elf.EXECUTE)
            chosen = (relevant == flags) & ((sections["type"] == elf.NOBITS) == empty)
            for number in np.flatnonzero(chosen).tolist():
                if flags != elf.ALLOC or (file.file.section_names[number] == _FRAMES) == frames:
                    header = sections[number]
                    file.addresses[number] = part.place(int(header["size"]), max(1, int(header["align"])))

    def _place_words(self, data: _Segment) -> None:
        for name in self._shared_words:
            self._word_of[name] = data.place(8)
        for file, number in self._local_words:
            file.words[number] = data.place(8)

    def _copy_sections(self, image: np.ndarray) -> None:
        for file in self._objects:
            for number in np.flatnonzero(file.addresses).tolist():
                if file.file.sections[number]["type"] != elf.NOBITS:
                    _store(image, int(file.addresses[number]), file.file.content(number))

    def _resolve(self) -> None:
        """The addresses of all symbols, and of the words that hold them."""
        for file in self._objects:
            symbols = file.file.symbols
            inside = (symbols["section"] != elf.UNDEFINED) & (symbols["section"] < len(file.addresses))
            places = file.addresses[np.where(inside, symbols["section"], 0)]
            file.values = np.where(
                inside, places + symbols["value"].astype(np.int64), symbols["value"].astype(np.int64)
            )
        for file in self._objects:
            for number, name in zip(file.undefined.tolist(), file.file.symbol_names(file.undefined), strict=True):
                file.values[number] = self._outside[name] if name in self._outside else self._address(name)
        for file in self._objects:
            numbers = np.flatnonzero(file.file.symbols["info"] >> 4 != elf.LOCAL)
            for number, name in zip(numbers.tolist(), file.file.symbol_names(numbers), strict=True):
                file.words[number] = self._word_of.get(name, 0)
        self._pointers += [(self._word_of[name], self._address(name)) for name in self._shared_words]
        self._pointers += [(int(file.words[number]), int(file.values[number])) for file, number in self._local_words]

    def _address(self, name: str) -> int:
        file, number = self._defined[name]
        return int(file.values[number])

    def _relocate(self, image: np.ndarray) -> None:
        for file in self._objects:
            for section, kinds, symbols, rows in file.relocations():
                places = int(file.addresses[section]) + rows["offset"].astype(np.int64)
                in_words, absolute = np.isin(kinds, self._relocations.of_words), kinds == self._relocations.absolute
                values = np.where(in_words, file.words[symbols], file.values[symbols]) + rows["addend"]
                unknown = ~(self._relocations.known(kinds) | absolute)
                if unknown.any():
                    raise CompileError(f"an object file has relocations of the kind {int(kinds[unknown][0])}")
                if absolute.any() and not file.file.sections[section]["flags"] & elf.WRITE:
                    raise CompileError(f"{file.file.section_names[section]} holds addresses, and is not writable")
                here = ~absolute
                self._relocations.fill_in(image, places[here], kinds[here], values[here])
                self._pointers += zip(places[absolute].tolist(), values[absolute].tolist(), strict=True)

    def _dynamic_symbols(self, names: Sequence[str], found: Sequence[str], starts: Sequence[int]) -> np.ndarray:
        """What the loader looks up, what others may look up, and the words of imports."""
        table = np.zeros(len(names) + 1, elf.SYMBOL)
        for row, name, start in zip(table[1:], names, starts, strict=False):
            row["name"], row["info"] = start, elf.GLOBAL << 4 | elf.FUNCTION
            if name in self._defined:
                file, number = self._defined[name]
                row["info"], row["size"] = file.file.symbols["info"][number], file.file.symbols["size"][number]
                kind = int(row["info"]) & 15
                row["section"], row["value"] = _TEXT if kind == elf.FUNCTION else _DATA, self._address(name)
            elif name.startswith(IMPORT):
                row["info"], row["size"] = elf.GLOBAL << 4 | elf.OBJECT, 8
                row["section"], row["value"] = _DATA, self._word_of[name.removeprefix(IMPORT)]
        return table

    def _function_symbols(self) -> list[tuple[str, int, int]]:
        """(name, address, size) of every function, for debuggers, profilers and disassemblers."""
        functions: list[tuple[str, int, int]] = []
        for file in self._objects:
            symbols = file.file.symbols
            numbers = np.flatnonzero((symbols["info"] & 15 == elf.FUNCTION) & (symbols["section"] != elf.UNDEFINED))
            values, sizes = file.values[numbers].tolist(), symbols["size"][numbers].tolist()
            functions += zip(file.file.symbol_names(numbers), values, sizes, strict=True)
        return functions


def symbols_binding(place: tuple[_Object, int]) -> int:
    """Whether a symbol is `WEAK` or `GLOBAL`."""
    file, number = place
    return int(file.file.symbols["info"][number]) >> 4


@functools.cache
def library_of(function: str) -> str | None:
    """The library of the system that has a function; None for none of those that may be needed."""
    return next((name for name in _LIBRARIES if hasattr(ctypes.CDLL(name), function)), None)


def _with_sections(
    machine: int,
    image: np.ndarray,
    segments: Sequence[tuple[int, ...]],
    tables: dict[str, tuple[int, int, int, int, int, int]],
    functions: Sequence[tuple[str, int, int]],
) -> bytes:
    """The file: the image, the headers, and behind it what only tools read: sections and the functions' names.

    Args:
        machine: ELF's number of it.
        image: what is loaded, by addresses.
        tables: (type, flags, address, size, linked section, info) of sections by name, in their order from 1.
        functions: (name, address, size) of each.
    """
    names, starts = elf.string_table([name for name, _, _ in functions])
    symbols = np.zeros(1 + len(functions), elf.SYMBOL)
    for row, start, (_, address, size) in zip(symbols[1:], starts, functions, strict=True):
        row["name"], row["info"], row["section"] = start, elf.LOCAL << 4 | elf.FUNCTION, _TEXT
        row["value"], row["size"] = address, size
    behind = {".symtab": symbols.tobytes(), ".strtab": names}
    titles = [*tables, *behind, ".shstrtab"]
    behind[".shstrtab"], places = elf.string_table(titles)
    headers = np.zeros(1 + len(titles), elf.SECTION)
    loaded = [segment for segment in segments if segment[0] == _LOAD]
    end = _aligned(sum(loaded[-1][place] for place in (2, 5)))
    for row, title, place in zip(headers[1:], titles, places, strict=True):
        row["name"], row["align"] = place, 8
        if title in tables:
            kind, flags, address, size, linked, info = tables[title]
            gap = next(segment[3] - segment[2] for segment in reversed(loaded) if segment[3] <= address)
            row["type"], row["flags"], row["address"], row["offset"] = kind, flags, address, address - gap
            row["size"], row["link"], row["info"] = size, linked, info
        else:
            row["type"], row["offset"], row["size"] = elf.STRTAB, end, len(behind[title])
            end = _aligned(end + len(behind[title]))
    symbols_row = headers[1 + titles.index(".symtab")]
    symbols_row["type"], symbols_row["link"], symbols_row["info"] = (
        elf.SYMTAB,
        2 + titles.index(".symtab"),
        len(symbols),
    )
    for title in (".symtab", ".dynsym"):
        headers[1 + titles.index(title)]["entry_size"] = elf.SYMBOL.itemsize
    headers[1 + titles.index(".dynamic")]["entry_size"] = elf.DYNAMIC.itemsize
    headers[1 + titles.index(".hash")]["entry_size"] = 4
    headers[1 + titles.index(".rela.dyn")]["entry_size"] = elf.RELOCATION.itemsize
    header = np.zeros(1, elf.HEADER)
    row = header[0]
    row["ident"], row["type"], row["machine"], row["version"] = elf.IDENT, elf.SHARED, machine, 1
    row["segments"], row["sections"], row["size"] = elf.HEADER.itemsize, end, elf.HEADER.itemsize
    row["segment_size"], row["segment_count"] = elf.SEGMENT.itemsize, len(segments)
    row["section_size"], row["section_count"], row["section_names"] = elf.SECTION.itemsize, len(headers), len(titles)
    _store(image, 0, header.tobytes() + np.array(segments, elf.SEGMENT).tobytes())
    parts = [
        *(image[start : start + size].tobytes() for _, _, _, start, _, size, *_ in loaded),
        *(behind[title] for title in titles if title in behind),
    ]
    return b"".join(part.ljust(_aligned(len(part)), b"\0") for part in parts) + headers.tobytes()


def _store(image: np.ndarray, place: int, data: bytes) -> None:
    image[place : place + len(data)] = np.frombuffer(data, np.uint8)


def _word(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "little", signed=True)


def _aligned(size: int) -> int:
    return -(-size // 8) * 8
