"""Takes affine steps out of the bodies of linalg ops, and puts merged ones in."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.scale_shift import Affine, Chain, Elementwise
from pipeline.ir.rewriting import (
    before,
    build_generic,
    copy_attributes,
    drop_dead_ops,
    drop_unused_inputs,
    iterator_types,
    replace,
)
from pipeline.mlir import arith, clone, defining_op, ir
from pipeline.passes.weight_folding.weight_builder import WeightSide, cast_to, compute_type, convert


def drop(elementwise: Elementwise) -> None:
    """step(x) -> x, or, where it has another type, cast(x); what only moves elements stays."""
    if not elementwise.is_plain:
        if elementwise.steps:
            bypass(elementwise)
            drop_dead_ops(elementwise.op)
            drop_unused_inputs(elementwise.op)
        return
    result = elementwise.op.results[0]
    with before(elementwise.op):
        result.replace_all_uses_with(cast_to(elementwise.data, ir.RankedTensorType(result.type).element_type))
    elementwise.op.erase()


def bypass(elementwise: Elementwise) -> None:
    """f(step(x)) -> f(x) in a body; what computed the step is unused then."""
    last = defining_op(elementwise.end)
    if last is not None:
        with before(last):
            elementwise.end.replace_all_uses_with(convert(elementwise.start, elementwise.end.type))


def merge_in_body(chain: Chain, side: WeightSide) -> ir.Operation:
    """f(step(step(x))) -> f(x * scale + shift) in the body of the last op of a chain, which reads the chain's data.

    Returns the op in the place of that one; some of its inputs may be unused.
    """
    last, op = chain.last, chain.last.op
    view, affine = last.view, chain.affine
    with before(op):
        vectors = [vector for vector in (affine.scale, affine.shift) if vector is not None]
        numbers = [(side.build(vector), vector.dims) for vector in vectors]
    tensors = [(value, dims) for value, dims in numbers if isinstance(value.type, ir.RankedTensorType)]
    inputs, outputs = list(op.operands)[: view.inputs], list(op.operands)[view.inputs :]
    if last.operand is not None:
        inputs[last.operand] = chain.data
    read = [ir.AffineMap.get(view.loops, 0, [ir.AffineExpr.get_dim(dim) for dim in dims]) for _, dims in tensors]
    maps = [*view.maps[: view.inputs], *read, *view.maps[view.inputs :]]

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        added = iter(elements[view.inputs :])
        scale_and_shift = [next(added) if value in dict(tensors) else value for value, _ in numbers]
        arguments = [*elements[: view.inputs], *added]
        known: dict[ir.Value, ir.Value] = dict(zip(view.body.arguments, arguments, strict=True))
        gone = last.ops()
        for inner in view.body_ops:
            if inner not in gone:
                clone(inner, known)
            elif inner.results[0] == last.end:
                known[last.end] = _affine_of(known[last.start], affine, scale_and_shift, last.end.type)
        return [known.get(value, value) for value in view.yielded]

    inputs += [value for value, _ in tensors]
    with before(op):
        made = build_generic(inputs, outputs, maps, iterator_types(view.reductions), body)
    copy_attributes(op, made)
    replace(op, list(made.results))
    drop_dead_ops(made)
    return made


def _affine_of(x: ir.Value, affine: Affine, numbers: Sequence[ir.Value], kind: ir.Type) -> ir.Value:
    """x * scale + shift, rounded once."""
    compute = compute_type((x, *numbers))
    x, *factors = (convert(value, compute) for value in (x, *numbers))
    if affine.scale is not None:
        x = arith.MulFOp(x, factors[0]).result
    return convert(arith.AddFOp(x, factors[-1]).result if affine.shift is not None else x, kind)
