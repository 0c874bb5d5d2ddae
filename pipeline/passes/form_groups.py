"""form-groups: linalg ops become `fusion.group`s, as the rules of the target allow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis import reasons
from pipeline.analysis.block_graph import BlockGraph, Node
from pipeline.analysis.fusion_rules import FusionRules, load_rules
from pipeline.analysis.growth import Growth, is_initial, results_of
from pipeline.analysis.naming import group_kind, group_label
from pipeline.analysis.reasons import Refusal
from pipeline.dialects.fusion import GROUP, create_group
from pipeline.mlir import defining_op, ir, walk
from pipeline.passes.base import Pass

#: What other ops start from: it is copied into the groups that need it.
_INITIAL = ("tensor.empty", "linalg.fill")

#: The kinds of groups in the order in which they take what they may have.
_ORDER = ("attention", "conv", "matmul", "pooling", "reduction", "elementwise")


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
        for block in _blocks(op):
            self._group_block(block, rules)
        for left in reversed(walk(op, *_INITIAL)):
            if left.block.owner.name != GROUP and not list(left.results[0].uses):
                left.erase()

    def _group_block(self, block: ir.Block, rules: FusionRules) -> None:
        graph = BlockGraph(block)
        roots = [node for node in graph.nodes if _computes(node) and not is_initial(node)]
        kinds = {}
        for kind in _ORDER:
            for growth in _grown(kind, roots, graph, rules):
                graph.join(growth.nodes)
                kinds[growth.nodes[0].op] = kind
                self.passed(growth.nodes[-1].op, f"{kind} group of {len(growth.nodes)} ops")
        self._explain(roots, graph, rules)
        _build(graph.in_order(), set(roots), kinds)

    def _explain(self, roots: list[Node], graph: BlockGraph, rules: FusionRules) -> None:
        """Says of each value that goes from one group to another why they are two."""
        for node in roots:
            if node.view is None:
                continue
            for user in node.users:
                if user in node.unit or user not in roots:
                    continue
                kind = group_kind([one.op for one in node.unit])
                refusal = Growth(graph, rules, kind, node.unit).why_not(user, "epilogue")
                refusal = refusal or Refusal(reasons.CLAIMED, "each is in a group of its own")
                text = f"is not in a group with its producer, {node.op.name}: {refusal.detail}"
                self.missed(user.op, text, refusal.reason, node.op)


def _grown(kind: str, roots: list[Node], graph: BlockGraph, rules: FusionRules) -> Iterator[Growth]:
    """The groups of a kind, from the last anchor to the first: the last of two that share a consumer can have it."""
    for node in reversed(roots):
        if len(node.unit) > 1 or node.view is None or not _is_anchor(node, kind):
            continue
        if rules.why_not(kind, "anchor", node.words, node.dtype) is not None:
            continue
        growth = Growth(graph, rules, kind, [node])
        growth.grow()
        if len(growth.nodes) > 1 and (kind != "attention" or _is_attention(node, growth.nodes)):
            yield growth


def _is_anchor(node: Node, kind: str) -> bool:
    """Whether a group of a kind grows from an op; an attention grows from the first reduction of its softmax."""
    return node.words[-1:] == ["reduce_max"] if kind == "attention" else node.kind == kind


def _is_attention(reduction: Node, nodes: list[Node]) -> bool:
    """Whether a group has a matrix product on both sides of a reduction."""
    products = [node.index for node in nodes if node.kind == "matmul"]
    return any(index < reduction.index for index in products) and any(index > reduction.index for index in products)


def _blocks(function: ir.Operation) -> list[ir.Block]:
    """The blocks in which groups may form: not those of linalg ops, groups and loops that are kernels."""
    found = []

    def visit(op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                found.append(block)
                for inner in block.operations:
                    inner = inner.operation
                    if inner.name != GROUP and not _is_root(inner):
                        visit(inner)

    visit(function)
    return found


def _computes(node: Node) -> bool:
    return _is_root(node.op)


def _is_root(op: ir.Operation) -> bool:
    return op.name.startswith("linalg.") or "pipeline.kernel" in op.attributes


def _build(order: list[list[Node]], roots: set[Node], kinds: dict[ir.Operation, str]) -> None:
    """Puts the units in order, groups in the place of those that compute."""
    end = order[-1][-1].op
    for unit in order:
        if unit[0] in roots:
            _wrap([node.op for node in unit], results_of(unit), kinds.get(unit[0].op), end)
        elif unit[0].op != end:
            unit[0].op.move_before(end)


def _wrap(ops: list[ir.Operation], results: list[ir.Value], kind: str | None, end: ir.Operation) -> None:
    """A group of `ops` in front of `end`."""
    with ops[-1].location, ir.InsertionPoint(end):
        inside = [one for op in ops for one in (*_own_initial_values(op), op)]
        group = create_group(inside, results, kind or group_kind(ops), group_label(ops))
    for before, after in zip(results, group.results, strict=True):
        before.replace_all_uses_with(after)
    for op in reversed(ops):
        op.erase()


def _own_initial_values(op: ir.Operation) -> list[ir.Operation]:
    """Gives the results of `op` empty tensors of their own, and fills: two in one tensor could not both be updated.

    Returns them, producers first.
    """
    found = []
    for number in range(len(op.operands) - len(op.results), len(op.operands)):
        producer = defining_op(op.operands[number])
        if producer is None or producer.name not in _INITIAL:
            continue
        copies = [producer.clone()]
        empty = defining_op(producer.operands[-1]) if producer.name == "linalg.fill" else None
        if empty is not None and empty.name == "tensor.empty":
            copies.insert(0, empty.clone())
            copies[1].operands[len(copies[1].operands) - 1] = copies[0].results[0]
        op.operands[number] = copies[-1].results[0]
        found += copies
    return found
