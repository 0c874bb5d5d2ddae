"""One run of an ONNX graph on torch's functions, node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from pipeline.errors import CaptureError, PipelineError
from pipeline.frontend.onnx.call import NodeCall, attributes_of
from pipeline.frontend.onnx.element_types import as_tensor, onnx_type
from pipeline.frontend.onnx.known import MOST_ELEMENTS, Known, all_known, as_tensor_value
from pipeline.frontend.onnx.ops import ON_KNOWN, OPS
from pipeline.frontend.onnx.ops.table import Op

_UNNAMED = {"ai.onnx": ""}


class OnnxRun:
    """A run of a graph, or of a function's or a region's.

    Attributes:
        versions: of the sets of ops, by their domains.
        inputs: the names of the model's inputs, for messages.
        four_bits: the types of values that have four bits, by their names; their tensors have bytes.
    """

    def __init__(
        self,
        versions: Mapping[str, int],
        functions: Mapping[tuple[str, str], Any],
        inputs: Sequence[str],
        attributes: dict[str, Any] | None = None,
        four_bits: Mapping[str, int] | None = None,
    ):
        self.versions = versions
        self.inputs = inputs
        self.four_bits = four_bits or {}
        self._functions = functions
        self._attributes = attributes or {}

    def nodes(self, nodes: Sequence[Any], env: dict[str, Any]) -> None:
        """Runs nodes in their order; `env` has the values by name, and gets those that they make."""
        for node in nodes:
            self._node(node, env)

    def region(self, graph: Any, env: Mapping[str, Any], inputs: Sequence[Any]) -> list[Any]:
        """The results of a graph that sees what is around it."""
        inner = dict(env)
        for initializer in graph.initializer:
            inner[initializer.name] = constant_value(numpy_helper.to_array(initializer))
        inner.update(zip((value.name for value in graph.input), inputs, strict=True))
        self.nodes(graph.node, inner)
        return [inner[value.name] for value in graph.output]

    def _node(self, node: Any, env: dict[str, Any]) -> None:
        inputs = [env[name] if name else None for name in node.input]
        attributes = attributes_of(node, self._attributes)
        domain = _UNNAMED.get(node.domain, node.domain)
        call = NodeCall(node, self.versions.get(domain, 1), self, env, attributes)
        try:
            results = self._results(call, domain, inputs)
        except PipelineError as error:
            if call.name in str(error):
                raise
            raise CaptureError(f"{call.name}: {error}") from None
        env.update((name, result) for name, result in zip(node.output, results, strict=False) if name)

    def _results(self, call: NodeCall, domain: str, inputs: list[Any]) -> Sequence[Any]:
        name = call.node.op_type
        if domain == "" and name in ON_KNOWN and all_known(inputs):
            known = ON_KNOWN[name](call, *inputs)
            if known is not None:
                return known if isinstance(known, tuple) else (known,)
        found = OPS.get((domain, name))
        if found is not None and name not in _NOT_FOLDED and all_known(inputs) and all(map(_is_plain, inputs)):
            return _folded(found, call, inputs)
        if found is None:
            return self._by_definition(call, domain, inputs)
        if found.as_given is not None:
            given = found.as_given
            inputs = [value if at in given else as_tensor_value(value) for at, value in enumerate(inputs)]
        results = found.function(call, *inputs)
        return results if isinstance(results, tuple) else (results,)

    def _by_definition(self, call: NodeCall, domain: str, inputs: list[Any]) -> Sequence[Any]:
        """Runs the model's own function, or the definition by other ops that ONNX has of an op."""
        own = self._functions.get((domain, call.node.op_type))
        if own is not None:
            return self._function(own, own.opset_import, call, inputs)
        defined = _definition(call, domain, [as_tensor_value(value) for value in inputs])
        if defined is None:
            where = f" of {domain}" if domain else ""
            raise CaptureError(f"the ONNX op {call.node.op_type}{where}, version {call.version}, is not supported")
        return self._function(defined, defined.opset_import, call, inputs)

    def _function(self, function: Any, imports: Any, call: NodeCall, inputs: list[Any]) -> list[Any]:
        versions = {**self.versions, **{_UNNAMED.get(each.domain, each.domain): each.version for each in imports}}
        defaults = {attribute.name: attribute for attribute in function.attribute_proto}
        given = {
            **{name: attributes_of(_Holder([each]), {})[name] for name, each in defaults.items()},
            **call.attributes,
        }
        inner = OnnxRun(versions, self._functions, self.inputs, given, self.four_bits)
        padded = [*inputs, *[None] * (len(function.input) - len(inputs))]
        env = dict(zip(function.input, padded, strict=False))
        inner.nodes(function.node, env)
        return [env.get(name) for name in function.output]


