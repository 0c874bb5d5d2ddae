"""Stretches of a program that write to parts of tensors which they make: `mask[:, 4:] = 1`.

What such writes amount to depends on all ops that lie in the tensor's memory, from the one that makes it to the last
write; the ops in front and behind see a tensor like any other.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import fx

from pipeline.analysis.disjoint_sets import DisjointSets

#: Asks something of a node.
Predicate = Callable[[fx.Node], bool]


def stretches(graph: fx.Graph, is_write: Predicate, may_share: Predicate, is_alone: Predicate) -> list[list[fx.Node]]:
    """The stretches of nodes, in order, each from the first node in the memory of what is written to the last write.

    There are none for memory that may be an argument's.

    Args:
        is_write: whether a node writes to its first operand.
        may_share: whether a node's results may lie in the memory of its operands.
        is_alone: of a node that writes, whether nothing else can lie in the memory that it writes to.
    """
    nodes = list(graph.nodes)
    written = [node for node in nodes if is_write(node) and not is_alone(node)]
    if not written:
        return []
    memory = DisjointSets[fx.Node]()
    for node in nodes:
        for read in node.all_input_nodes[:1] if is_write(node) else node.all_input_nodes if may_share(node) else ():
            memory.join(read, node)
    place = {node: number for number, node in enumerate(nodes)}
    classes = [inside for inside in memory.classes() if not set(written).isdisjoint(inside) and _is_made(inside)]
    firsts = (min(place[node] for node in inside) for inside in classes)
    lasts = (max(place[node] for node in inside if is_write(node)) for inside in classes)
    ends = list(zip(firsts, lasts, strict=True))
    return [nodes[first : last + 1] for first, last in _merged(ends)]


def _is_made(memory: list[fx.Node]) -> bool:
    """Whether ops have made all that may lie in the same memory."""
    return all(node.op == "call_function" for node in memory)


def _merged(ends: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches that overlap as one, by their first and last numbers."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ends):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
