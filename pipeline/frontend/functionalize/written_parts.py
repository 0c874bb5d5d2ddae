"""Stretches of a program that write to parts of tensors, which they make or are given: `mask[:, 4:] = 1`.

What such writes amount to depends on all ops that lie in the tensor's memory, from the one that makes it, or first
looks at it, to the last write; the ops in front and behind see a tensor like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import fx

from pipeline.analysis.disjoint_sets import DisjointSets

#: Asks something of a node.
Predicate = Callable[[fx.Node], bool]


@dataclass(frozen=True)
class Stretch:
    """Nodes that follow each other.

    Attributes:
        nodes: all of them, in order.
        arguments: the program's arguments whose memory they may write to.
    """

    nodes: list[fx.Node]
    arguments: frozenset[fx.Node]


def stretches(
    graph: fx.Graph,
    is_write: Predicate,
    shares_with: Callable[[fx.Node], list[fx.Node]],
    is_alone: Predicate,
    *,
    of_arguments: bool,
) -> list[Stretch]:
    """The stretches of nodes, in order, each from the first node in the memory of what is written to the last write.

    Args:
        is_write: whether a node writes to its first operand.
        shares_with: the nodes in whose memory a node's results may lie.
        is_alone: of a node that writes, whether nothing else can lie in the memory that it writes to.
        of_arguments: whether there are any for memory that may be an argument's.
    """
    nodes = list(graph.nodes)
    written = [node for node in nodes if is_write(node) and not is_alone(node)]
    if not written:
        return []
    memory = DisjointSets[fx.Node]()
    for node in nodes:
        for read in shares_with(node):
            memory.join(read, node)
    place = {node: number for number, node in enumerate(nodes)}
    found = []
    for inside in memory.classes():
        made = [node for node in inside if node.op == "call_function"]
        if set(written).isdisjoint(inside) or len(made) < len(inside) and not of_arguments:
            continue
        first, last = min(place[node] for node in made), max(place[node] for node in inside if is_write(node))
        found.append((first, last, frozenset(node for node in inside if node.op == "placeholder")))
    return [Stretch(nodes[first : last + 1], arguments) for first, last, arguments in _merged(found)]


#: The first and the last number of the nodes of a stretch, and the arguments.
_Range = tuple[int, int, frozenset[fx.Node]]


def _merged(ranges: list[_Range]) -> list[_Range]:
    """Stretches that overlap as one."""
    merged: list[_Range] = []
    for first, last, arguments in sorted(ranges, key=lambda one: one[:2]):
        if merged and first <= merged[-1][1]:
            start, end, others = merged[-1]
            merged[-1] = (start, max(last, end), others | arguments)
        else:
            merged.append((first, last, arguments))
    return merged
