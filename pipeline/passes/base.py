"""The form of a pass.

A pass is a frozen dataclass: `name` and `anchor` are class variables, its fields are its options (each with a default,
and a docstring in `metadata["help"]`), its docstring is its help, and `run` rewrites the IR. Help texts, `--list-passes`,
textual pipelines and the reference page derive from that alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from pipeline.mlir import ir


@dataclass(frozen=True)
class Pass(ABC):
    """A rewrite of one operation and what is inside it.

    Class attributes:
        name: what pipelines and command lines call it; the file is named after it with `_` for `-`.
        anchor: the op that `run` takes, e.g. `func.func`; a pipeline nests the pass there by itself.
    """

    name: ClassVar[str]
    anchor: ClassVar[str] = "builtin.module"

    @abstractmethod
    def run(self, op: ir.Operation) -> None:
        """Rewrites `op` in place. Raises `PipelineError` if the IR is not what the pass can take."""
