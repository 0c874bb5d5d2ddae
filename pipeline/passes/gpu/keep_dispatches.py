"""keep-dispatches: what runs on the device, without the host's part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import DISPATCH
from pipeline.mlir import ir
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class KeepDispatches(Pass):
    """Erase all but the functions that are dispatches, and what the module says of the whole.

    func.func @main { call @conv } func.func @conv { .. } {pipeline.dispatch}  ->  func.func @conv { .. }

    Runs on a copy of the module, of which the host's plan is made.
    """

    name: ClassVar[str] = "keep-dispatches"
    mandatory: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Erases the others of one module."""
        for inner in list(op.regions[0].blocks[0].operations):
            if DISPATCH not in inner.operation.attributes:
                inner.operation.erase()
        for name in list(op.attributes):
            del op.attributes[name]
