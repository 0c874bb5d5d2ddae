"""Matrix products: both factors and the result are read along loops, unlike those of convolutions."""

from __future__ import annotations

from pipeline.analysis.op_naming import is_product
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.mlir import ir


def read_matrix_product(op: ir.Operation, *elements: type[ir.Type]) -> LinalgOp | None:
    """A matrix product of two tensors whose elements have one of these types; None if the op is something else."""
    kinds = [value.type for value in op.operands]
    if len(kinds) != 3 or not all(isinstance(kind, ir.RankedTensorType) for kind in kinds):
        return None
    if len(op.results) != 1 or not all(isinstance(kind.element_type, elements) for kind in kinds):
        return None
    view = any_structured(op) if is_product(op) else None
    return view if view is not None and all(map(_is_plain, view.maps)) else None


def _is_plain(indexing: ir.AffineMap) -> bool:
    """Whether each index is a loop of its own."""
    loops = [loop_of(expression) for expression in indexing.results]
    return None not in loops and len(set(loops)) == len(loops)
