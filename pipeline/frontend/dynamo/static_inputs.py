"""Which inputs of a graph are the model's weights: parameters and buffers, which code is bound to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

#: (name in the model, tensor) by the numbers of inputs.
Weights = dict[int, tuple[str, torch.Tensor]]


def weights_of(graph: fx.GraphModule) -> Weights:
    """The weights among the inputs of dynamo's graph.

    Tensors that code cannot bind, for nothing tells when they change, are none of them. Nor are those of symbolic
    sizes: they are other tensors, of other sizes, from call to call.
    """
    found: Weights = {}
    names: set[str] = set()
    for number, node in enumerate(_placeholders(graph)):
        if _is_static(node) and _can_be_bound(_example(node)) and _has_known_sizes(node.meta.get("example_value")):
            found[number] = (_name(node, names), _example(node))
    return found


def weights_inside(graph: fx.GraphModule, inner: fx.GraphModule) -> Weights:
    """The weights among the inputs of `inner`, which takes the tensors that tensor subclasses hold in their place.

    None where aot_autograd has done something else to the inputs, too.
    """
    found: Weights = {}
    names: set[str] = set()
    taken = _placeholders(inner)
    number = 0
    for node in _placeholders(graph):
        parts = _parts(_example(node))
        if _is_static(node):
            name = _name(node, names)
            for place, (part, tensor) in enumerate(parts, number):
                if _can_be_bound(tensor):
                    found[place] = (".".join([name, *part]), tensor)
        number += len(parts)
    if number != len(taken):
        return {}
    found = {place: weight for place, weight in found.items() if _has_known_sizes(taken[place].meta.get("val"))}
    return found if all(_is_like(tensor, taken[place]) for place, (_, tensor) in found.items()) else {}


def _placeholders(graph: fx.GraphModule) -> list[fx.Node]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def _is_static(node: fx.Node) -> bool:
    """Whether dynamo says of an input that it is a parameter or a buffer."""
    return node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type") is not None


def _example(node: fx.Node) -> Any:
    """What the graph was captured with."""
    return getattr(node.meta.get("grapharg"), "example", None)


def _can_be_bound(tensor: Any) -> bool:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        return False
    return tensor.layout == torch.strided and tensor.device.type == "cpu" and not tensor.is_inference()


def _parts(value: Any) -> list[tuple[tuple[str, ...], Any]]:
    """The tensors that a tensor subclass holds, and those inside of them, in aot_autograd's order, by attributes."""
    if not isinstance(value, torch.Tensor) or not is_traceable_wrapper_subclass(value):
        return [((), value)]
    attributes, _ = value.__tensor_flatten__()
    return [((name, *part), tensor) for name in attributes for part, tensor in _parts(getattr(value, name))]


def _is_like(tensor: torch.Tensor, node: fx.Node) -> bool:
    """Whether a tensor has the shape and the dtype that a graph was captured with."""
    kind = node.meta.get("val")
    return isinstance(kind, torch.Tensor) and kind.dtype == tensor.dtype and tuple(kind.shape) == tuple(tensor.shape)


def _has_known_sizes(kind: Any) -> bool:
    """Whether no size or stride of what an input was captured as is a symbol."""
    return not isinstance(kind, torch.Tensor) or all(isinstance(size, int) for size in (*kind.shape, *kind.stride()))


def _name(node: fx.Node, taken: set[str]) -> str:
    """What the model calls a weight, e.g. `layers.0.weight`, by dynamo's name of its place."""
    source = getattr(node, "_dynamo_source", None)
    parts: Sequence[str] = re.findall(r"_(?:modules|parameters|buffers)\['([^']+)'\]", source.name) if source else ()
    name = ".".join(parts)
    name = name if name and name not in taken else node.name
    taken.add(name)
    return name
