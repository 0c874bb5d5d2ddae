"""The order of the loops around tiles of what is looked up: tables are read from one end to the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from pipeline.analysis.vectorizable import LOAD
from pipeline.ir.element_types import element_type
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir
from pipeline.passes.cpu.microkernel.data_dependent_indexing import step_along, uniform_ops

_CACHE_LINE = 64


def in_lookup_order(view: LinalgOp, vector_dim: int, outer: tuple[int, ...]) -> tuple[int, ...]:
    """The loops around tiles, those innermost that move least through the tables of an elementwise op without inputs.

    Flipped weights [O, I, H, W] that become [H, W, O, I] are read once, and not once for each tap. The loops stay as
    they are where places are not known, and where rows are so short that parts of cache lines would be written.
    """
    size, tables = view.sizes[vector_dim], [op for op in view.body_ops if op.name == LOAD]
    width = min(element_type(view.operands[output]).width for output in view.outputs) // 8
    if any(view.reductions) or view.inputs or not tables or size is None or size * width < _CACHE_LINE:
        return outer
    distances = {dim: _distance(view, tables, dim) for dim in outer}
    known = {dim: distance for dim, distance in distances.items() if distance is not None}
    return tuple(sorted(outer, key=lambda dim: -known[dim])) if len(known) == len(outer) else outer


def _distance(view: LinalgOp, loads: Sequence[ir.Operation], dim: int) -> int | None:
    """How many elements of tables a step of a loop moves by; None if that is not known."""
    computed = {result for op in view.body_ops for result in op.results}
    varying = computed - {op.results[0] for op in uniform_ops(view, dim)}
    total = 0
    for table, *indices in (load.operands for load in loads):
        kind, steps = ir.MemRefType(table.type), [step_along(index, dim, varying) for index in indices]
        known = [step for step in steps if step is not None]
        if not kind.has_static_shape or len(known) != len(steps):
            return None
        strides = list(accumulate(reversed(kind.shape[1:]), mul, initial=1))[: kind.rank]
        total += abs(sum(step * stride for step, stride in zip(reversed(known), strides, strict=True)))
    return total
