"""What the passes that form groups share: the blocks to look at, and how the ops of a block become groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.analysis.concat import INSERT
from pipeline.dialects.fusion import GROUP, create_group
from pipeline.ir.attributes import KERNEL
from pipeline.mlir import defining_op, ir, walk
from pipeline.passes.fusion.producer_consumer_graph import Node

#: What other ops start from: it is copied into the groups that need it.
INITIAL = ("tensor.empty", "linalg.fill")


def is_root(op: ir.Operation) -> bool:
    """Whether an op computes, so that it belongs in a group: a linalg op or a marked loop."""
    return op.name.startswith("linalg.") or KERNEL in op.attributes


def blocks_of(function: ir.Operation) -> list[ir.Block]:
    """The blocks in which groups may form: not those of linalg ops, groups and loops that are kernels."""
    found = []

    def visit(op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                found.append(block)
                for inner in block.operations:
                    inner = inner.operation
                    if inner.name != GROUP and not is_root(inner):
                        visit(inner)

    visit(function)
    return found


def build_units(
    order: Sequence[list[Node]], grouped: set[Node], make: Callable[[list[Node], ir.Operation], None]
) -> None:
    """Puts the units of a block in order; `make` builds the group of each that is grouped, in front of an op."""
    end = order[-1][-1].op
    for unit in order:
        if not grouped.isdisjoint(unit):
            make(unit, end)
        elif unit[0].op != end:
            unit[0].op.move_before(end)


def wrap(
    ops: Sequence[ir.Operation], results: Sequence[ir.Value], kind: str, label: str, end: ir.Operation
) -> ir.Operation:
    """Makes a group of `ops` in front of `end`, which stands for them from then on."""
    with ops[-1].location, ir.InsertionPoint(end):
        inside = [member for op in ops for member in (*own_initial_values(op), op)]
        group = create_group(inside, results, kind, label)
    for before, after in zip(results, group.results, strict=True):
        before.replace_all_uses_with(after)
    for op in reversed(ops):
        op.erase()
    return group


def erase_initial_values(function: ir.Operation) -> None:
    """Erases the fills and empty tensors that nothing needs since groups have copies of them."""
    for left in reversed(walk(function, *INITIAL)):
        if left.block.owner.name != GROUP and not list(left.results[0].uses):
            left.erase()


def own_initial_values(op: ir.Operation) -> list[ir.Operation]:
    """Gives the results of `op` empty tensors of their own, and fills: two in one tensor could not both be updated.

    Returns them, producers first.
    """
    found: list[ir.Operation] = []
    if not is_root(op) and op.name != INSERT:
        return found
    for number in range(len(op.operands) - len(op.results), len(op.operands)):
        producer = defining_op(op.operands[number])
        if producer is None or producer.name not in INITIAL:
            continue
        empty = defining_op(producer.operands[-1]) if producer.name == "linalg.fill" else None
        copies = [empty.clone()] if empty is not None and empty.name == "tensor.empty" else []
        copies.append(producer.clone())
        if len(copies) > 1:
            copies[1].operands[len(copies[1].operands) - 1] = copies[0].results[0]
        op.operands[number] = copies[-1].results[0]
        found += copies
    return found
