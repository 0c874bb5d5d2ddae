"""What passes share for rewriting: matching producers, building ops where others stood, moving ops over region borders.

Questions that need no rewriting, like what a value is defined by, are in `pipeline.mlir`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from pipeline.analysis.tiling import element_type
from pipeline.mlir import defining_op, ir, linalg

#: Ops that give another shape to the same elements in the same order.
RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape", "tensor.cast")

#: Dialects whose ops neither touch memory nor trap in a way that a program may rely on.
_PURE_DIALECTS = ("arith", "math", "complex", "index")


@contextlib.contextmanager
def before(op: ir.Operation) -> Iterator[None]:
    """Builds ops in front of `op`, with its location."""
    with op.location, ir.InsertionPoint(op):
        yield


def replace(op: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Puts `values` in the place of the results of `op`, and erases it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def is_unused(value: ir.Value) -> bool:
    """Whether no op takes `value`."""
    return next(iter(value.uses), None) is None


def is_pure(op: ir.Operation) -> bool:
    """Whether `op` may be dropped when its results are unused."""
    return op.name == "linalg.index" or op.name.partition(".")[0] in _PURE_DIALECTS


def producer_through_reshapes(value: ir.Value) -> tuple[ir.Operation | None, list[ir.Operation]]:
    """The op that computes the elements of `value`, and the reshapes between it and `value`, producer first.

    expand_shape(collapse_shape(producer)) -> producer, [collapse_shape, expand_shape]

    The producer is None where the elements come from a block argument.
    """
    producer = defining_op(value)
    if producer is None or producer.name not in RESHAPES:
        return producer, []
    origin, reshapes = producer_through_reshapes(producer.operands[0])
    return origin, [*reshapes, producer]


def build_generic(
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    maps: Sequence[ir.AffineMap],
    iterators: Sequence[ir.Attribute],
    body: Callable[[Sequence[ir.BlockArgument]], Sequence[ir.Value]],
) -> ir.Operation:
    """A linalg.generic on tensors at the insertion point.

    Inputs are tensors or numbers. `maps` has the indexing map of each input, then of each output. `body` is called at
    the start of the region with an element of each input and output, builds the ops of the region and returns what it
    yields, one for each output.
    """
    results = [output.type for output in outputs]
    generic = linalg.GenericOp(
        results,
        list(inputs),
        list(outputs),
        ir.ArrayAttr.get([ir.AffineMapAttr.get(indexing) for indexing in maps]),
        ir.ArrayAttr.get(list(iterators)),
    ).operation
    elements = [element_type(value) for value in (*inputs, *outputs)]
    block = ir.Block.create_at_start(generic.regions[0], elements)
    with ir.InsertionPoint(block):
        linalg.YieldOp(body(block.arguments))
    return generic


def move_body(body: ir.Block, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """Moves the ops of `body` to the end of the block that is being built; returns what its terminator took."""
    target = ir.InsertionPoint.current.block
    for argument, value in zip(body.arguments, arguments, strict=True):
        argument.replace_all_uses_with(value)
    *ops, terminator = [op.operation for op in body.operations]
    for op in ops:
        target.append(op)
    return list(terminator.operands)


def inline_block(block: ir.Block, arguments: Sequence[ir.Value], anchor: ir.Operation) -> list[ir.Value]:
    """Moves the ops of `block` in front of `anchor`, with `arguments` for its arguments; returns what it handed on.

    The terminator stays behind, without uses of its own; the caller erases the op around `block`.
    """
    for argument, value in zip(block.arguments, arguments, strict=True):
        argument.replace_all_uses_with(value)
    *ops, terminator = [op.operation for op in block.operations]
    for op in ops:
        op.move_before(anchor)
    return list(terminator.operands)
