"""fuse-into: ops that a user names become groups of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.op_naming import group_kind
from pipeline.dialects.fusion import stops_fusion, target_of
from pipeline.errors import OptionError
from pipeline.fusion_rules import reasons
from pipeline.fusion_rules.op_facts import OpFacts
from pipeline.fusion_rules.reasons import Refusal
from pipeline.fusions import Emitter, External, Fusion, Intrinsic, fuse_into, lender
from pipeline.ir.linalg_op import structured
from pipeline.ir.reshapes import RESHAPES_AND_CASTS
from pipeline.mlir import defining_op, ir
from pipeline.passes.fusion.group_builder import blocks_of, build_units, erase_initial_values, is_root, wrap
from pipeline.passes.fusion.group_growth import results_of
from pipeline.passes.fusion.group_replacement import become, fresh_destinations
from pipeline.passes.fusion.producer_consumer_graph import BlockGraph, Node
from pipeline.passmanager.base import Pass

#: A producer and a consumer.
_Edge = tuple[Node, Node]


@dataclass(frozen=True)
class FuseInto(Pass):
    """Join the ops that a user names into groups, each as large as can be, before other groups form.

    Ops belong together where one reads what another computes, in the same block, possibly through reshapes. A group
    stays one op among others: nothing that stays outside may stand between two of its ops. Groups form in every region;
    values captured from outside become operands. What a group becomes (see `pipeline.fusions`) comes with a Fusion from
    the API; in text it can be a function of a library.
    """

    name: ClassVar[str] = "fuse-into"
    anchor: ClassVar[str] = "func.func"

    fusion: str = field(
        default="", metadata={"help": "the name of a Fusion that is lent to passes, in place of the rest"}
    )
    label: str = field(default="custom", metadata={"help": "what the groups are called"})
    ops: tuple[str, ...] = field(default=(), metadata={"help": "the ops: words of kernels' names, or PyTorch's names"})
    steps: tuple[str, ...] = field(default=(), metadata={"help": "for chains: each step's names, joined by |"})
    function: str = field(default="", metadata={"help": "the C function that a group becomes a call of"})
    library: str = field(default="", metadata={"help": "the shared library that has it"})

    def run(self, op: ir.Operation) -> None:
        """Forms the groups of one function."""
        fusion = self._fusion()
        for block in blocks_of(op):
            self._group_block(block, fusion)
        erase_initial_values(op)

    def _fusion(self) -> Fusion:
        if self.fusion:
            lent = lender.get(self.fusion)
            if lent is None:
                raise OptionError(
                    f"fuse-into: no fusion {self.fusion!r} is lent; pipeline.compile(fusions=[...]) does that"
                )
            return lent
        if bool(self.function) != bool(self.library):
            raise OptionError("fuse-into: function and library belong together")
        call = External(self.function, self.library) if self.function else None
        if not self.steps:
            return fuse_into(self.ops, name=self.label, becomes=call)
        if call is None:
            raise OptionError("fuse-into: steps need a function and a library")
        return fuse_into(
            self.ops or None,
            name=self.label,
            becomes=Intrinsic(tuple(tuple(step.split("|")) for step in self.steps), call),
        )

    def _group_block(self, block: ir.Block, fusion: Fusion) -> None:
        ops = [op.operation for op in block.operations if is_root(op.operation)]
        ops = [op for op in ops if op.name != "linalg.fill" and fusion.wants(OpFacts(op))]
        if not ops:
            return
        _separate_views(block)
        graph = BlockGraph(block)
        wanted = [node for node in graph.nodes if node.op in ops]
        chains = isinstance(fusion.becomes, Intrinsic)
        found = list(self._chains(wanted, graph, fusion) if chains else self._grown(wanted, graph))
        grouped = {unit[0] for unit in found}
        build_units(graph.in_order(), grouped, lambda unit, end: self._make(unit, end, fusion))

    def _grown(self, wanted: list[Node], graph: BlockGraph) -> Iterator[list[Node]]:
        """Each wanted op, with all the others that can be in its group."""
        free = set(wanted)
        refused: dict[_Edge, Refusal] = {}
        for seed in wanted:
            if seed not in free:
                continue
            unit = _grow(seed, free, graph, refused)
            graph.join(unit)
            free.difference_update(unit)
            yield seed.unit
        for (producer, consumer), refusal in refused.items():
            if producer.unit is not consumer.unit:
                text = f"is not in a group with its producer, {producer.op.name}: {refusal.detail}"
                self.missed(consumer.op, text, refusal.reason, producer.op)

    def _chains(self, wanted: list[Node], graph: BlockGraph, fusion: Fusion) -> Iterator[list[Node]]:
        """The chains of an intrinsic: each step's result is read by the next alone."""
        assert isinstance(fusion.becomes, Intrinsic)
        choices = fusion.becomes.choices()
        for first in wanted:
            if len(first.unit) > 1 or not OpFacts(first.op).is_called(choices[0]):
                continue
            if not _starts_from_zero(first):
                self.missed(first.op, f"is no {fusion.name}: it adds to something", reasons.RULE)
                continue
            unit, last = [first], first
            for names in choices[1:]:
                step = _next_step(last, wanted, names, graph)
                if isinstance(step, Refusal):
                    self.missed(last.op, f"is no {fusion.name}: {step.detail}", step.reason)
                    break
                unit, last = [*unit, *step], step[-1]
            else:
                graph.join(unit)
                yield first.unit

    def _make(self, unit: list[Node], end: ir.Operation, fusion: Fusion) -> None:
        ops, results = [node.op for node in unit], results_of(unit)
        if fusion.becomes is not None and not isinstance(fusion.becomes, Emitter):
            ops = [member for op in ops for member in (*fresh_destinations(op, ops), op)]
        self.passed(ops[-1], f"{len(unit)} ops in a group {fusion.name}")
        group = wrap(ops, results, group_kind([node.op for node in unit]), fusion.name, end)
        become(group, fusion)


