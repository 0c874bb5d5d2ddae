"""An ONNX model as a module that torch.export can trace, and what it is traced on.

Initializers are its buffers, under names that tell of theirs; constants of the graph, too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from onnx import numpy_helper

from pipeline.errors import CaptureError
from pipeline.frontend.capture.declared_inputs import DeclaredInputs
from pipeline.frontend.onnx.call import NodeCall, attributes_of
from pipeline.frontend.onnx.element_types import FOUR_BITS, as_tensor, torch_type
from pipeline.frontend.onnx.graph_run import OnnxRun, constant_value
from pipeline.frontend.onnx.known import Known, as_tensor_value
from pipeline.frontend.onnx.ops.movement import constant_array, dense

#: Sizes that a file leaves open are traced with these, each with its own: primes, which weights seldom have.
_EXAMPLE_SIZES = (7, 11, 13, 17, 19, 23, 29, 31)


class OnnxModule(DeclaredInputs):
    """Runs a model's graph.

    Attributes:
        input_names: the names of the inputs that are no initializers.
        output_names: the names of the results.
    """

    def __init__(self, model: Any):
        super().__init__()
        self.training = False
        graph = model.graph
        self._graph = graph
        self._versions = {_domain(each.domain): each.version for each in model.opset_import} or {"": 1}
        self._functions = {(_domain(each.domain), each.name): each for each in model.functions}
        self._constants: dict[str, tuple[str, Any]] = {}
        for initializer in graph.initializer:
            self._keep(initializer.name, numpy_helper.to_array(initializer))
        for sparse in graph.sparse_initializer:
            self._keep(sparse.values.name, dense(sparse))
        for node in graph.node:
            if node.op_type == "Constant" and not _is_of_strings(node):
                self._keep(node.output[0], constant_array(_bare_call(node)))
        self._inputs = [value for value in graph.input if value.name not in self._constants]
        self.input_names = [value.name for value in self._inputs]
        self.output_names = [value.name for value in graph.output]
        self._four_bits = _names_of_four_bits(graph)
        self._parameters_of_call()

    def _keep(self, name: str, array: Any) -> None:
        """Makes a constant a buffer, with the name that ONNX has as far as torch can have it."""
        own = re.sub(r"\W", "_", name) or "constant"
        while own in self._buffers or hasattr(self, own):
            own += "_"
        self.register_buffer(own, as_tensor(array))
        small = constant_value(array, self._buffers[own])
        self._constants[name] = own, small.values if isinstance(small, Known) else None

    def _parameters_of_call(self) -> None:
        """Gives `forward` a parameter for each input, so that calls may be by name."""
        names: list[str] = []
        for given in self.input_names:
            own = re.sub(r"\W", "_", given)
            own = own if own.isidentifier() else f"_{own}"
            while own in names:
                own += "_"
            names.append(own)

        def forward(*args: Any, **kwargs: Any) -> Any:
            return self._run([*args, *(kwargs[name] for name in names[len(args) :])])

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        told: Any = forward
        told.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        self.forward = told

    def _run(self, inputs: Sequence[Any]) -> Any:
        if len(inputs) != len(self.input_names):
            raise CaptureError(
                f"the model takes {', '.join(self.input_names) or 'nothing'}; got {len(inputs)} arguments"
            )
        env: dict[str, Any] = {}
        for name, (own, values) in self._constants.items():
            tensor = getattr(self, own)
            env[name] = tensor if values is None else Known(values, tensor.dtype, tensor)
        for value, given in zip(self._inputs, inputs, strict=True):
            env[value.name] = _input(value, given)
        run = OnnxRun(self._versions, self._functions, self.input_names, four_bits=self._four_bits)
        run.nodes([node for node in self._graph.node if node.output[0] not in self._constants], env)
        results = [_result(env[name]) for name in self.output_names]
        return results[0] if len(results) == 1 else tuple(results)

    def completed(self, args: tuple[Any, ...] | None, dynamic_shapes: Any) -> tuple[tuple[Any, ...], Any]:
        """Example arguments and dynamic shapes: those that are given, as tensors, or those that the file declares."""
        if args is None:
            examples, open_dims = self.examples()
            return examples, open_dims if dynamic_shapes is None else dynamic_shapes
        return tuple(map(_as_torch, args)), dynamic_shapes

    def examples(self) -> tuple[tuple[Any, ...], Any]:
        """Arguments of the shapes that the file declares, and which of their dims it leaves open.

        Raises:
            CaptureError: an input is no tensor, or has no shape.
        """
        chosen: dict[str, int] = {}
        made = [_example(value, chosen) for value in self._inputs]
        return tuple(example for example, _ in made), tuple(open_dims for _, open_dims in made)


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _is_of_strings(node: Any) -> bool:
    return any(
        attribute.name.startswith("value_string") or (attribute.name == "value" and attribute.t.data_type == 8)
        for attribute in node.attribute
    )


def _bare_call(node: Any) -> NodeCall:
    return NodeCall(node, 0, OnnxRun({}, {}, []), {}, attributes_of(node, {}))


def _input(value: Any, given: Any) -> Any:
    """An argument as the run takes it: numbers are known ones, of the type that the graph declares."""
    if isinstance(given, torch.Tensor) or given is None:
        return given
    if value.type.HasField("tensor_type"):
        return Known.of(given, torch_type(value.type.tensor_type.elem_type, value.name))
    return list(given)


def _as_torch(value: Any) -> Any:
    """Arrays of NumPy as tensors, those in lists, too."""
    if isinstance(value, list):
        return [_as_torch(item) for item in value]
    return as_tensor(value) if isinstance(value, np.ndarray) else value


def _result(value: Any) -> Any:
    return as_tensor_value(value)


def _example(value: Any, chosen: dict[str, int]) -> tuple[torch.Tensor, dict[int, Any]]:
    """A tensor of the declared shape; dims of one name are of one size."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise CaptureError(f"input {value.name}: the file says no shape of it; give example arguments")
    shape, open_dims = [], {}
    for at, dim in enumerate(kind.shape.dim):
        if dim.HasField("dim_value"):
            shape.append(dim.dim_value)
            continue
        name = dim.dim_param or f"{value.name}.{at}"
        shape.append(chosen.setdefault(name, _EXAMPLE_SIZES[len(chosen) % len(_EXAMPLE_SIZES)]))
        open_dims[at] = torch.export.Dim.AUTO
    return torch.zeros(shape, dtype=torch_type(kind.elem_type, f"input {value.name}")), open_dims


def _names_of_four_bits(graph: Any) -> dict[str, int]:
    """The values that are declared, or stored, in types of four bits."""
    found = {each.name: each.data_type for each in graph.initializer if each.data_type in FOUR_BITS}
    for value in (*graph.input, *graph.value_info):
        if value.type.tensor_type.elem_type in FOUR_BITS:
            found[value.name] = value.type.tensor_type.elem_type
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.t.data_type in FOUR_BITS:
                found[node.output[0]] = attribute.t.data_type
    return found
