"""Which ops may join a group, and why not: the rules of the target, dependences, loops in common, scratch memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod

from pipeline.analysis.concat import INSERT, parts_of, row_bytes
from pipeline.analysis.loop_alignment import Alignment, Loop, align
from pipeline.dialects.fusion import BARRIER, stops_fusion
from pipeline.fusion_rules import reasons
from pipeline.fusion_rules.reasons import Refusal
from pipeline.fusion_rules.rules import FusionRules, Role
from pipeline.ir.attributes import KERNEL
from pipeline.ir.element_types import element_bytes
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir
from pipeline.passes.fusion.elementwise_legality import target_of
from pipeline.passes.fusion.producer_consumer_graph import BlockGraph, Node

#: Kinds whose result tiles lie in registers while elementwise ops with the same loops use them.
_TILED = ("matmul", "conv", "pooling")


#: Kinds that compute row after row.
_OF_ROWS = ("elementwise", "reduction")

#: What a row of a concatenation may have, in bytes: it is written and read again, and has to stay in the first cache.
_ROW = 16384

#: What ops without a loop in common may hand on, in bytes: it has to stay in the first cache.
_SCRATCH_AT_ONCE = 32768


@dataclass(frozen=True)
class Edge:
    """A value from one op to another that might be in its group."""

    producer: Node
    consumer: Node


class Growth:
    """Grows one group in a block from an anchor."""

    def __init__(self, graph: BlockGraph, rules: FusionRules, kind: str, anchor: Sequence[Node]):
        self.kind = kind
        self.nodes = list(anchor)
        self.refused: dict[Edge, Refusal] = {}
        self._graph = graph
        self._rules = rules.table(target_of(self.nodes[0].op))
        self._common_of = (0, 0)  # of how many ops, how many loops

    def grow(self) -> None:
        """Takes in consumers, then producers, until nothing more may join."""
        while self._take_consumer() or self._take_producer():
            pass

    def _take_consumer(self) -> bool:
        for node in list(self.nodes):
            for user in node.users:
                if user not in self.nodes and self._take(Edge(node, user), user, "epilogue"):
                    return True
        return False

    def _take_producer(self) -> bool:
        for node in list(self.nodes):
            for source in node.inputs:
                if source not in self.nodes and self._take(Edge(source, node), source, "prologue"):
                    return True
        return False

    def _take(self, edge: Edge, node: Node, role: Role) -> bool:
        if edge in self.refused or len(node.unit) > 1:
            return False
        reason = self.why_not(node, role)
        if reason is not None:
            self.refused[edge] = reason
            return False
        self.nodes = self._joined(node)
        self.refused.clear()  # what could not join alone may join with this one
        return True

    def why_not(self, node: Node, role: Role) -> Refusal | None:
        """Why an op may not join; None if it may. What the rules say comes before that it is in another group."""
        refusal = self._why_not_by_rule(node, role)
        if refusal is not None:
            return refusal
        if len(node.unit) > 1 and node not in self.nodes:
            return Refusal(reasons.CLAIMED, "it is in another group already")
        if node.op.name == INSERT:
            refusal = self._why_not_concat(node, role)
            if refusal is not None:
                return refusal
        joined = self._joined(node)
        if not self._graph.stays_acyclic(joined):
            return Refusal(reasons.CYCLE, "an op outside of the group stands between them")
        return self._exceeds(joined) or self._does_not_fit(joined, node)

    def _why_not_by_rule(self, node: Node, role: Role) -> Refusal | None:
        """Why an op may not join whatever the group's other ops are."""
        if node.op.name == BARRIER or self._is_stopped(node):
            return Refusal(reasons.BARRIER, "fusion stops between the two")
        if node.view is None:
            return Refusal(reasons.NOT_TILED, f"{node.op.name} has no indexing maps")
        if is_initial(node):
            return Refusal(reasons.NOT_ELEMENTWISE, "it is an initial value")
        mine, other = target_of(self.nodes[0].op), target_of(node.op)
        if mine != other:
            return Refusal(reasons.OTHER_TARGET, f"it is for {other or self._rules.target}")
        refused = self._rules.why_not(self.kind, role, node.words, node.dtype, node.facts)
        if refused is not None:
            return Refusal(reasons.RULE, refused)
        if role == "epilogue" and self._is_the_end_of_another(node):
            return Refusal(reasons.CLAIMED, "it reads narrow elements of the group, and the sums of another product")
        if self.kind == "attention" and role == "prologue" and self._is_epilogue_of_a_projection(node):
            return Refusal(reasons.CLAIMED, "it is the epilogue of the product that it follows")
        return None

    def _joined(self, node: Node) -> list[Node]:
        """The group with an op, in program order; a concatenation comes with all its parts, and all that read it."""
        added = {node}
        if node.op.name == INSERT:
            parts = [self._graph.node_of(op.results[0]) for op in parts_of(node.op) or ()]
            added = {*filter(None, parts), *node.users}
        return sorted(added.union(self.nodes), key=lambda member: member.index)

    def _why_not_concat(self, node: Node, role: Role) -> Refusal | None:
        """Why a concatenation may not join: its parts have places of their own, unless the group reads all of it."""
        if self.kind not in _OF_ROWS:
            return Refusal(reasons.NOT_TILED, f"a group of kind {self.kind} has no place for a concatenation")
        if role != "prologue" or parts_of(node.op) is None:
            return Refusal(reasons.NOT_TILED, "it only gives a result its place")
        row = row_bytes(node.op)
        if row > _ROW:
            return Refusal(reasons.COST, f"a row of the concatenation has {row} bytes, more than {_ROW}")
        others = [user for user in node.users if user not in self.nodes]
        if any(user.view is None or not user.view.is_elementwise or len(user.unit) > 1 for user in others):
            return Refusal(reasons.MULTI_USE, "ops that are not of the group's kind read the concatenation, too")
        refused = (self._rules.why_not(self.kind, "epilogue", user.words, user.dtype, user.facts) for user in others)
        reason = next(filter(None, refused), None)
        return Refusal(reasons.RULE, f"what else reads the concatenation: {reason}") if reason else None

    def _is_stopped(self, node: Node) -> bool:
        """Whether fusion stops between an op and one of the group that hands it a value, or takes one from it."""
        read, made = set(node.op.operands), set(node.op.results)
        handed = {result for member in self.nodes for result in member.op.results if result in read}
        taken = {operand for member in self.nodes for operand in member.op.operands if operand in made}
        return any(stops_fusion(value) for value in handed | taken)

    def _is_epilogue_of_a_projection(self, node: Node) -> bool:
        """Whether an op stands between two products, the second of which is in the group."""
        if not any(user.kind == "matmul" for user in node.users if user in self.nodes):
            return False
        return any(source.view is not None and source.kind in _TILED for source in node.inputs)

    def _is_the_end_of_another(self, node: Node) -> bool:
        """Whether an op reads of the group what has been made narrow, and all that another product computes.

        As the epilogue of that one it spares the memory of wide elements.
        """
        if self.kind not in _TILED:
            return False
        read = [source for source in node.inputs if source in self.nodes]
        wide = element_bytes(self.nodes[0].op.results[0])
        others = [source for source in node.inputs if source not in self.nodes and source.kind in _TILED]
        free = any(len(source.unit) == 1 and list(source.users) == [node] for source in others)
        return free and all(element_bytes(source.op.results[0]) < wide for source in read)

    def _exceeds(self, joined: list[Node]) -> Refusal | None:
        """Why the group would be too large."""
        limits = self._rules.limits
        if sum(len(member.words) for member in joined) > limits.ops:
            return Refusal(reasons.LIMIT, f"the group would have more than {limits.ops} ops")
        if len(results_of(joined)) > limits.results:
            return Refusal(reasons.LIMIT, f"the group would have more than {limits.results} results")
        if len({operand for member in joined for operand in member.op.operands}) > limits.operands:
            return Refusal(reasons.LIMIT, f"the group would have more than {limits.operands} operands")
        return None

    def _does_not_fit(self, joined: list[Node], node: Node) -> Refusal | None:
        """Why the loops of an op are not those of the group."""
        alignment = align([member.view for member in joined if member.view is not None])
        cut = 1 if node.op.name == INSERT else 0
        if len(alignment.common) < self._common() - cut:
            return Refusal(reasons.SHAPE_MISMATCH, "they have fewer loops in common than the group has")
        if self.kind == "attention" and node.kind == "matmul" and not _belongs_to_attention(joined, node, alignment):
            return Refusal(
                reasons.RULE, "an attention has one product before its softmax and one behind, over its rows"
            )
        if self.kind in _TILED and not _same_loops(joined, node, alignment):
            return Refusal(reasons.SHAPE_MISMATCH, "its loops are not those of the anchor")
        in_memory = [result for member in self._before_registers(joined) for result in member.op.results]
        needed, most = scratch_bytes(joined, alignment, in_memory), self._rules.limits.scratch_bytes
        if cut and not alignment.common:
            most = min(most, _SCRATCH_AT_ONCE)
        if needed > most:
            return Refusal(reasons.COST, f"what is handed on takes {needed} bytes at a time, more than {most}")
        return None

    def _common(self) -> int:
        """How many loops the ops of the group have in common."""
        if self._common_of[0] != len(self.nodes):
            views = [node.view for node in self.nodes if node.view is not None]
            self._common_of = (len(self.nodes), len(align(views).common))
        return self._common_of[1]

    def _before_registers(self, joined: list[Node]) -> list[Node]:
        """The ops whose results need memory: the anchor of a tiled group hands tiles to its epilogues in registers."""
        if self.kind not in _TILED:
            return joined
        return list(takewhile(lambda member: member.view is None or not any(member.view.reductions), joined))


