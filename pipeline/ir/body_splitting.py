"""Cuts values out of the body of a linalg.generic: ops of their own compute them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import (
    before,
    build_generic,
    copy_attributes,
    copy_value,
    drop_dead_ops,
    drop_unused_inputs,
    iterator_types,
    replace,
    size_of,
)
from pipeline.mlir import clone, ir, tensor


@dataclass(frozen=True)
class BodyPart:
    """A value of a body that is computed from some of the inputs.

    Attributes:
        value: the value.
        inputs: the numbers of the inputs.
        indices: what these are read at: the loops of the op that computes it.
    """

    value: ir.Value
    inputs: tuple[int, ...]
    indices: tuple[ir.AffineExpr, ...]


def split_body(view: LinalgOp, parts: Sequence[BodyPart]) -> ir.Operation:
    """Gives an op as further inputs what it has computed itself; returns the op in its place."""
    with before(view.op):
        made = [_computed(view, part) for part in parts]
    inputs = [*list(view.op.operands)[: view.inputs], *made]
    outputs = list(view.op.operands)[view.inputs :]
    read = [ir.AffineMap.get(view.loops, 0, list(part.indices)) for part in parts]
    maps = [*view.maps[: view.inputs], *read, *view.maps[view.inputs :]]

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        values = dict(zip([part.value for part in parts], elements[view.inputs : len(inputs)], strict=True))
        arguments = [*elements[: view.inputs], *elements[len(inputs) :]]
        known: dict[ir.Value, ir.Value] = dict(zip(view.body.arguments, arguments, strict=True))
        for op in view.body_ops:
            if len(op.results) == 1 and op.results[0] in values:
                known[op.results[0]] = values[op.results[0]]
            else:
                clone(op, known)
        return [known.get(value, value) for value in view.yielded]

    with before(view.op):
        smaller = build_generic(inputs, outputs, maps, iterator_types(view.reductions), body)
    copy_attributes(view.op, smaller)
    replace(view.op, list(smaller.results))
    drop_dead_ops(smaller)
    return drop_unused_inputs(smaller) or smaller


def _computed(view: LinalgOp, part: BodyPart) -> ir.Value:
    """A tensor of a value for all that it is computed from."""
    operands = [view.op.operands[number] for number in part.inputs]
    loops = range(len(part.indices))
    dims = {index: ir.AffineExpr.get_dim(loop) for loop, index in enumerate(part.indices)}
    maps = [
        ir.AffineMap.get(len(loops), 0, [dims.get(index, index) for index in view.maps[number].results])
        for number in part.inputs
    ]
    out = tensor.EmptyOp([_size(view, part, index) for index in part.indices], part.value.type).result

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        arguments = [view.body.arguments[number] for number in part.inputs]
        known: dict[ir.Value, ir.Value] = dict(zip(arguments, elements, strict=False))
        return [copy_value(part.value, known)]

    maps.append(ir.AffineMap.get_identity(len(loops)))
    return build_generic(operands, [out], maps, iterator_types(False for _ in loops), body).results[0]


def _size(view: LinalgOp, part: BodyPart, index: ir.AffineExpr) -> int | ir.Value:
    """How many elements there are along an index."""
    number, dim = next(
        (number, dim)
        for number in part.inputs
        for dim, expression in enumerate(view.maps[number].results)
        if expression == index
    )
    kind = ir.RankedTensorType(view.op.operands[number].type)
    return size_of(view.op.operands[number], dim) if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim)
