"""Which ops of a block can become one: asked of random blocks after random joins, against all paths."""

from __future__ import annotations

import random

from pipeline.mlir import context, function, parse
from pipeline.passes.fusion.producer_consumer_graph import BlockGraph


def block_of(rng, count):
    """A block of additions, each of two values before it."""
    lines = ["func.func @main(%v0: i32) {"]
    for number in range(1, count):
        one, other = (rng.randrange(max(0, number - 9), number) for _ in range(2))
        lines.append(f"  %v{number} = arith.addi %v{one}, %v{other} : i32")
    return parse("\n".join([*lines, "  return", "}"]), context())


def needs(nodes):
    """The nodes that some nodes need, directly or not, and all of those that are one op with them."""
    found = set(nodes)
    pending = list(nodes)
    while pending:
        for source in (source for member in pending.pop().unit for source in member.inputs):
            new = set(source.unit) - found
            found |= new
            pending += new
    return found


def is_cyclic(nodes):
    outside = {source for node in nodes for source in node.inputs} - set(nodes)
    return bool(needs(outside) & set(nodes))


def test_joins_never_close_a_cycle():
    refused = joined = 0
    for seed in range(40):
        rng = random.Random(seed)
        module = block_of(rng, 40)
        graph = BlockGraph(function(module, "main").regions[0].blocks[0])
        for _ in range(60):
            free = [node for node in graph.nodes[:-1] if len(node.unit) == 1]
            picked = rng.sample(free, min(len(free), rng.choice((2, 2, 3))))
            if len(picked) < 2:
                break
            assert graph.stays_acyclic(picked) == (not is_cyclic(picked))
            if graph.stays_acyclic(picked):
                graph.join(picked)
                joined += 1
            else:
                refused += 1
        order = [node for unit in graph.in_order() for node in unit]
        assert len(order) == len(graph.nodes)
        assert all(source.rank <= node.rank for node in graph.nodes for source in node.inputs)
        assert all(len({member.rank for member in node.unit}) == 1 for node in graph.nodes)
    assert joined > 300 and refused > 300