def is_initial(node: Node) -> bool:
    """Whether an op only makes what other ops start from: it is copied into the groups that need it."""
    if node.op.name == "tensor.empty":
        return True
    if node.op.name != "linalg.fill":
        return False
    return all(
        (user.op.name.startswith("linalg.") or KERNEL in user.op.attributes)
        and all(
            number >= user.first_init
            for number, operand in enumerate(user.op.operands)
            if operand == node.op.results[0]
        )
        for user in node.users
    )


def results_of(nodes: Sequence[Node]) -> list[ir.Value]:
    """What ops other than these read of what these compute."""
    inside = {node.op for node in nodes}
    return [
        result
        for node in nodes
        for result in node.op.results
        if any(_owner_in_block(use.owner.operation, node.op.block) not in inside for use in result.uses)
    ]


def _owner_in_block(op: ir.Operation, block: ir.Block) -> ir.Operation:
    while op.block != block:
        op = op.parent.operation
    return op


def scratch_bytes(nodes: Sequence[Node], alignment: Alignment, in_memory: Sequence[ir.Value]) -> int:
    """What those values in memory that stay between the ops take at a time; those of unknown size are not counted."""
    outside = set(results_of(nodes))
    total = 0
    for value in alignment.inner:
        sizes = alignment.sizes(value)
        if value in in_memory and value not in outside and None not in sizes:
            total += prod(size for size in sizes if size is not None) * element_bytes(value)
    return total


