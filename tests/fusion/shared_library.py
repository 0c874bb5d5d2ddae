"""Shared libraries for tests, with no compiler and no linker at hand: LLVM IR → machine code → a minimal ELF file."""

from __future__ import annotations

import struct

from llvmlite import binding

from pipeline.llvm import initialize_llvm

_EHDR, _PHDR, _SYM = 64, 56, 24


def write_library(path, ir_text, function):
    """Writes a library with one function, whose code must need no relocations."""
    path.write_bytes(_elf(_machine_code(ir_text), function.encode()))


def _machine_code(ir_text):
    initialize_llvm()
    machine = binding.Target.from_default_triple().create_target_machine(opt=1, reloc="pic", codemodel="small")
    object_file = binding.ObjectFileRef.from_data(machine.emit_object(binding.parse_assembly(ir_text)))
    sections = {section.name(): section.data() for section in object_file.sections()}
    found = {name.decode() if isinstance(name, bytes) else name: data for name, data in sections.items() if name}
    assert ".rela.text" not in found
    return found[".text"]


def _elf(code, name):
    """One segment that holds everything; the dynamic table names symbols, strings and the hash table."""
    strings = b"\0" + name + b"\0"
    hashes = struct.pack("<5I", 1, 2, 1, 0, 0)  # one bucket with symbol 1
    start = _EHDR + 2 * _PHDR
    code_at = (start + 15) // 16 * 16
    symbols_at = (code_at + len(code) + 7) // 8 * 8
    hashes_at = symbols_at + 2 * _SYM
    strings_at = hashes_at + len(hashes) + 4
    dynamic_at = (strings_at + len(strings) + 7) // 8 * 8
    entries = [(4, hashes_at), (5, strings_at), (6, symbols_at), (10, len(strings)), (11, _SYM), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", tag, value) for tag, value in entries)
    size = dynamic_at + len(dynamic)
    data = bytearray(size)
    ident = b"\x7fELF\2\1\1" + bytes(9)
    data[:_EHDR] = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, _EHDR, 0, 0, _EHDR, _PHDR, 2, 64, 0, 0)
    segments = [(1, 7, 0, size, 4096), (2, 6, dynamic_at, len(dynamic), 8)]
    for number, (kind, flags, offset, length, align) in enumerate(segments):
        header = struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, length, length, align)
        data[_EHDR + number * _PHDR : _EHDR + (number + 1) * _PHDR] = header
    data[code_at : code_at + len(code)] = code
    symbol = struct.pack("<IBBHQQ", 1, 0x12, 0, 1, code_at, len(code))
    data[symbols_at + _SYM : symbols_at + 2 * _SYM] = symbol
    data[hashes_at : hashes_at + len(hashes)] = hashes
    data[strings_at : strings_at + len(strings)] = strings
    data[dynamic_at:] = dynamic
    return bytes(data)
