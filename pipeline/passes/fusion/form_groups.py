"""form-groups: linalg ops become `fusion.group`s, as the rules of the target allow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.concat import INSERT
from pipeline.analysis.op_naming import group_kind, group_label, heaviest_kind, labels_kept
from pipeline.dialects.fusion import target_of
from pipeline.fusion_rules import reasons
from pipeline.fusion_rules.reasons import Refusal
from pipeline.fusion_rules.rules import FusionRules, load_rules
from pipeline.mlir import ir
from pipeline.passes.fusion.fusion_edges import readers
from pipeline.passes.fusion.group_builder import blocks_of, build_units, erase_initial_values, is_root, wrap
from pipeline.passes.fusion.group_growth import Growth, is_initial, results_of
from pipeline.passes.fusion.producer_consumer_graph import BlockGraph, Node
from pipeline.passmanager.base import Pass

#: The kinds of groups in the order in which they take what they may have.
_ORDER = ("attention", "conv", "matmul", "pooling", "reduction", "elementwise")

_EXPONENTIALS = {"exp", "exp2"}


@dataclass(frozen=True)
class FormGroups(Pass):
    """Join linalg ops into fusion groups, each of which becomes one kernel.

    A group grows from an anchor, a convolution, a matrix product, a pool or a reduction, over the consumers (epilogue)
    and producers (prologue) that the target's rules let join it. Every element is still computed once: ops of a group
    hand values to each other inside of the loops that they have in common. Loops that are marked `pipeline.kernel` are
    groups of their own. Groups form in every region; values captured from outside become operands.
    """

    name: ClassVar[str] = "form-groups"
    anchor: ClassVar[str] = "func.func"

    rules: str = field(default="cpu", metadata={"help": "the table of rules: a target's name, or a YAML file"})

    def run(self, op: ir.Operation) -> None:
        """Groups the linalg ops of one function."""
        rules = load_rules(self.rules)
        for block in blocks_of(op):
            self._group_block(block, rules)
        erase_initial_values(op)

    def _group_block(self, block: ir.Block, rules: FusionRules) -> None:
        with labels_kept():
            graph, kinds, roots = self._grow(block, rules)
        build_units(graph.in_order(), set(roots), lambda unit, end: _wrap(unit, kinds.get(unit[0].op), end))

    def _grow(self, block: ir.Block, rules: FusionRules) -> tuple[BlockGraph, dict[ir.Operation, str], list[Node]]:
        """Decides which ops of a block become groups, and of which kinds; changes nothing."""
        graph = BlockGraph(block)
        roots = [node for node in graph.nodes if _computes(node) and not is_initial(node)]
        kinds: dict[ir.Operation, str] = {}
        for kind in _ORDER:
            for growth in _grown(kind, roots, graph, rules):
                graph.join(growth.nodes)
                kinds[growth.nodes[0].op] = kind
                self._report(growth, kind)
        self._explain(roots, graph, rules)
        return graph, kinds, roots

    def _report(self, growth: Growth, kind: str) -> None:
        """Says that a group was formed, and of each edge in it."""
        self.passed(growth.nodes[-1].op, f"{kind} group of {len(growth.nodes)} ops")
        for node in growth.nodes:
            for source in node.inputs:
                if source in growth.nodes:
                    text = f"is in one {kind} group with its producer, {source.op.name}"
                    self.passed(node.op, text, source.op)

    def _explain(self, roots: list[Node], graph: BlockGraph, rules: FusionRules) -> None:
        """Says of each value that goes from one group to another why they are two."""
        by_op = {node.op: node for node in graph.nodes}
        for node in roots:
            for reader in readers(node.op):
                user = by_op.get(reader.op)
                if user in node.unit:
                    continue
                refusal = reader.why_apart(node.op)
                if user is not None and reader.between == INSERT:
                    refusal = _why_no_concat(user, graph, rules) or refusal
                if refusal is None and user is not None:
                    refusal = _why_two(node, user, graph, rules)
                refusal = refusal or Refusal(reasons.CLAIMED, "each is in a group of its own")
                text = f"is not in a group with its producer, {node.op.name}: {refusal.detail}"
                self.missed(reader.op, text, refusal.reason, node.op)


def _why_two(node: Node, user: Node, graph: BlockGraph, rules: FusionRules) -> Refusal | None:
    """Why the group of an anchor does not have the op before or behind it; None if it could.

    Between two anchors, the first one is asked.
    """
    mine, other = (_kind(each) for each in (node, user))
    if mine == "elementwise" and other != "elementwise":
        return Growth(graph, rules, other, user.unit).why_not(node, "prologue")
    return Growth(graph, rules, mine, node.unit).why_not(user, "epilogue")


def _kind(node: Node) -> str:
    """The kind of the group that an op is in."""
    return heaviest_kind([member.kind for member in node.unit])


def _why_no_concat(user: Node, graph: BlockGraph, rules: FusionRules) -> Refusal | None:
    """Why a concatenation is not in the group of an op that reads it; None if the op reads none."""
    growth = Growth(graph, rules, _kind(user), user.unit)
    refused = (growth.why_not(source, "prologue") for source in user.inputs if source.op.name == INSERT)
    return next(filter(None, refused), None)


def _grown(kind: str, roots: list[Node], graph: BlockGraph, rules: FusionRules) -> Iterator[Growth]:
    """The groups of a kind, from the last anchor to the first: the last of two that share a consumer can have it."""
    for node in reversed(roots):
        if len(node.unit) > 1 or node.view is None or not _is_anchor(node, kind):
            continue
        table = rules.table(target_of(node.op))
        if table.why_not(kind, "anchor", node.words, node.dtype, node.facts) is not None:
            continue
        growth = Growth(graph, rules, kind, [node])
        growth.grow()
        if len(growth.nodes) > 1 and (kind != "attention" or _is_attention(node, growth.nodes)):
            yield growth


def _is_anchor(node: Node, kind: str) -> bool:
    """Whether a group of a kind grows from an op; an attention grows from the first reduction of its softmax."""
    return node.words[-1:] == ["reduce_max"] if kind == "attention" else node.kind == kind


def _is_attention(reduction: Node, nodes: list[Node]) -> bool:
    """Whether a group has a matrix product on both sides of a reduction, and exponentials in front of the second one.

    What quantizes the data of a product has a maximum of each row, too.
    """
    before = [node for node in nodes if node.kind == "matmul" and node.index < reduction.index]
    behind = [node for node in nodes if node.kind == "matmul" and node.index > reduction.index]
    powers = [node.index for node in nodes if _EXPONENTIALS & set(node.words)]
    return bool(before) and any(reduction.index < power < node.index for node in behind for power in powers)


def _computes(node: Node) -> bool:
    return is_root(node.op)


def _wrap(unit: list[Node], kind: str | None, end: ir.Operation) -> None:
    ops = [node.op for node in unit]
    wrap(ops, results_of(unit), kind or group_kind(ops), group_label(ops), end)
