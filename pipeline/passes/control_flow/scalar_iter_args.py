"""Integers and flags that a loop carries as tensors of one element become numbers that it carries."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import before, copy_attributes, replace
from pipeline.mlir import ir, scf, tensor, walk_innermost_first


def carry_numbers(function: ir.Operation) -> list[ir.Operation]:
    """Rewrites the loops of a function; returns the new ones.

    for (t = a) { f(t); yield u } -> for (n = extract a) { f(from_elements n); yield extract u }
    """
    made = [_for(loop) for loop in walk_innermost_first(function, "scf.for") if _numbers(list(loop.operands)[3:])]
    whiles = walk_innermost_first(function, "scf.while")
    return made + [_while(loop) for loop in whiles if _numbers(loop.operands) or _numbers(loop.results)]


def _is_number(kind: ir.Type) -> bool:
    """Whether a type is that of an integer tensor with one element."""
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        return False
    return isinstance(kind.element_type, ir.IntegerType) and all(size == 1 for size in kind.shape)


def _numbers(values: Sequence[ir.Value]) -> bool:
    return any(_is_number(value.type) for value in values)


def _type(kind: ir.Type) -> ir.Type:
    return ir.RankedTensorType(kind).element_type if _is_number(kind) else kind


def _unbox(value: ir.Value) -> ir.Value:
    """The number in a tensor of one element; other values as they are."""
    if not _is_number(value.type):
        return value
    rank = ir.RankedTensorType(value.type).rank
    return tensor.ExtractOp(value, [as_index(0)] * rank if rank else []).result


def _box(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The number as a tensor of type `kind`; other values as they are."""
    return value if value.type == kind else tensor.FromElementsOp(kind, [value]).result


def _for(loop: ir.Operation) -> ir.Operation:
    with before(loop):
        initial = [_unbox(value) for value in list(loop.operands)[3:]]
        made = scf.ForOp(*list(loop.operands)[:3], initial).operation
    copy_attributes(loop, made)
    old, new = loop.regions[0].blocks[0], made.regions[0].blocks[0]
    _move(old, new)
    _replace_results(loop, made)
    return made


def _while(loop: ir.Operation) -> ir.Operation:
    with before(loop):
        initial = [_unbox(value) for value in loop.operands]
        made = scf.WhileOp([_type(result.type) for result in loop.results], initial).operation
    copy_attributes(loop, made)
    types = [value.type for value in initial], [result.type for result in made.results]
    for old, region, kinds in zip(loop.regions, made.regions, types, strict=True):
        with loop.location:
            new = ir.Block.create_at_start(region, kinds)
        _move(old.blocks[0], new)
    _replace_results(loop, made)
    return made


def _move(old: ir.Block, new: ir.Block) -> None:
    """Moves the ops of a loop's block to the new one, whose arguments are numbers where they can be."""
    *ops, terminator = [op.operation for op in old.operations]
    with terminator.location, ir.InsertionPoint(new):
        for argument, value in zip(old.arguments, new.arguments, strict=True):
            argument.replace_all_uses_with(_box(value, argument.type))
    for op in ops:
        new.append(op)
    handed = list(terminator.operands)
    with terminator.location, ir.InsertionPoint(new):
        if terminator.name == "scf.condition":
            scf.ConditionOp(handed[0], [_unbox(value) for value in handed[1:]])
        else:
            scf.YieldOp([_unbox(value) for value in handed])


def _replace_results(loop: ir.Operation, made: ir.Operation) -> None:
    with before(loop):  # which is right behind the new one
        values = [_box(mine, its.type) for mine, its in zip(made.results, loop.results, strict=True)]
    replace(loop, values)