def _separate_views(block: ir.Block) -> None:
    """Gives each reader of a reshape its own, so that a group can take the one that it needs."""
    for op in [op.operation for op in block.operations if op.operation.name in RESHAPES_AND_CASTS]:
        readers = list(dict.fromkeys(use.owner.operation for use in op.results[0].uses))
        for reader in readers[1:]:
            if reader.block != block:
                continue
            with op.location, ir.InsertionPoint(op):
                copy = op.clone()
            for number, operand in enumerate(reader.operands):
                if operand == op.results[0]:
                    reader.operands[number] = copy.results[0]


def _grow(seed: Node, free: set[Node], graph: BlockGraph, refused: dict[_Edge, Refusal]) -> list[Node]:
    """All that can be in one group with `seed`; what cannot is noted in `refused`."""
    unit = [seed]
    grows = True
    while grows:
        grows = False
        for path, edge in _neighbours(unit, free):
            refusal = _why_not(unit, path, edge, graph)
            if refusal is None:
                unit = sorted([*unit, *path], key=lambda node: node.index)
                grows = True
                break
            refused.setdefault(edge, refusal)
    return unit


def _neighbours(unit: list[Node], wanted: set[Node]) -> Iterator[tuple[list[Node], _Edge]]:
    """Wanted ops beside a group, each with the reshapes in between; and the edge that leads there."""
    for node in unit:
        for user in node.users:
            yield from _through(user, wanted, unit, node, forward=True)
        for source in node.inputs:
            yield from _through(source, wanted, unit, node, forward=False)


def _through(
    node: Node, wanted: set[Node], unit: list[Node], start: Node, forward: bool
) -> Iterator[tuple[list[Node], _Edge]]:
    path = []
    while node.op.name in RESHAPES_AND_CASTS and node not in unit:
        path.append(node)
        following = node.users if forward else node.inputs[:1]
        if len(following) != 1:
            return
        node = following[0]
    if node in wanted and node not in unit:
        yield [*path, node], (start, node) if forward else (node, start)


def _why_not(unit: list[Node], path: list[Node], edge: _Edge, graph: BlockGraph) -> Refusal | None:
    """Why the ops of a path may not join a group; None if they may."""
    producer, consumer = edge
    if any(stops_fusion(result) for result in producer.op.results):
        return Refusal(reasons.BARRIER, "fusion stops between the two")
    if target_of(producer.op) != target_of(consumer.op):
        return Refusal(reasons.OTHER_TARGET, "they are for different targets")
    if not graph.stays_acyclic(sorted([*unit, *path], key=lambda node: node.index)):
        return Refusal(reasons.CYCLE, "an op outside of the group stands between them")
    return None


def _starts_from_zero(node: Node) -> bool:
    """Whether all that an op updates is empty or filled with zeros, so that its inputs alone say what it computes."""
    for value in list(node.op.operands)[node.first_init :]:
        producer = defining_op(value)
        if producer is not None and producer.name == "linalg.fill":
            number = defining_op(producer.operands[0])
            if number is None or number.name != "arith.constant" or number.attributes["value"].value != 0:
                return False
        elif producer is None or producer.name != "tensor.empty":
            view = structured(node.op)
            if view is None or not view.is_elementwise:
                return False
    return True


def _next_step(last: Node, wanted: list[Node], names: tuple[str, ...], graph: BlockGraph) -> list[Node] | Refusal:
    """The op that alone reads the result of `last` and is called one of `names`, after the reshapes before it."""
    step: list[Node] = []
    node = last
    while True:
        users = list(dict.fromkeys(node.users))
        if len(users) != 1 or len(list(node.op.results[0].uses)) != 1:
            return Refusal(reasons.MULTI_USE, f"its result has {len(users)} users, the next step is to be the only one")
        node = users[0]
        step.append(node)
        if node.op.name not in RESHAPES_AND_CASTS:
            break
    if stops_fusion(last.op.results[0]):
        return Refusal(reasons.BARRIER, "fusion stops behind it")
    if node not in wanted or not OpFacts(node.op).is_called(names):
        return Refusal(reasons.RULE, f"the next step is to be {' or '.join(names)}")
    return step if len(node.unit) == 1 else Refusal(reasons.CLAIMED, "the next step is in another group already")
