"""What an op sees of the node that it runs for: attributes, versions, inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from onnx import AttributeProto, numpy_helper

from pipeline.errors import CaptureError
from pipeline.frontend.onnx.element_types import torch_type
from pipeline.frontend.onnx.known import Known

if TYPE_CHECKING:
    from pipeline.frontend.onnx.graph_run import OnnxRun


@dataclass(frozen=True)
class NodeCall:
    """One node of a run.

    Attributes:
        node: ONNX's node.
        version: of the ops' set that the node is from.
        run: the run that it is part of.
        env: the values by name, where it runs.
        attributes: by name, as Python's values.
    """

    node: Any
    version: int
    run: OnnxRun
    env: dict[str, Any]
    attributes: dict[str, Any]

    @property
    def name(self) -> str:
        """What messages call the node."""
        return f"{self.node.op_type} {self.node.name!r}" if self.node.name else str(self.node.op_type)

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        return self.attributes.get(name, default)

    def dtype(self, name: str, default: torch.dtype = torch.float32) -> torch.dtype:
        """An attribute that names an element type."""
        return torch_type(self.attributes[name], self.name) if self.attributes.get(name) else default

    def numbers(self, value: Any, attribute: str | None = None) -> list[Any] | None:
        """The numbers that an input, or in earlier versions an attribute, has; None where neither is given.

        Raises:
            CaptureError: they are computed from data.
        """
        if value is None:
            given = self.attributes.get(attribute) if attribute else None
            return given if given is None or isinstance(given, list) else [given]
        if isinstance(value, Known):
            return value.numbers()
        raise self.error(
            "sizes, axes and the like have to be constants or to follow from shapes, and these are computed from data; "
            f"give the inputs that they come from ({', '.join(self.run.inputs)}) as lists of numbers, "
            "to compile them in"
        )

    def number(self, value: Any, attribute: str | None = None, default: Any = None) -> Any:
        """Likewise, of a single number."""
        found = self.numbers(value, attribute)
        return default if not found else found[0]

    def error(self, why: str) -> CaptureError:
        """The error that this node cannot be captured."""
        return CaptureError(f"{self.name}: {why}")


def attributes_of(node: Any, outer: dict[str, Any]) -> dict[str, Any]:
    """A node's attributes as Python's values; what refers to a function's attribute is taken from `outer`."""
    found = {}
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in outer:
                found[attribute.name] = outer[attribute.ref_attr_name]
        else:
            found[attribute.name] = _value(attribute)
    return found


def _value(attribute: Any) -> Any:
    kinds = AttributeProto
    plain = {
        kinds.FLOAT: "f",
        kinds.INT: "i",
        kinds.GRAPH: "g",
        kinds.TYPE_PROTO: "tp",
        kinds.SPARSE_TENSOR: "sparse_tensor",
    }
    lists = {kinds.FLOATS: "floats", kinds.INTS: "ints", kinds.GRAPHS: "graphs"}
    if attribute.type in plain:
        return getattr(attribute, plain[attribute.type])
    if attribute.type in lists:
        return list(getattr(attribute, lists[attribute.type]))
    if attribute.type == kinds.STRING:
        return attribute.s.decode()
    if attribute.type == kinds.STRINGS:
        return [text.decode() for text in attribute.strings]
    if attribute.type == kinds.TENSOR:
        return numpy_helper.to_array(attribute.t)
    raise CaptureError(f"attribute {attribute.name}: of a kind that is not supported")
