"""What torch captures, as sources of Programs. MLIR is loaded when a Program is made, not for a fingerprint alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.export import ExportedProgram

from pipeline import timing
from pipeline.frontend.capture import export, functionalize
from pipeline.frontend.fingerprint import exported_fingerprint, graph_fingerprint
from pipeline.frontend.parameters import Parameters, parameters_of
from pipeline.program import Dump, Program, Source


def exported_source(
    model: Any, args: tuple[Any, ...] | None, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any, mode: str
) -> ExportedSource:
    """Exports a model; see `pipeline.frontend.capture.capture`."""
    exported = export(model, args, kwargs, dynamic_shapes, mode)
    return ExportedSource(exported, parameters_of(model, args or (), kwargs or {}, exported))


@dataclass(frozen=True)
class ExportedSource(Source):
    """A program as torch.export gives it."""

    exported: ExportedProgram
    parameters: Parameters

    def program(self, dump: Dump) -> Program:
        """Functionalizes and imports it."""
        from pipeline.frontend.exported import from_exported

        with timing.stage("functionalize"):
            functional = functionalize(self.exported)
        return from_exported(functional, self.parameters, dump)

    def fingerprint(self) -> str | None:
        """See `exported_fingerprint`."""
        return exported_fingerprint(self.exported, self.parameters)

    def tensors(self) -> Mapping[str, Any]:
        """The model's parameters, buffers and constants."""
        return {**self.exported.constants, **self.exported.state_dict}


@dataclass(frozen=True)
class GraphSource(Source):
    """A functional graph whose inputs are placeholders, such as aot_autograd's.

    Attributes:
        module: the graph.
        weights: the names in the model of the placeholders that are weights.
        live: gives the weights by their names in the model, as they are now.
        mutated: the placeholders that are written to; their new values are the graph's first outputs.
    """

    module: fx.GraphModule
    weights: Mapping[str, str] = field(default_factory=dict)
    live: Callable[[], Mapping[str, torch.Tensor]] = dict
    mutated: tuple[str, ...] = ()

    def program(self, dump: Dump) -> Program:
        """Imports it."""
        from pipeline.frontend.graph import from_graph

        with unset_fake_temporarily():  # its constants are tensors with elements
            module = copy.deepcopy(self.module)
        return from_graph(module.graph, dump, self.weights, self.live(), self.mutated)

    def fingerprint(self) -> str | None:
        """See `graph_fingerprint`."""
        return graph_fingerprint(self.module, self.weights, self.mutated)

    def tensors(self) -> Mapping[str, Any]:
        """The weights by name."""
        return self.live()
