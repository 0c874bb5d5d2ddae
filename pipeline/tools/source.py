"""The input of a driver: where it is read from, and how it is split and named in messages."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.diagnostics import Diagnostic
from pipeline.errors import OptionError

SEPARATOR = "// -----"


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
    """Reads a file, or stdin where `path` is `-`; raises `OptionError` if it cannot be read as text."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}") from None
    try:
        return NamedText("<stdin>" if path == "-" else path, data.decode())
    except UnicodeDecodeError:
        raise OptionError(f"{path}: not UTF-8 text") from None


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
