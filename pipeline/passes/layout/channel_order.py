"""Images that come from tensors with channels innermost, by a transpose of the model's own; for layout_cost."""

from __future__ import annotations

from pipeline.ir.indexing_maps import is_permutation
from pipeline.ir.linalg_op import any_structured
from pipeline.ir.reshapes import RESHAPES
from pipeline.mlir import defining_op, has_one_use, ir

#: The dim of an image with channels first that they are.
_CHANNELS = 1


def undoes_transpose(value: ir.Value) -> bool:
    """Whether an image [N, C, H, W] is a transpose of what has channels innermost, which nothing else reads.

    Dims of size 1 do not count, nor reshapes that add or drop them: a line [N, L, C] becomes an image [N, C, 1, L].
    """
    kind = ir.RankedTensorType(value.type)
    if kind.shape[_CHANNELS] == 1:
        return False
    channels = sum(size != 1 for size in kind.shape[:_CHANNELS])
    producer = defining_op(value)
    while producer is not None and producer.name in RESHAPES and _is_read_once(producer):
        if _large(producer.operands[0]) != _large(producer.results[0]):
            return False
        producer = defining_op(producer.operands[0])
    if producer is None or not _is_read_once(producer):
        return False
    order = _order(producer)
    return order is not None and order[channels] == len(order) - 1 != channels


def _is_read_once(op: ir.Operation) -> bool:
    return has_one_use(op.results[0])


def _large(value: ir.Value) -> list[int]:
    return [size for size in ir.RankedTensorType(value.type).shape if size != 1]


def _order(op: ir.Operation) -> list[int] | None:
    """For each dim of a transpose's result that of its operand, those of size 1 apart; None for another op."""
    view = any_structured(op)
    if view is None or view.inputs != 1 or len(op.results) != 1 or not view.is_elementwise:
        return None
    if view.yielded[0] != view.body.arguments[0] or not all(map(is_permutation, view.maps)):
        return None
    source, result = (
        [loop for loop in view.loops_read(operand) if view.sizes[loop] != 1] for operand in (0, view.inputs)
    )
    return [source.index(loop) for loop in result]
