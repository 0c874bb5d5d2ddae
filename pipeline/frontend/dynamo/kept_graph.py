"""A functional graph as bytes, with what the compiler reads of its nodes, for the disk cache.

It is opened where the graph itself is wanted: the code that was made of it is found by its digest.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.fx._graph_pickler import GraphPickler, Options
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from pipeline.frontend.capture.fingerprint import called_with, graph_digest
from pipeline.frontend.fx_passes.source_lines import modules_of
from pipeline.frontend.sources import GraphSource
from pipeline.program import Dump, Program, ProgramSource

if TYPE_CHECKING:
    from pipeline.frontend.importer.graph_reader import CapturedGraph, TypeOf


@dataclass(frozen=True)
class KeptGraph:
    """A graph with fixed sizes and without tensors of its own.

    Attributes:
        digest: see `graph_digest`.
        pickled: what torch's pickler of graphs makes of it.
    """

    digest: str
    pickled: bytes

    @staticmethod
    def of(module: fx.GraphModule) -> KeptGraph | None:
        """The graph as bytes; None of a graph that has no digest."""
        digest = graph_digest(module)
        if digest is None:
            return None
        with unset_fake_temporarily():
            bare = copy.deepcopy(module)
        bare.meta = {}
        for node in bare.graph.nodes:
            node.meta = _kept_of(node)
        return KeptGraph(digest, GraphPickler.dumps(bare, Options(ops_filter=None, node_metadata_key_filter=None)))

    @functools.cached_property
    def module(self) -> fx.GraphModule:
        """The graph."""
        with unset_fake_temporarily():
            module = GraphPickler.loads(self.pickled, FakeTensorMode(shape_env=ShapeEnv()))
        assert isinstance(module, fx.GraphModule)
        return module


def _kept_of(node: fx.Node) -> dict[str, Any]:
    """What the compiler reads of what torch notes of a node; the classes of modules by name."""
    kept = {key: node.meta[key] for key in ("val", "stack_trace", "torch_fn") if key in node.meta}
    modules = modules_of(node)
    return (
        {**kept, "nn_module_stack": {str(number): entry for number, entry in enumerate(modules)}} if modules else kept
    )


@dataclass(frozen=True)
class KeptGraphSource(ProgramSource):
    """The same as a `GraphSource` of the graph that is kept; attributes as there."""

    name = GraphSource.name

    kept: KeptGraph
    weights: Mapping[str, str] = field(default_factory=dict)
    live: Callable[[], Mapping[str, torch.Tensor]] = dict
    mutated: tuple[str, ...] = ()

    def _opened(self) -> GraphSource:
        return GraphSource(self.kept.module, self.weights, self.live, self.mutated)

    def program(self, dump: Dump) -> Program:
        """Imports it."""
        return self._opened().program(dump)

    def captured(self, type_of: TypeOf) -> CapturedGraph:
        """Reads it."""
        return self._opened().captured(type_of)

    def fingerprint(self) -> str:
        """See `graph_fingerprint`."""
        return called_with(self.kept.digest, self.weights, self.mutated)

    def tensors(self) -> Mapping[str, Any]:
        """The weights by name."""
        return self.live()
