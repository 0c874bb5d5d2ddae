"""Nests of scf.for that carry tensors, for ops whose bodies are written out element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import size_of
from pipeline.mlir import clone, ir, refusal, scf

Body = Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]]


def loops(sizes: Sequence[ir.Value], carried: list[ir.Value], body: Body) -> list[ir.Value]:
    """A nest of scf.for, one for each size, that carries values; `body` gets the indices and the values."""
    if not sizes:  # a scalar is a line of one: a loop all the same, so that there is an op to become a kernel
        return loops([as_index(1)], carried, lambda _, values: body([], values))

    def nest(depth: int, at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        if depth == len(sizes):
            return body(at, carried)
        loop = scf.ForOp(as_index(0), sizes[depth], as_index(1), carried)
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(nest(depth + 1, [*at, loop.induction_variable], list(loop.inner_iter_args)))
        return list(loop.results)

    return nest(0, [], carried)


def inline(op: ir.Operation, arguments: list[ir.Value]) -> list[ir.Value]:
    """Copies the region of a tm_tensor op to the insertion point, with its block arguments bound."""
    block = op.regions[0].blocks[0]
    known = dict(zip(block.arguments, arguments, strict=True))
    for inner in block.operations:
        inner = inner.operation
        if inner.name == "tm_tensor.yield":
            return [known.get(value, value) for value in inner.operands]
        clone(inner, known)
    raise refusal(op, f"{op.name} has no tm_tensor.yield")


def sizes_of(value: ir.Value) -> list[ir.Value]:
    """The sizes of a tensor, as indices."""
    return [size_of(value, dim) for dim in range(ir.RankedTensorType(value.type).rank)]
