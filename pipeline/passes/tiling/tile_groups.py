"""tile-groups: the ops of a kernel run tile by tile inside of the loops that they have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.concat import insertion
from pipeline.analysis.loop_alignment import align
from pipeline.ir.destination_passing import origin
from pipeline.ir.kernels import has_control_flow, kernel_kind
from pipeline.ir.linalg_op import Structured, any_structured
from pipeline.ir.schedule import schedule_of
from pipeline.mlir import ir, terminator, walk
from pipeline.passes.fusion.group_replacement import CUSTOM
from pipeline.passes.tiling.group_tile_sizes import choose_tiles, lodgers
from pipeline.passmanager.base import Pass

#: Kinds of groups whose tiles are made in registers: by tile-and-vectorize, or by map-to-threads.
IN_REGISTERS = ("conv", "matmul", "pooling")


@dataclass(frozen=True)
class TileGroups(Pass):
    """Put one loop nest around all ops of a kernel, so that what they hand to each other is a tile that stays in cache.

    The loops are those that all ops have in common, see `pipeline.analysis.loop_alignment`; a softmax over the rows of a
    matrix becomes a loop over rows whose body has its two reductions and its elementwise ops, on one row each. Values
    between the ops become scratch tensors of the size of a tile, or lie where a result of the same size will be that is
    computed from them element by element. Kernels of one op, and matrix products, convolutions
    and pools with their epilogues, are left to tile-and-vectorize, and so are kernels that a user made with fuse-into,
    whose ops need not fit into common loops.
    """

    name: ClassVar[str] = "tile-groups"
    anchor: ClassVar[str] = "func.func"

    scratch: int = field(default=8192, metadata={"help": "how many bytes the values between the ops may take"})

    def run(self, op: ir.Operation) -> None:
        """Tiles one function if it is a kernel of several ops."""
        views = ops_to_tile(op)
        if views is None:
            return
        alignment = align(views)
        if not alignment.common:
            self.missed(op, "its ops have no loop in common")
            return
        from pipeline.passes.tiling.group_loop_nest import Tiler

        tiles = choose_tiles(alignment, schedule_of(op).scratch or self.scratch)
        self.passed(op, f"tiles of {' x '.join(map(str, tiles))} of the loops that its ops have in common")
        block = op.regions[0].blocks[0]
        returned = list(terminator(block).operands)
        Tiler(op, alignment, tiles, lodgers(alignment, returned)).emit()


def ops_to_tile(function: ir.Operation) -> list[Structured] | None:
    """The ops of a kernel of several that loops can be put around; None of any other function.

    Kernels that a user made stay as they are, and so do those whose tiles are made in registers.
    """
    if has_control_flow(function) or kernel_kind(function) in IN_REGISTERS or CUSTOM in function.attributes:
        return None
    views = computing_ops(function)
    return None if views is None or len(views) < 2 else views


def computing_ops(kernel: ir.Operation) -> list[Structured] | None:
    """The ops of a kernel other than slices and fills of initial values; None if one has no indexing maps.

    None too if one takes single elements or a slice of what another computes, which may lie in any tile of it.
    """
    found = []
    for op in (op.operation for op in kernel.regions[0].blocks[0].operations):
        if op.name == "tensor.extract_slice" and origin(op.operands[0]) != op.operands[0]:
            return None
        part = insertion(op)
        if part is not None:
            found.append(part)
        if not op.name.startswith("linalg.") or _is_initial(op):
            continue
        view = any_structured(op)
        if view is None or _extracts_from_another(op):
            return None
        found.append(view)
    return found


def _extracts_from_another(op: ir.Operation) -> bool:
    """Whether the body of `op` takes single elements of a tensor that is computed in the kernel."""
    return any(not isinstance(extract.operands[0].owner, ir.Block) for extract in walk(op, "tensor.extract"))


def _is_initial(op: ir.Operation) -> bool:
    if op.name != "linalg.fill":
        return False
    return all(
        use.owner.operation.name.startswith("linalg.")
        and use.operand_number >= len(use.owner.operation.operands) - len(use.owner.operation.results)
        for use in op.results[0].uses
    )
