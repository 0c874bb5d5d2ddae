"""Whether conditions hold for all iterations of an op, as one flag: what a check looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pipeline.analysis.code_motion import needed_ops
from pipeline.ir.indexing_maps import bounded_loops, loops_in
from pipeline.ir.linalg_op import structured
from pipeline.ir.rewriting import build_generic, iterator_types
from pipeline.mlir import arith, clone, ir, linalg, tensor

#: Builds conditions on elements at the insertion point.
Conditions = Callable[[Sequence[ir.Value]], Sequence[ir.Value]]


def all_hold(generic: ir.Operation, conditions: list[ir.Value]) -> ir.Value:
    """At the insertion point: whether the conditions, values of the body of `generic`, hold for all its iterations.

    Those together that are checked in the same loops: each is checked once for what it depends on.
    """
    body = [op.operation for op in generic.regions[0].blocks[0].operations]
    groups: dict[tuple[int, ...], list[ir.Value]] = {}
    for condition in conditions:
        _, dims = _check_loops(generic, needed_ops(body, [condition]), [condition])
        groups.setdefault(tuple(dims), []).append(condition)
    return _both([_hold_together(generic, group) for group in groups.values()])


def _hold_together(generic: ir.Operation, conditions: list[ir.Value]) -> ir.Value:
    """The same, where all conditions are checked in the same loops."""
    body = generic.regions[0].blocks[0]
    needed = needed_ops([op.operation for op in body.operations], conditions)
    numbers, dims = _check_loops(generic, needed, conditions)
    read = [body.arguments[number] for number in numbers]
    maps = [_over(ir.AffineMapAttr(generic.attributes["indexing_maps"][number]).value, dims) for number in numbers]

    def held(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        known: dict[ir.Value, ir.Value] = dict(zip(read, elements, strict=True))
        for op in needed:
            copy = clone(op, known)
            if op.name == "linalg.index":
                dim = dims.index(ir.IntegerAttr(op.attributes["dim"]).value)
                copy.attributes["dim"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
        return [known.get(condition, condition) for condition in conditions]

    return hold_for([generic.operands[number] for number in numbers], maps, len(dims), held)


def hold_for(inputs: Sequence[ir.Value], maps: Sequence[ir.AffineMap], loops: int, conditions: Conditions) -> ir.Value:
    """At the insertion point: whether conditions on elements of tensors hold for all iterations of loops.

    `maps` has the indexing map of each of the inputs; `conditions` builds the conditions on an element of each.
    """
    flag = ir.IntegerType.get_signless(1)
    start = linalg.fill(arith.ConstantOp(flag, 1).result, outs=[tensor.EmptyOp([], flag).result])

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        *read, held = elements
        return [arith.AndIOp(held, _both(conditions(read))).result]  # a plain fold, which has a vector form

    onto_flag = ir.AffineMap.get(loops, 0, [])
    check = build_generic(inputs, [start], [*maps, onto_flag], iterator_types([True] * loops), body)
    return tensor.ExtractOp(check.results[0], []).result


def _both(conditions: Sequence[ir.Value]) -> ir.Value:
    """Whether all conditions hold."""
    return reduce(lambda a, b: arith.AndIOp(a, b).result, conditions)


def _check_loops(
    generic: ir.Operation, ops: list[ir.Operation], conditions: list[ir.Value]
) -> tuple[list[int], list[int]]:
    """The operands and the loops of a check: those that the conditions depend on, if the others run at all.

    All of them where the others may run no round, for then no condition need hold, and where the others bound a loop.
    """
    view = structured(generic)
    assert view is not None
    maps = view.maps
    used = {operand for op in ops for operand in op.operands} | set(conditions)
    dims = {ir.IntegerAttr(op.attributes["dim"]).value for op in ops if op.name == "linalg.index"}
    for argument in view.body.arguments:
        if argument in used:
            dims |= loops_in(maps[argument.arg_number])
    others = [size for dim, size in enumerate(view.sizes) if dim not in dims]
    numbers = [number for number, indexing in enumerate(maps) if loops_in(indexing) <= dims]
    if not all(others) or bounded_loops([maps[number] for number in numbers]) != dims:
        return list(range(len(maps))), list(range(view.loops))
    read = {argument.arg_number for argument in view.body.arguments if argument in used}
    if bounded_loops([maps[number] for number in read]) == dims:
        numbers = sorted(read)
    return numbers, sorted(dims)


def _over(indexing: ir.AffineMap, dims: list[int]) -> ir.AffineMap:
    """The map as one of the loops `dims` alone."""
    here = [ir.AffineConstantExpr.get(0)] * indexing.n_dims
    for position, dim in enumerate(dims):
        here[dim] = ir.AffineDimExpr.get(position)
    into = ir.AffineMap.get(len(dims), 0, here)
    return ir.AffineMap.get(len(dims), 0, [expression.compose(into) for expression in indexing.results])
