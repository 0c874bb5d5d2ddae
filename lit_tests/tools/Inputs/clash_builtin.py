"""A plugin whose pass has a name that is taken."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.mlir import ir
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class Clash(Pass):
    """Do nothing."""

    name: ClassVar[str] = "remove-unused-results"

    def run(self, op: ir.Operation) -> None:
        pass