#: Ops whose results differ from call to call, that have regions, or that make large tensors of small ones.
_NOT_FOLDED = {"If", "Loop", "Scan", "SequenceMap", "Bernoulli", "RandomNormalLike", "RandomUniformLike", "Multinomial"}
_NOT_FOLDED |= {"Dropout", "ConstantOfShape", "Range", "Expand", "Tile", "Resize", "Upsample"}

#: Constants of more elements are weights, whose owner may change them.
_PLAIN_ELEMENTS = 16


def _is_plain(value: Known | None) -> bool:
    """Whether a known value has no symbols, and is no weight."""
    if value is None:
        return True
    is_small = value.values.size <= _PLAIN_ELEMENTS or not value.dtype.is_floating_point
    return is_small and all(isinstance(number, (bool, int, float)) for number in value.numbers())


def _folded(op: Op, call: NodeCall, inputs: list[Any]) -> tuple[Any, ...]:
    """What an op gives for constants, computed here and now; nothing of it is traced."""
    with unset_fake_temporarily(), disable_proxy_modes_tracing():
        real = [None if value is None else Known(value.values, value.dtype) for value in inputs]
        given = range(len(real)) if op.as_given is None else op.as_given
        results = op.function(call, *(v if at in given else as_tensor_value(v) for at, v in enumerate(real)))
        listed = results if isinstance(results, tuple) else (results,)
        return tuple(_known_again(value) for value in listed)


def _known_again(value: Any) -> Any:
    if isinstance(value, list):
        return [_known_again(item) for item in value]
    return Known.of(value.tolist(), value.dtype).shaped(value.shape) if isinstance(value, torch.Tensor) else value


class _Holder:
    """A node that has attributes alone."""

    def __init__(self, attribute: list[Any]):
        self.attribute = attribute


def _definition(call: NodeCall, domain: str, inputs: list[Any]) -> Any:
    """The FunctionProto by which ONNX defines an op, for inputs of these types; None where it has none."""
    try:
        schema: Any = onnx.defs.get_schema(call.node.op_type, call.version, domain)
    except onnx.defs.SchemaError:
        return None
    if schema.has_function:
        return schema.function_body
    if not schema.has_context_dependent_function:
        return None
    types = [_type_proto(value).SerializeToString() for value in inputs]
    node = onnx.NodeProto()
    node.CopyFrom(call.node)
    del node.attribute[:]
    node.attribute.extend(_attribute(name, value) for name, value in call.attributes.items())
    body = schema.get_context_dependent_function(node.SerializeToString(), types)
    function = onnx.FunctionProto()
    function.ParseFromString(body)
    return function


def _attribute(name: str, value: Any) -> Any:
    """An attribute again, with what a function's attribute gave for it."""
    is_array = isinstance(value, np.ndarray)
    return onnx.helper.make_attribute(name, numpy_helper.from_array(value) if is_array else value)


def _type_proto(value: Any) -> Any:
    """ONNX's type of a value; sizes that are no numbers are left open."""
    if not isinstance(value, torch.Tensor):
        return onnx.TypeProto()
    sizes = [size if isinstance(size, int) else None for size in value.shape]
    return onnx.helper.make_tensor_type_proto(onnx_type(value.dtype), sizes)


def constant_value(array: Any, tensor: torch.Tensor | None = None) -> Known | torch.Tensor:
    """A constant: a known value if it is small, else a tensor; `tensor` is the module's own, where it has one."""
    own = as_tensor(array) if tensor is None else tensor
    is_plain = array.dtype.kind in "biuf" and array.size <= MOST_ELEMENTS
    return Known(array.astype(object), own.dtype, own) if is_plain else own
