"""Moves a tensor.expand_shape up through a concatenation; what propagate-reshapes does besides splitting loops."""

from __future__ import annotations

from pipeline.analysis.concat import INSERT, parts_of
from pipeline.ir.reshapes import reassociation
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import defining_op, ir, tensor


def expand_parts(expand: ir.Operation) -> ir.Operation | None:
    """expand(concat(a, b)) -> concat(expand(a), expand(b)), if the dimension that they lie along stays one.

    Returns the op that inserts the last part then.
    """
    last = defining_op(expand.operands[0])
    if last is None or last.name != INSERT or len(list(last.results[0].uses)) != 1:
        return None
    parts, groups = parts_of(last), reassociation(expand)
    shape = list(ir.RankedTensorType(expand.results[0].type).shape)
    if parts is None or any(size != part for size, part in _split_sizes(parts, groups)):
        return None
    with before(expand):
        whole = tensor.EmptyOp(shape, ir.RankedTensorType(expand.results[0].type).element_type).result
        for part in parts:
            whole = _inserted(part, whole, groups)
    replace(expand, [whole])
    for part in reversed(parts):
        part.erase()
    return whole.owner.operation


def _split_sizes(parts: list[ir.Operation], groups: list[list[int]]) -> list[tuple[int, int]]:
    """(size of the whole, size of the part) along the dimensions that are split, for each part."""
    return [
        (ir.RankedTensorType(part.results[0].type).shape[dim], ir.RankedTensorType(part.operands[0].type).shape[dim])
        for part in parts
        for dim, group in enumerate(groups)
        if len(group) > 1
    ]


def _inserted(part: ir.Operation, whole: ir.Value, groups: list[list[int]]) -> ir.Value:
    """A part inserted into an expanded tensor."""
    kind = ir.RankedTensorType(part.operands[0].type)
    shape = list(ir.RankedTensorType(whole.type).shape)
    offsets = [0] * len(shape)
    sizes = list(shape)
    for dim, group in enumerate(groups):
        if len(group) == 1:
            offsets[group[0]] = list(ir.DenseI64ArrayAttr(part.attributes["static_offsets"]))[dim]
            sizes[group[0]] = kind.shape[dim]
    expanded = tensor.ExpandShapeOp(
        ir.RankedTensorType.get(sizes, kind.element_type), part.operands[0], groups, [], sizes
    ).result
    return tensor.InsertSliceOp(expanded, whole, [], [], [], offsets, sizes, [1] * len(sizes)).result
