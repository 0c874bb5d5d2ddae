"""A diagnostic: a message about a place in a file. Free of MLIR, so that errors can carry it out of a context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "remark", "note"]


@dataclass(frozen=True)
class Diagnostic:
    """One message.

    Attributes:
        severity: how bad it is.
        message: what is said; may span lines.
        file: the file it is about; MLIR calls text that it was handed `-`; empty where unknown.
        line: from 1; 0 where unknown.
        column: from 1; 0 where unknown.
        notes: what was said in addition.
    """

    severity: Severity
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    notes: tuple[Diagnostic, ...] = ()

    @property
    def place(self) -> str:
        """`file:line:column`, or empty where unknown."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else ""

    def __str__(self) -> str:
        said = f"{self.place}: {self.message}" if self.line else self.message
        return "\n".join([said, *(f"  note: {note}" for note in self.notes)])
