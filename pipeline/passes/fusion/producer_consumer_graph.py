"""A block as a graph: which op needs which, seen through the groups that have been formed in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush

from pipeline.analysis.concat import insertion
from pipeline.analysis.op_naming import op_kind, op_label
from pipeline.fusion_rules.op_facts import OpFacts
from pipeline.ir.element_types import element_type
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.mlir import captured_values, defining_op, ir

#: Dialects whose ops may change places as long as each comes after what it needs.
_PURE_DIALECTS = ("linalg", "tensor", "arith", "math", "affine", "index", "complex", "fusion")


@dataclass(eq=False)
class Node:
    """An op of the block.

    Attributes:
        op: the op.
        index: its place in the block.
        inputs: the nodes whose results it reads, in its regions too.
        users: the nodes that read its results.
        unit: the nodes that become one op with it, itself included; in program order.
        rank: the place of its unit in an order in which units come after those that they need.
    """

    op: ir.Operation
    index: int
    inputs: list[Node] = field(default_factory=list)
    users: list[Node] = field(default_factory=list)
    unit: list[Node] = field(default_factory=list)
    rank: int = 0

    @cached_property
    def view(self) -> LinalgOp | None:
        """The loops, maps and body of a linalg op, or the loops and maps of a tensor.insert_slice."""
        return any_structured(self.op) or insertion(self.op)

    @cached_property
    def words(self) -> list[str]:
        """What a linalg op does, in the words of its label."""
        return op_label(self.op)

    @cached_property
    def kind(self) -> str:
        """What kind of kernel a linalg op would be by itself."""
        return op_kind(self.op)

    @cached_property
    def facts(self) -> OpFacts:
        """The op as predicates see it."""
        return OpFacts(self.op)

    @cached_property
    def dtype(self) -> str:
        """The type of the elements that a linalg op computes."""
        return str(element_type(self.op.results[0]))

    @property
    def first_init(self) -> int:
        """The number of the first operand that the op updates: a linalg op's first `outs`, a loop's first init."""
        return len(self.op.operands) - len(self.op.results)


class BlockGraph:
    """The ops of a block. Nothing in the block may be changed while it is in use."""

    def __init__(self, block: ir.Block):
        self.nodes = [Node(op.operation, index) for index, op in enumerate(block.operations)]
        by_op = {node.op: node for node in self.nodes}
        self._by_result = {result: node for node in self.nodes for result in node.op.results}
        self._ranked: list[list[Node]] = []
        impure: Node | None = None
        for node in self.nodes:
            node.unit, node.rank = [node], node.index
            self._ranked.append(node.unit)
            read = captured_values(node.op) if len(node.op.regions) else list(node.op.operands)
            for producer in dict.fromkeys(map(defining_op, read)):
                if producer is not None and producer in by_op:
                    _connect(by_op[producer], node)
            if node.op.name.partition(".")[0] not in _PURE_DIALECTS:
                if impure is not None and impure not in node.inputs:
                    _connect(impure, node)
                impure = node

    def node_of(self, value: ir.Value) -> Node | None:
        """The node that computes a value; None for one from outside of the block."""
        return self._by_result.get(value)

    def join(self, nodes: Iterable[Node]) -> None:
        """Makes one op of some nodes."""
        unit = sorted(nodes, key=lambda node: node.index)
        self._rank(unit)
        for node in unit:
            node.unit = unit

    def stays_acyclic(self, nodes: Sequence[Node]) -> bool:
        """Whether some nodes can become one op: nothing that needs one of them is needed by another."""
        inside = set(nodes)
        return not any(source in inside for node in self._needed(nodes) for source in node.inputs)

    def _needed(self, nodes: Sequence[Node]) -> Iterator[Node]:
        """The nodes that some others need, directly or not, as far as they do not come before all of these."""
        inside = set(nodes)
        first = min(node.rank for node in nodes)
        pending = [source for node in nodes for source in node.inputs]
        seen: set[Node] = set()
        while pending:
            node = pending.pop()
            if node in seen or node in inside or node.rank < first:
                continue
            seen.update(node.unit)
            yield from node.unit
            pending += [source for member in node.unit for source in member.inputs]

    def _rank(self, unit: list[Node]) -> None:
        """Ranks a new unit, between what it needs and all else that has been between its nodes.

        As Pearce and Kelly do where an edge is added: "A dynamic topological sort algorithm for directed acyclic
        graphs" (2006).
        """
        ranks = [node.rank for node in unit]
        region = range(min(ranks), max(ranks) + 1)
        needed, inside = set(self._needed(unit)), set(unit)
        others = [other for other in (self._ranked[rank] for rank in region) if other and other[0] not in inside]
        before = [other for other in others if other[0] in needed]
        behind = [other for other in others if other[0] not in needed]
        units = [*before, unit, *behind]
        for rank in region:
            self._ranked[rank] = units[rank - region.start] if rank - region.start < len(units) else []
            for node in self._ranked[rank]:
                node.rank = rank

    def in_order(self) -> list[list[Node]]:
        """The units, each after those that it needs, otherwise by the place of their last op."""
        units = {id(node.unit): node.unit for node in self.nodes}
        needs = {key: _needed_units(unit) for key, unit in units.items()}
        needed_by: dict[int, list[int]] = {key: [] for key in units}
        for key, sources in needs.items():
            for source in sources:
                needed_by[source].append(key)
        missing = {key: len(sources) for key, sources in needs.items()}
        ready = [(unit[-1].index, key) for key, unit in units.items() if not missing[key]]
        ready.sort()
        order = []
        while ready:
            _, key = heappop(ready)
            order.append(units[key])
            for user in needed_by[key]:
                missing[user] -= 1
                if not missing[user]:
                    heappush(ready, (units[user][-1].index, user))
        assert len(order) == len(units), "groups depend on each other"
        return order


def _connect(producer: Node, user: Node) -> None:
    user.inputs.append(producer)
    producer.users.append(user)


def _needed_units(unit: list[Node]) -> set[int]:
    return {id(source.unit) for node in unit for source in node.inputs} - {id(unit)}
