"""When two ops compute the same."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.mlir import ir


def is_same(one: ir.Operation, other: ir.Operation, known: Mapping[ir.Value, ir.Value]) -> bool:
    """Whether `one` and `other` are the same op, regions included, where `known` maps values of `other` to `one`'s."""
    return _is_same(one, other, dict(known))


def _is_same(one: ir.Operation, other: ir.Operation, known: dict[ir.Value, ir.Value]) -> bool:
    if one.name != other.name or len(one.regions) != len(other.regions) or _attributes(one) != _attributes(other):
        return False
    if [result.type for result in one.results] != [result.type for result in other.results]:
        return False
    if list(one.operands) != [known.get(operand, operand) for operand in other.operands]:
        return False
    known.update(zip(other.results, one.results, strict=True))
    return all(_same_region(mine, its, known) for mine, its in zip(one.regions, other.regions, strict=True))


def _same_region(one: ir.Region, other: ir.Region, known: dict[ir.Value, ir.Value]) -> bool:
    """For regions of at most one block each."""
    if len(one.blocks) != len(other.blocks) or len(one.blocks) > 1:
        return False
    return all(_same_block(mine, its, known) for mine, its in zip(one.blocks, other.blocks, strict=True))


def _same_block(one: ir.Block, other: ir.Block, known: dict[ir.Value, ir.Value]) -> bool:
    if [argument.type for argument in one.arguments] != [argument.type for argument in other.arguments]:
        return False
    known.update(zip(other.arguments, one.arguments, strict=True))
    mine, its = ([op.operation for op in block.operations] for block in (one, other))
    return len(mine) == len(its) and all(_is_same(a, b, known) for a, b in zip(mine, its, strict=True))


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}
