"""Sums of products of bf16 and dequantized factors: processors with dot products of bf16 add up two terms at a time."""

from __future__ import annotations

from pipeline.analysis.element_range import has_exactly
from pipeline.analysis.scaled_sum import ScaledSum, dequantized_sum_of, is_for_few_rows
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import defining_op, ir


def paired_sum_of(view: LinalgOp) -> ScaledSum | None:
    """A sum of products of extf(x : bf16) and what bf16 has exactly, where dot products save time; None for others."""
    found = narrow_sum_of(view)
    if found is None or takes_longer_in_pairs(found, view):
        return None
    return found if narrow_data(found, view) is not None else None


def takes_longer_in_pairs(found: ScaledSum, view: LinalgOp) -> bool:
    """Whether making bf16 of bytes takes longer than the products of one row or two: not where they are made anyway."""
    return is_for_few_rows(view, found.weight) and has_exactly(ir.BF16Type.get(), found.core)


def narrow_sum_of(view: LinalgOp) -> ScaledSum | None:
    """A sum of products of data and what bf16 has exactly: what was rounded to bf16, or integers of eight bits."""
    found = dequantized_sum_of(view)
    if found is None:
        return None
    return found if _was_bf16(found.core) or has_exactly(ir.BF16Type.get(), found.core) else None


def narrow_data(found: ScaledSum, view: LinalgOp) -> int | None:
    """The number of the input in bf16 that the data of a sum is; None if it is something else."""
    if not _was_bf16(found.data):
        return None
    inputs, source = list(view.body.arguments)[: view.inputs], found.data.owner.operands[0]
    return inputs.index(source) if source in inputs else None


def _was_bf16(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name == "arith.extf" and isinstance(op.operands[0].type, ir.BF16Type)
