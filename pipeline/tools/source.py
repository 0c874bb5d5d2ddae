"""The input of a driver: where it is read from, and how it is split and named in messages."""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from pipeline.diagnostics import Diagnostic
from pipeline.errors import OptionError
from pipeline.tools.isolation import run_isolated

SEPARATOR = "// -----"

#: What a file of MLIR's bytecode begins with.
_BYTECODE = b"ML\xefR"


@dataclass(frozen=True)
class NamedText:
    """MLIR text and the name that messages give it.

    MLIR calls the text that it parses `-`; `named` and `diagnostic` put the file's name there.
    """

    name: str
    text: str

    def split(self) -> list[NamedText]:
        """The parts between lines that start with `// -----`, each at the lines that it has in the whole."""
        parts = re.split(rf"^{SEPARATOR}.*$", self.text, flags=re.MULTILINE)
        chunks, lines_before = [], 0
        for part in parts:
            chunks.append(NamedText(self.name, "\n" * lines_before + part))
            lines_before += part.count("\n")
        return chunks

    def named(self, text: str) -> str:
        """`text` with positions in this file instead of in `-`."""
        text = re.sub(r'(^|[\s("])-:(\d+)', lambda match: f"{match[1]}{self.name}:{match[2]}", text, flags=re.MULTILINE)
        return text.replace('loc("-":', f'loc("{self.name}":')

    def diagnostic(self, found: Diagnostic) -> Diagnostic:
        """`found` with this file's name."""
        notes = tuple(map(self.diagnostic, found.notes))
        return replace(found, file=self.name if found.file == "-" else found.file, notes=notes)


def read(path: str) -> NamedText:
    """Reads a file, or stdin where `path` is `-`: text, or MLIR's bytecode; raises `OptionError` if it is neither."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}") from None
    name = "<stdin>" if path == "-" else path
    if data.startswith(_BYTECODE):
        return NamedText(name, _disassembled(name, data))
    try:
        return NamedText(name, data.decode())
    except UnicodeDecodeError:
        raise OptionError(f"{path}: not UTF-8 text") from None


def _disassembled(name: str, data: bytes) -> str:
    """Bytecode as text with its locations, made in a child: MLIR may abort on what is damaged."""
    with tempfile.TemporaryFile() as file:
        outcome = run_isolated(lambda: _disassemble(data, file))
        file.seek(0)
        if outcome != 0:
            raise OptionError(f"{name}: bytecode that cannot be read: damaged, or of another version of MLIR")
        return file.read().decode()


def _disassemble(data: bytes, file: IO[bytes]) -> int:
    from pipeline.mlir import context, ir, text

    try:
        module = ir.Module.parse(data, context())
    except ir.MLIRError:
        return 1
    file.write(text(module.operation, elements=None, debug_info=True).encode())
    file.flush()
    return 0


def write(path: str, text: str) -> None:
    """Writes a file, or stdout where `path` is `-`; raises `OptionError` if it cannot be written."""
    if path == "-":
        sys.stdout.write(text)
        return
    write_bytes(path, text.encode())


def write_bytes(path: str, data: bytes) -> None:
    """Likewise, of what is no text."""
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}") from None
