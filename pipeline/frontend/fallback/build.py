"""From a captured graph to the executable of its parts: cut, compile, cut again where a part cannot be lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import fx

from pipeline.errors import LoweringError, PipelineError, UnsupportedOpError
from pipeline.frontend.fallback.executable import FallbackExecutable, FallbackPlan
from pipeline.frontend.fallback.part import GraphPart, cut
from pipeline.frontend.fallback.partition import PartitionStage, is_given, stages
from pipeline.frontend.fallback.sizes import sizes_of_arguments
from pipeline.frontend.fallback.steps import FallbackStep, NodeStep, PartStep
from pipeline.frontend.fallback.unsupported import is_number, is_view, why_unsupported
from pipeline.frontend.fx_passes.source_lines import source_line
from pipeline.frontend.importer.fx_importer import target_name
from pipeline.frontend.importer.graph_reader import CapturedGraph, any_type
from pipeline.frontend.numbers.checks import drop_proved_assertions
from pipeline.ir.attributes import ARGUMENT
from pipeline.program import ProgramSource
from pipeline.remarks import collect, note
from pipeline.runtime.executable import Executable, Fallback
from pipeline.runtime.weights.weight_source import Rebound, RefreshMode

#: Compiles one part, whose ops must all be lowered.
CompilePart = Callable[[GraphPart], Executable]


def compile_parts(
    source: ProgramSource, compile_part: CompilePart, error: PipelineError, refresh: RefreshMode = "auto"
) -> Executable:
    """The executable of a model that cannot be lowered as a whole.

    Args:
        source: the model.
        compile_part: raises `UnsupportedOpError` or `LoweringError` where a part cannot be lowered.
        error: why the model as a whole cannot be; raised again if there is no graph that could be cut.
        refresh: whether calls look for other weights.
    """
    captured = source.captured(any_type)
    if captured is None:
        raise error
    drop_proved_assertions(captured.reader.graph)
    sizes_of_arguments(captured.reader.graph)
    results = set(captured.reader.computed)
    captured.reader.graph.eliminate_dead_code(lambda node: node in results or node.is_impure())
    model = _Model(captured)
    model.learn(error)
    with collect() as remarks:
        executables = model.compile(compile_part)
        plan = model.plan(executables)
        for fallback in plan.fallbacks:
            note("fallback", "missed", fallback.op, f"torch runs it: {fallback.reason}", fallback.source)
    parts, weights = dict(executables), Rebound.with_made(source, captured.weights)

    def timed() -> FallbackExecutable:
        again = {stage: part if part._timed is None else part._timed() for stage, part in parts.items()}
        return FallbackExecutable(model.plan(again), captured.signature, weights, (), None, refresh)

    return FallbackExecutable(plan, captured.signature, weights, tuple(remarks), timed, refresh)


@dataclass
class _Model:
    """The graph that is cut, and what is known of its nodes.

    Attributes:
        reasons: why nodes cannot be lowered.
        views: nodes that compute nothing on tensors that no part takes.
    """

    captured: CapturedGraph
    reasons: dict[fx.Node, str] = field(default_factory=dict)
    views: set[fx.Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.graph: fx.Graph = self.captured.reader.graph
        mutated = {weight.name for weight in self.captured.signature.weights if weight.mutated}
        self.arguments, self.weights = _placeholders(self.captured)
        self.constant_weights = {node: name for node, name in self.weights.items() if name not in mutated}
        for node in self.graph.nodes:
            reason = why_unsupported(node) if node.op == "call_function" else None
            if reason is not None and is_view(node):
                self.views.add(node)
            elif reason is not None:
                self.reasons[node] = reason

    def learn(self, error: PipelineError, part: GraphPart | None = None) -> None:
        """Marks the nodes that an error is about; of a part all of them, where it names none that is known."""
        known = {node.name: node for node in self.graph.nodes} if part is None else part.origins
        known = {name: node for name, node in known.items() if node.op == "call_function" and node not in self.reasons}
        named = error.nodes if isinstance(error, UnsupportedOpError) else frozenset()
        found = [known[name] for name in sorted(named) if name in known]
        if not found and (part is not None or isinstance(error, LoweringError)):
            found = list(known.values())
        if any(node.target is torch.ops.aten.as_strided.default for node in found):
            raise error  # what it reads lies elsewhere than in capture
        for node in found:
            self.reasons[node] = _reason(error, node)

    def compile(self, compile_part: CompilePart) -> dict[PartitionStage, Executable]:
        """The executable of each stage that has a part; cuts anew until all parts compile."""
        while True:
            executables: dict[PartitionStage, Executable] = {}
            complete = True
            for stage in self.stages():
                if not stage.part:
                    continue
                part = self.cut(stage)
                try:
                    executables[stage] = compile_part(part)
                except (UnsupportedOpError, LoweringError) as error:
                    self.learn(error, part)
                    complete = False
            if complete:
                return executables

    def stages(self) -> list[PartitionStage]:
        """The stages, as far as is known what cannot be lowered."""
        return stages(self.graph, self.reasons.keys() | self.views)

    def cut(self, stage: PartitionStage) -> GraphPart:
        """The part of a stage."""
        inside = set(stage.part)
        results = set(self.captured.reader.computed)
        outside = {node for node in stage.part if node in results or any(user not in inside for user in node.users)}
        outside -= {node for node in outside if node not in results and all(u.op == "output" for u in node.users)}
        tensors, root = self.captured.weights, self.graph.owning_module
        return cut(stage.part, outside, self.constant_weights, tensors, root)

    def plan(self, executables: Mapping[PartitionStage, Executable]) -> FallbackPlan:
        """What a call does, with the parts compiled."""
        steps: list[FallbackStep] = []
        for stage in self.stages():
            if stage in executables:
                part = self.cut(stage)
                steps.append(PartStep(executables[stage], part.inputs, part.outputs))
            steps += map(NodeStep, stage.single)
        results = tuple(self.captured.reader.computed)
        steps = self._with_given(steps, results)
        read = {node for step in steps for node in step.reads} | set(results)
        weights = tuple((node, name) for node, name in self.weights.items() if node in read)
        return FallbackPlan(self.arguments, weights, _with_ends(steps, results), results, self._fallbacks(steps))

    def _with_given(self, steps: list[FallbackStep], results: tuple[fx.Node, ...]) -> list[FallbackStep]:
        """Puts what is made anew wherever it is read, such as constants, in front of what torch runs."""
        read = {node for step in steps for node in step.reads} | set(results)
        there = {step.node for step in steps if isinstance(step, NodeStep)}
        made = [node for node in self.graph.nodes if node in read and node.op != "placeholder" and node not in there]
        return [*(NodeStep(node) for node in made if is_given(node)), *steps]

    def _fallbacks(self, steps: list[FallbackStep]) -> tuple[Fallback, ...]:
        nodes = [step.node for step in steps if isinstance(step, NodeStep)]
        return tuple(
            Fallback(target_name(node), _line(node), self.reasons.get(node, "takes a number that no part takes"))
            for node in nodes
            if node in self.reasons or not (is_view(node) or is_number(node) or is_given(node))
        )


def _placeholders(captured: CapturedGraph) -> tuple[tuple[fx.Node | None, ...], dict[fx.Node, str]]:
    """The placeholder of each argument of the call, None for a constant; the names of the weights by theirs."""
    numbers = captured.reader.argument_index
    placeholders = [node for node in captured.reader.graph.nodes if node.op == "placeholder"]
    arguments: list[fx.Node | None] = [None] * len(captured.signature.arguments)
    weights: dict[fx.Node, str] = {}
    for node, (kind, which) in zip(placeholders, captured.reader.sources, strict=True):
        if kind == ARGUMENT:
            arguments[numbers[node.name]] = node
        else:
            weights[node] = str(which)
    return tuple(arguments), weights


def _reason(error: PipelineError, node: fx.Node) -> str:
    """What an error says of a node; of the first op where that is not known."""
    if not isinstance(error, UnsupportedOpError):
        return f"torch-mlir gives up on a graph with it: {str(error).splitlines()[0]}"
    line = _line(node)
    near = [reason for _, source, reason in error.ops if source == line]
    return (near or [reason for _, _, reason in error.ops])[0]


def _line(node: fx.Node) -> str | None:
    line = source_line(node)
    return f"{line[0]}:{line[1]}" if line else None


def _with_ends(steps: list[FallbackStep], results: tuple[fx.Node, ...]) -> tuple[FallbackStep, ...]:
    """Tells each step whose values nothing reads behind it."""
    later = set(results)
    ended: list[FallbackStep] = []
    for step in reversed(steps):
        made = {step.node} if isinstance(step, NodeStep) else set(getattr(step, "outputs", ()))
        last = tuple(dict.fromkeys(node for node in (*step.reads, *made) if node not in later))
        later.update(step.reads)
        ended.append(replace(step, last=last))
    return tuple(reversed(ended))
