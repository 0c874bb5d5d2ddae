"""What torch captures, as sources of Programs. MLIR is loaded when a Program is made, not for a fingerprint alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.export import ExportedProgram

from pipeline import timing
from pipeline.frontend.capture.call_parameters import Parameters, parameters_of
from pipeline.frontend.capture.callables import name_of
from pipeline.frontend.capture.capture import (
    BY_BYTECODE,
    UNKNOWN_RECURRENCES,
    checked_arguments,
    export,
    functionalize,
    loaded,
)
from pipeline.frontend.capture.declared_inputs import DeclaredInputs
from pipeline.frontend.capture.fingerprint import exported_fingerprint, graph_fingerprint
from pipeline.frontend.capture.module_weights import ModuleWeights
from pipeline.frontend.functionalize.effect_tokens import drop_effect_tokens
from pipeline.program import Dump, Program, ProgramSource
from pipeline.remarks import note

if TYPE_CHECKING:
    from pipeline.frontend.importer.graph_reader import CapturedGraph, TypeOf


def exported_source(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    mode: str,
    random: str,
) -> ExportedSource:
    """Exports a model; see `pipeline.frontend.capture.capture.capture`, and `Options` for `random`."""
    name = _name(model)
    model, (args, keywords) = loaded(model), checked_arguments(args, kwargs)
    if isinstance(model, DeclaredInputs):
        args, dynamic_shapes = model.completed(args, dynamic_shapes)
    exported = export(model, args, keywords, dynamic_shapes, mode)
    if isinstance(model, DeclaredInputs):
        _note_fixed_sizes(exported, dynamic_shapes)
    parameters = parameters_of(model, args or (), keywords, exported)
    is_module = isinstance(model, nn.Module) and not isinstance(model, torch.jit.ScriptModule)
    module_weights = ModuleWeights(model, _captured(exported)) if is_module else None
    return ExportedSource(exported, parameters, module_weights, random, name)


def _note_fixed_sizes(exported: ExportedProgram, dynamic_shapes: Any) -> None:
    """Remarks on sizes that a file leaves open and that its graph takes in the example's size alone."""
    inputs = [node for node in exported.graph.nodes if node.name in exported.graph_signature.user_inputs]
    for node, open_dims in zip(inputs, dynamic_shapes or (), strict=False):
        for dim in open_dims or ():
            size = node.meta["val"].shape[dim]
            if not isinstance(size, torch.SymInt) or size.node.expr.is_number:
                note("capture", "missed", "builtin.module", f"dimension {dim} of {node.name} is {size} at each call")


def _name(model: Any) -> str:
    """What a model is called: its file, its function or its class."""
    return Path(model).stem if isinstance(model, (str, Path)) else name_of(model)


def _captured(exported: ExportedProgram) -> dict[str, Any]:
    return {**exported.constants, **exported.state_dict}


@dataclass(frozen=True)
class ExportedSource(ProgramSource):
    """A program as torch.export gives it.

    Attributes:
        module_weights: the weights where the module that was exported has them; None of what was no module.
        random: whose random numbers it draws, see `Options`.
        expand: puts ops in the place of what stands for them in the functional program.
        name: see `ProgramSource`.
        written_elsewhere: the names of weights that other programs write to, of which nothing is computed once for all.
    """

    exported: ExportedProgram
    parameters: Parameters
    module_weights: ModuleWeights | None = None
    random: str = "philox"
    name: str = "a model"
    expand: Callable[[ExportedProgram], ExportedProgram] | None = None
    written_elsewhere: frozenset[str] = frozenset()

    def program(self, dump: Dump) -> Program:
        """Functionalizes and imports it."""
        from pipeline.frontend.importer.graph_reader import tensor_type

        if self.exported.graph_module.meta.get(BY_BYTECODE):
            note(
                "capture",
                "passed",
                "builtin.module",
                "captured by its bytecode: Python makes numbers of its tensors or sizes",
            )
        for name in self.exported.graph_module.meta.get(UNKNOWN_RECURRENCES, ()):
            reason = f"{name} is not the function that is known: it is traced as it is"
            note("capture", "missed", "builtin.module", reason)
        return self.captured(tensor_type).program(dump)

    def captured(self, type_of: TypeOf) -> CapturedGraph:
        """Functionalizes and reads it."""
        from pipeline.frontend.importer.exported_program import read_exported

        return read_exported(self._functionalized(), self.parameters, type_of, self.written_elsewhere)

    def _functionalized(self) -> ExportedProgram:
        with timing.stage("functionalize"):
            functional = functionalize(self.exported, self.random)
            return functional if self.expand is None else self.expand(functional)

    def fingerprint(self) -> str | None:
        """See `exported_fingerprint`."""
        return exported_fingerprint(self.exported, self.parameters)

    def example(self) -> tuple[tuple[Any, ...], Mapping[str, Any]] | None:
        """As torch.export keeps it."""
        return self.exported.example_inputs

    def tensors(self) -> Mapping[str, Any]:
        """The model's parameters, buffers and constants."""
        captured = _captured(self.exported)
        return captured if self.module_weights is None else {**captured, **self.module_weights.tensors()}

    def holders(self) -> tuple[dict[str, Any], ...]:
        """Those of the module that was exported."""
        return () if self.module_weights is None else self.module_weights.holders()


@dataclass(frozen=True)
class GraphSource(ProgramSource):
    """A functional graph whose inputs are placeholders, such as aot_autograd's.

    Attributes:
        module: the graph.
        weights: the names in the model of the placeholders that are weights.
        live: gives the weights by their names in the model, as they are now.
        mutated: the placeholders that are written to; their new values are the graph's first outputs.
    """

    name = "a graph of torch.compile"

    module: fx.GraphModule
    weights: Mapping[str, str] = field(default_factory=dict)
    live: Callable[[], Mapping[str, torch.Tensor]] = dict
    mutated: tuple[str, ...] = ()

    def program(self, dump: Dump) -> Program:
        """Imports it."""
        from pipeline.frontend.importer.graph_reader import tensor_type

        return self.captured(tensor_type).program(dump)

    def captured(self, type_of: TypeOf) -> CapturedGraph:
        """Reads it."""
        from pipeline.frontend.importer.graph_reader import GraphReader, read_graph

        reader = GraphReader(self._copy().graph, set(self.mutated), type_of)
        return read_graph(reader, self.weights, self.live(), self.mutated)

    def _copy(self) -> fx.GraphModule:
        with unset_fake_temporarily():  # its constants are tensors with elements
            module = copy.deepcopy(self.module)
        drop_effect_tokens(module.graph)
        return module

    def fingerprint(self) -> str | None:
        """See `graph_fingerprint`."""
        return graph_fingerprint(self.module, self.weights, self.mutated)

    def tensors(self) -> Mapping[str, Any]:
        """The weights by name."""
        return self.live()
