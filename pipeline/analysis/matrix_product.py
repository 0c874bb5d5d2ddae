"""Matrix products, whose factors and result are read along loops, and convolutions, whose data is read in windows."""

from __future__ import annotations

from pipeline.analysis.op_naming import is_product
from pipeline.ir.indexing_maps import coefficient, loop_of
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.mlir import ir


def read_matrix_product(op: ir.Operation, *elements: type[ir.Type]) -> LinalgOp | None:
    """A matrix product of two tensors whose elements have one of these types; None if the op is something else."""
    view = _read_product(op, *elements)
    return view if view is not None and all(map(_is_plain, view.maps)) else None


def read_convolution(op: ir.Operation, *elements: type[ir.Type]) -> LinalgOp | None:
    """A convolution of data and a weight whose elements have one of these types; None if the op is something else.

    The first factor is read along sums of loops, the other one and the result along loops.
    """
    view = _read_product(op, *elements)
    if view is None or _is_plain(view.maps[0]) or not all(map(_is_plain, view.maps[1:])):
        return None
    places = view.maps[0].results
    linear = all(coefficient(place, loop) is not None for place in places for loop in range(view.loops))
    return view if linear else None


def _read_product(op: ir.Operation, *elements: type[ir.Type]) -> LinalgOp | None:
    kinds = [value.type for value in op.operands]
    if len(kinds) != 3 or not all(isinstance(kind, ir.RankedTensorType) for kind in kinds):
        return None
    if len(op.results) != 1 or not all(isinstance(kind.element_type, elements) for kind in kinds):
        return None
    return any_structured(op) if is_product(op) else None


def _is_plain(indexing: ir.AffineMap) -> bool:
    """Whether each index is a loop of its own."""
    loops = [loop_of(expression) for expression in indexing.results]
    return None not in loops and len(set(loops)) == len(loops)
