"""The innermost loops of assembly for AArch64, and what is in them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class InnerLoop:
    """A loop without labels inside.

    Attributes:
        instructions: their text.
    """

    instructions: tuple[str, ...]

    def count(self, name: str) -> int:
        """How many instructions of a name there are."""
        return sum(text.split()[0] == name for text in self.instructions)

    @property
    def loaded(self) -> int:
        """How many vector registers are loaded, or lanes of them."""
        return sum(len(re.findall(r"\b[vqdsh]\d+", loaded)) for loaded in self._accesses("ld"))

    @property
    def stores(self) -> int:
        """How many instructions store vector registers."""
        return sum(bool(re.search(r"\b[vqdsh]\d+", stored)) for stored in self._accesses("st"))

    def _accesses(self, name: str) -> list[str]:
        """What is in front of the address in loads or stores."""
        return [text.split("[")[0] for text in self.instructions if text.startswith(name)]


def inner_loops(assembly: str) -> list[InnerLoop]:
    """Those of all functions."""
    found, lines = [], assembly.splitlines()
    starts: dict[str, int] = {}
    for number, line in enumerate(lines):
        label = re.match(r"(\.L\w+):", line)
        if label:
            starts[label[1]] = number
        jump = re.match(r"\tb\.\w+\t(\.L\w+)|\tt?cbn?z\t.*, (\.L\w+)", line)
        start = starts.get(jump[1] or jump[2]) if jump else None
        if start is not None and start == max(starts.values()):
            body = [text.strip() for text in lines[start + 1 : number + 1]]
            found.append(InnerLoop(tuple(text for text in body if text and not text.startswith("."))))
    return found
