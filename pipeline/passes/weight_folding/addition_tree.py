"""Sums of data: linalg ops that add two tensors, and trees of them."""

from __future__ import annotations

from pipeline.analysis.const_expr import ConstExprs
from pipeline.mlir import defining_op, ir, linalg, walk


def read_sums(function: ir.Operation, weights: ConstExprs) -> list[ir.Operation]:
    """The last op of each sum, in program order."""
    sums = [op for op in walk(function, "linalg.generic", "linalg.add") if is_sum(op, weights)]
    return [op for op in sums if not any(_is_term(op, other) for other in sums)]


def is_sum(op: ir.Operation | None, weights: ConstExprs) -> bool:
    """Whether `op` is x + y, both data of the result's type."""
    if op is None or op.name not in ("linalg.generic", "linalg.add") or len(op.operands) != 3:
        return False
    if any(operand.type != op.results[0].type or operand in weights for operand in list(op.operands)[:2]):
        return False
    maps = [ir.AffineMapAttr(entry).value for entry in linalg.get_indexing_maps(op)]
    block = op.regions[0].blocks[0]
    if any(indexing != ir.AffineMap.get_identity(indexing.n_dims) for indexing in maps) or len(block.operations) != 2:
        return False
    first = block.operations[0].operation
    return first.name == "arith.addf" and list(first.operands) in (
        list(block.arguments)[:2],
        list(block.arguments)[1::-1],
    )


def terms(last: ir.Operation, weights: ConstExprs) -> list[tuple[ir.Operation, int]]:
    """Where the terms of a sum stand, first ones first: an op of the sum and the number of its operand."""
    found: list[tuple[ir.Operation, int]] = []
    for number in range(2):
        producer = defining_op(last.operands[number])
        if producer is not None and is_sum(producer, weights) and _is_term(producer, last):
            found += terms(producer, weights)
        else:
            found.append((last, number))
    return found


def _is_term(op: ir.Operation, last: ir.Operation) -> bool:
    """Whether the result of `op` is a term of `last` and nothing else, in the same block."""
    uses = [use.owner.operation for use in op.results[0].uses]
    return op.block == last.block and uses == [last]
