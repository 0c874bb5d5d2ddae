"""add-workspace: the caller lends @main memory for its temporaries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.attributes import PROFILE, WORKSPACE
from pipeline.ir.rewriting import add_argument
from pipeline.mlir import function, ir
from pipeline.passmanager.base import Pass

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class AddWorkspace(Pass):
    """Give @main an argument for memory that the runtime lends it.

    @main(...)  ->  @main(..., %workspace: memref<?xi8> {pipeline.workspace})

    `plan-memory` puts temporaries there.
    """

    name: ClassVar[str] = "add-workspace"
    mandatory: ClassVar[bool] = True

    profile: bool = field(default=False, metadata={"help": "give it one for the times of its kernels, too"})

    def run(self, op: ir.Operation) -> None:
        """Adds the arguments."""
        main = function(op, "main")
        with main.location:
            add_argument(main, _memory(8), WORKSPACE)
            if self.profile:
                add_argument(main, _memory(64), PROFILE)


def _memory(bits: int) -> ir.MemRefType:
    return ir.MemRefType.get([_DYNAMIC], ir.IntegerType.get_signless(bits))