def _same_loops(joined: Sequence[Node], node: Node, alignment: Alignment) -> bool:
    """Whether an elementwise op runs over just the parallel loops of the anchor."""
    view = node.view
    if view is None or not view.is_elementwise:
        return True
    anchor = next(
        number for number, member in enumerate(joined) if member.view is not None and any(member.view.reductions)
    )
    mine = joined.index(node)
    pairs = {
        (dict(loops).get(anchor), dict(loops).get(mine))
        for loops in alignment.classes
        if {anchor, mine} <= dict(loops).keys()
    }
    return {loop for _, loop in pairs} >= _parallel(view) and {loop for loop, _ in pairs} >= _parallel(
        joined[anchor].view
    )


def _belongs_to_attention(joined: Sequence[Node], node: Node, alignment: Alignment) -> bool:
    """Whether a product computes the rows of the softmax that an attention grows from, or sums over them."""
    softmax = next(number for number, member in enumerate(joined) if member.kind == "reduction")
    view, place = node.view, joined.index(node)
    if view is None or any(
        member.kind == "matmul" and (member.index < joined[softmax].index) == (place < softmax)
        for member in joined
        if member is not node
    ):
        return False
    rows = next(loops for loops in alignment.classes if any(_reduces(joined, softmax, loop) for loop in loops))
    return any(number == place and view.reductions[loop] == (place > softmax) for number, loop in rows)


def _reduces(joined: Sequence[Node], number: int, loop: Loop) -> bool:
    view = joined[number].view
    return view is not None and loop[0] == number and view.reductions[loop[1]]


def _parallel(view: LinalgOp | None) -> set[int | None]:
    """The parallel loops of more than one iteration."""
    if view is None:
        return set()
    return {loop for loop, reduces in enumerate(view.reductions) if not reduces and view.sizes[loop] != 1}
