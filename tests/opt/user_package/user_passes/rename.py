"""rename: a pass of a user's package."""

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.mlir import ir
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class Rename(Pass):
    """Put a prefix in front of each function's name."""

    name: ClassVar[str] = "user-rename"
    anchor: ClassVar[str] = "func.func"

    prefix: str = field(default="user_", metadata={"help": "what goes in front"})

    def run(self, op: ir.Operation) -> None:
        """Renames one function."""
        name = ir.StringAttr(op.attributes["sym_name"]).value
        op.attributes["sym_name"] = ir.StringAttr.get(self.prefix + name)
