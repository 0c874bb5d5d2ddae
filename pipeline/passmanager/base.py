"""The form of a pass.

A pass is a frozen dataclass: `name` and `anchor` are class variables, its fields are its options (each with a default,
and its help in `metadata["help"]`), its docstring is its help, and `run` rewrites the IR. Help texts, `--list-passes`,
textual pipelines and the reference page derive from that alone.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

from pipeline import remarks
from pipeline.diagnostics import Diagnostic
from pipeline.errors import CompileError
from pipeline.fusion_rules.reasons import Reason
from pipeline.mlir import ir, position
from pipeline.passmanager.options import Option, options_of, parse_options


@dataclass(frozen=True)
class Pass(ABC):
    """A rewrite of one operation and what is inside it.

    Class attributes:
        name: what pipelines and command lines call it; the file is named after it with `_` for `-`.
        anchor: the op that `run` takes, e.g. `func.func`; a pipeline nests the pass there by itself.
        mandatory: whether no model may be compiled without it, since programs would be wrong, crash or not be lowered.
    """

    name: ClassVar[str]
    anchor: ClassVar[str] = "builtin.module"
    mandatory: ClassVar[bool] = False

    @abstractmethod
    def run(self, op: ir.Operation) -> None:
        """Rewrites `op` in place. Its context is the current one, a location is not set.

        Raises `PipelineError` if the IR is not what the pass can take; `fail` does that with a position.
        """

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The options by name."""
        return options_of(cls)

    @classmethod
    def parse(cls, options: str = "") -> Self:
        """The pass with the options of a pipeline text, `a=1 b=2`; raises `OptionError` for a wrong one."""
        return cls(**parse_options(options, cls.options()))

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (inspect.getdoc(cls) or "").partition("\n")[0]

    def __str__(self) -> str:
        """The pass as an element of a pipeline text, with the options that differ from their defaults."""
        values = [(option, getattr(self, option.field)) for option in self.options().values()]
        changed = [option.format(value) for option, value in values if value != option.default]
        return f"{self.name}{{{' '.join(changed)}}}" if changed else self.name

    def passed(self, op: Any, reason: str, producer: Any = None) -> None:
        """Leaves a remark that the pass did something to `op`: with `producer`, that it fused the two."""
        remarks.passed(self.name, op, reason, producer)

    def missed(self, op: Any, reason: str, why: Reason | None = None, producer: Any = None) -> None:
        """Leaves a remark that the pass left `op` alone, and why: with `producer`, that it did not fuse the two."""
        remarks.missed(self.name, op, reason, why, producer)

    def fail(self, op: Any, reason: str) -> NoReturn:
        """Gives up because of `op`; raises `CompileError` that points to it."""
        raise CompileError(reason, [Diagnostic("error", reason, *position(op.location))])
