"""What becomes one launch of a device: questions about ops and loops on buffers."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.analysis.epilogue import epilogues
from pipeline.ir.attributes import LINES, PARALLEL, TILES
from pipeline.ir.linalg_op import bounded
from pipeline.ir.matchers import is_fill
from pipeline.mlir import constant_integer, ir, is_inside

#: Give another shape or name to the same memory.
VIEWS = (
    "memref.subview",
    "memref.expand_shape",
    "memref.collapse_shape",
    "memref.reinterpret_cast",
    "memref.cast",
    "memref.view",
)

_PURE = ("arith.", "math.", "affine.apply", "affine.min", "affine.max")

#: What the body of a loop may have whose iterations are blocks of threads.
_OF_BLOCKS = ("linalg.generic", "memref.copy", "memref.alloc", "memref.alloca", "memref.dim", "scf.yield", *VIEWS)


def epilogues_of(op: ir.Operation) -> list[ir.Operation]:
    """The elementwise ops right behind a linalg.generic that its launch does, too."""
    view = bounded(op) if op.name == "linalg.generic" and is_arithmetic(op) and not is_fill(op) else None
    return [] if view is None else [epilogue.op for epilogue in epilogues(view, is_arithmetic)]


def is_arithmetic(generic: ir.Operation) -> bool:
    """Whether the body computes from the elements of the operands and numbers alone."""
    names = [op.operation.name for op in generic.regions[0].blocks[0].operations][:-1]
    return all(name.startswith(("arith.", "math.")) for name in names)


def is_pure(op: ir.Operation) -> bool:
    """Whether an op computes numbers from numbers."""
    return op.name.startswith(_PURE)


def parallel_nest(root: ir.Operation) -> list[ir.Operation]:
    """The nested loops from `root` on whose iterations are independent, all of them from 0 in steps of 1."""
    return _nest(root, _is_of_lines)


def block_nest(root: ir.Operation) -> list[ir.Operation]:
    """The nested loops from `root` on whose iterations are blocks of threads, all of them from 0; see `iterations`.

    They are those of tile-groups-to-blocks; in the innermost one are linalg ops, copies, views and buffers alone.
    """
    nest = _nest(root, _is_of_blocks)
    if not nest:
        return []
    body = [op.operation for op in nest[-1].regions[0].blocks[0].operations]
    return nest if all(op.name in _OF_BLOCKS or is_pure(op) for op in body) else []


def iterations(loop: ir.Operation) -> ir.Value | int:
    """How often a loop of a nest runs: a loop whose length is not known takes steps of 1."""
    last, step = constant_integer(loop.operands[1]), constant_integer(loop.operands[2])
    return loop.operands[1] if last is None or step is None else -(-last // step)


def _nest(root: ir.Operation, suits: Callable[[ir.Operation], bool]) -> list[ir.Operation]:
    nest: list[ir.Operation] = []
    loop: ir.Operation | None = root
    while loop is not None and _is_from_zero(loop) and suits(loop) and not is_inside(loop.operands[1], root):
        nest.append(loop)
        effects = [op.operation for op in loop.regions[0].blocks[0].operations if not is_pure(op.operation)]
        loop = effects[0] if len(effects) == 2 else None  # the other one is the terminator
    return nest


def _is_from_zero(loop: ir.Operation) -> bool:
    return loop.name == "scf.for" and not loop.results and constant_integer(loop.operands[0]) == 0


def _is_of_lines(loop: ir.Operation) -> bool:
    return LINES in loop.attributes and constant_integer(loop.operands[2]) == 1


def _is_of_blocks(loop: ir.Operation) -> bool:
    if PARALLEL not in loop.attributes or ir.StringAttr(loop.attributes[PARALLEL]).value != TILES:
        return False
    _, last, step = list(loop.operands)[:3]
    return constant_integer(step) == 1 or None not in (constant_integer(last), constant_integer(step))
