"""ExportedProgram → Program."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from pipeline.errors import CaptureError
from pipeline.frontend.capture.call_parameters import Parameters
from pipeline.frontend.capture.fingerprint import LITERAL_ELEMENTS
from pipeline.frontend.capture.pytree_nodes import tree_of
from pipeline.frontend.importer.graph_reader import CapturedGraph, GraphReader, TypeOf
from pipeline.frontend.numbers.guards import guards_of
from pipeline.runtime.interface.pytree import Tree, leaf_paths
from pipeline.runtime.interface.signature import Mutation, Result, Signature


def read_exported(
    exported: ExportedProgram,
    parameters: Parameters,
    type_of: TypeOf | None = None,
    written_elsewhere: frozenset[str] = frozenset(),
) -> CapturedGraph:
    """Works out what a functional ExportedProgram takes and returns; see `GraphReader` for the rest."""
    reader = _ExportedReader(exported, parameters, type_of)
    reader.written_elsewhere = written_elsewhere
    return CapturedGraph(reader, reader.signature(), reader.weights)


class _ExportedReader(GraphReader):
    """Reads the graph of an ExportedProgram by its signature."""

    def __init__(self, exported: ExportedProgram, parameters: Parameters, type_of: TypeOf | None):
        graph_signature = exported.graph_signature
        super().__init__(exported.graph, set(graph_signature.user_inputs_to_mutate.values()), type_of)
        self.exported = exported
        self.parameters = parameters
        self.mutated_weights = set(graph_signature.buffers_to_mutate.values())

    def signature(self) -> Signature:
        """Works out what every placeholder and output is."""
        tree = tree_of(self.exported.call_spec.in_spec)
        paths = iter(argument_paths(tree, self.parameters.names))
        for spec in self.exported.graph_signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                self.read_argument(self.nodes[spec.arg.name], next(paths), getattr(spec.arg, "value", None))
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                self._read_weight(spec)
            else:
                raise CaptureError(
                    f"input {spec.target or spec.arg}: {spec.kind.name.lower()} inputs are not supported"
                )
        results, mutations = self._read_outputs()
        return Signature(
            arguments=tuple(self.arguments),
            argument_tree=tree,
            parameters=self.parameters.names,
            defaults=self.parameters.defaults,
            results=results,
            result_tree=tree_of(self.exported.call_spec.out_spec),
            weights=tuple(self.weight_types),
            mutations=mutations,
            ranges=symbol_ranges(self.exported),
            guards=guards_of(self.graph),
        )

    def ranges(self) -> dict[str, tuple[int, int]]:
        """Those of the program, see `symbol_ranges`."""
        return {symbol: (least, greatest) for symbol, least, greatest in symbol_ranges(self.exported)}

    def _read_weight(self, spec: Any) -> None:
        node = self.nodes[spec.arg.name]
        name = spec.target
        tensors = self.exported.state_dict if name in self.exported.state_dict else self.exported.constants
        tensor = tensors[name]
        mutated = name in self.mutated_weights
        if spec.kind == InputKind.CONSTANT_TENSOR and not mutated and _is_literal(tensor):
            node.replace_all_uses_with(tensor)
            self.graph.erase_node(node)
            return
        self.read_weight(name, tensor, mutated)

    def _read_outputs(self) -> tuple[tuple[Result, ...], tuple[Mutation, ...]]:
        results, mutations = [], []
        written: dict[Any, int] = {}  # the argument that a value is written to; returned, it is that argument itself
        for spec, value in zip(self.exported.graph_signature.output_specs, self.outputs, strict=True):
            if spec.kind == OutputKind.USER_OUTPUT:
                results.append(Result("argument", written[value]) if value in written else self.read_result(value))
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                written[value] = self.argument_index[spec.target]
                mutations.append(Mutation(self.result_number(value), argument=written[value]))
            else:
                mutations.append(Mutation(self.result_number(value), weight=spec.target))
        return tuple(results), tuple(mutations)


def _is_literal(tensor: torch.Tensor) -> bool:
    """Whether a constant is a part of the code; torch-mlir takes those in uint8 for int8, and has no complex ones."""
    return tensor.numel() <= LITERAL_ELEMENTS and tensor.dtype != torch.uint8 and not tensor.is_complex()


def symbol_ranges(exported: ExportedProgram) -> tuple[tuple[str, int, int], ...]:
    """(symbol, least, greatest) for every symbol of the program's shapes.

    A least size of 2 is torch.export's own assumption, not the user's: it is 0, as in torch's checks of a call.
    """
    ranges = []
    for symbol, bounds in exported.range_constraints.items():
        greatest = 2**63 - 1 if not _finite(bounds.upper) else int(bounds.upper)
        least = int(bounds.lower) if _finite(bounds.lower) else 0
        ranges.append((str(symbol), least if least > 2 else 0, greatest))
    return tuple(ranges)


def _finite(bound: Any) -> bool:
    return isinstance(bound, (int, sympy.Integer))


def argument_paths(tree: Tree, parameters: tuple[str, ...]) -> list[str]:
    """A readable path for each leaf of `(args, kwargs)`."""
    positional, keywords = tree.children
    paths = []
    for index, child in enumerate(positional.children):
        name = parameters[index] if index < len(parameters) else f"args[{index}]"
        paths += leaf_paths(child, name)
    for key, child in zip(keywords.keys, keywords.children, strict=True):
        paths += leaf_paths(child, str(key))
    return paths
