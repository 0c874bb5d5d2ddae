"""The order in which compiled parts and single nodes run.

Each node gets a stage: part k runs, then the single nodes of stage k, then part k + 1. A node is in the part of the
earliest stage at which all that it reads is there, so the parts are as few as any order allows, and have no cycles.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from torch import fx

from pipeline.frontend.fallback.unsupported import is_dynamic_flag, is_number, is_random, is_view


@dataclass(frozen=True)
class PartitionStage:
    """What runs one after the other: a part, then single nodes.

    Attributes:
        part: the nodes that are compiled, in the order of the graph; may be none.
        single: the nodes that torch runs, in order.
    """

    part: tuple[fx.Node, ...]
    single: tuple[fx.Node, ...]


def stages(graph: fx.Graph, unsupported: Collection[fx.Node]) -> list[PartitionStage]:
    """The stages of a functional graph; torch runs the nodes of `unsupported`, and what is no work in code."""
    found = _assign(graph, set(unsupported))
    part_nodes: dict[int, list[fx.Node]] = {}
    single_nodes: dict[int, list[fx.Node]] = {}
    for node, (stage, is_single) in found.items():
        (single_nodes if is_single else part_nodes).setdefault(stage, []).append(node)
    idle = {node for nodes in part_nodes.values() if all(map(is_view, nodes)) for node in nodes}
    if idle:
        return stages(graph, {*unsupported, *idle})
    count = 1 + max((stage for stage, _ in found.values()), default=0)
    order = [PartitionStage(tuple(part_nodes.get(k, ())), tuple(single_nodes.get(k, ()))) for k in range(count)]
    return [stage for stage in order if stage.part or stage.single]


def is_given(node: fx.Node) -> bool:
    """Whether a node is there before the first stage, or is made anew wherever it is read, such as a constant."""
    if node.op != "call_function":
        return True
    return not node.all_input_nodes and not is_random(node) and bool(node.users)


def _assign(graph: fx.Graph, unsupported: set[fx.Node]) -> dict[fx.Node, tuple[int, bool]]:
    """(stage, whether torch runs it) of each node but those that are given."""
    found: dict[fx.Node, tuple[int, bool]] = {}
    last_random = 0
    for node in graph.nodes:
        if node.op == "output" or is_given(node) and node not in unsupported:
            continue
        read = [found[operand] for operand in node.all_input_nodes if operand in found]
        in_parts = [stage for stage, is_single in read if not is_single]
        singles = [stage for stage, is_single in read if is_single]
        if node in unsupported or _runs_outside(node, bool(in_parts), found):
            stage = max([*in_parts, *singles], default=0)
            if is_random(node):
                stage = last_random = max(stage, last_random)
            found[node] = stage, True
        else:
            found[node] = max([*in_parts, *(stage + 1 for stage in singles)], default=0), False
    return found


def _runs_outside(node: fx.Node, reads_parts: bool, found: dict[fx.Node, tuple[int, bool]]) -> bool:
    """Whether torch runs a node that could be lowered: numbers of what is outside, and what takes such numbers."""
    if is_number(node) and not reads_parts:
        return True
    outside = [operand for operand in node.all_input_nodes if operand in found and found[operand][1]]
    return any(is_dynamic_flag(operand) or isinstance(operand.meta.get("val"), (tuple, list)) for operand in outside)
