"""What a script's graph says of itself: the tensors that belong to it, its constants, the types that it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from pipeline.errors import CaptureError


def tensors_of(script: Any, graph: Any, modules: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """(name, tensor, is a parameter) of each tensor of a script: parameters, buffers, plain attributes, constants.

    Frozen scripts have their weights as constants of the graph, which are called `constant_N` here.
    """
    known: set[str] = set()
    for name, tensor in script.named_parameters(remove_duplicate=False) if modules else ():
        known.add(name)
        yield name, _parameter(tensor), True
    for name, tensor in script.named_buffers(remove_duplicate=False) if modules else ():
        known.add(name)
        yield name, tensor, False
    for path, value in _attributes(graph, modules).items():
        if path not in known and isinstance(value, torch.Tensor):
            yield path, _dense(value), False
    for node in _nodes(graph):
        if node.kind() in CONSTANTS and isinstance(value := constant_of(node), torch.Tensor):
            yield constant_name(node.output().debugName()), value, False


def constant_name(name: str) -> str:
    """What a tensor is called that is a constant of the graph, by the graph's name for it."""
    return "constant_" + name.replace(".", "_")


#: The kinds of nodes that are constants; torch.jit.optimize_for_inference makes the second one.
CONSTANTS = ("prim::Constant", "prim::ConstantMKLDNNTensor")


def constant_of(node: Any) -> Any:
    """The value of a constant node."""
    value = node.output().toIValue() if node.kind() == "prim::Constant" else node.t("value")
    return _dense(value) if isinstance(value, torch.Tensor) else value


def is_instance(node: Any) -> bool:
    """Whether the type of what is asked about is one of those that it is compared with, as the graph knows it."""
    own = next(node.inputs()).type()
    if str(own) == "Any":
        raise CaptureError("isinstance of an Any is not supported in TorchScript, give it a type")
    return any(own.isSubtypeOf(kind) for kind in node.tys("types"))


def _parameter(tensor: torch.Tensor) -> nn.Parameter:
    """A loaded script hands out plain tensors."""
    return tensor if isinstance(tensor, nn.Parameter) else nn.Parameter(tensor, requires_grad=tensor.requires_grad)


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_dense() if tensor.is_mkldnn else tensor


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _attributes(graph: Any, modules: Mapping[str, Any]) -> dict[str, Any]:
    """What the graph reads and writes of modules, as it is now, by its path."""
    if not modules:
        return {}
    paths = {next(graph.inputs()).debugName(): ""}
    found: dict[str, Any] = {}
    for node in _nodes(graph):
        if node.kind() not in ("prim::GetAttr", "prim::SetAttr"):
            continue
        owner = paths.get(node.inputsAt(0).debugName())
        if owner is None or owner not in modules:
            continue
        path = f"{owner}.{node.s('name')}" if owner else node.s("name")
        if node.kind() == "prim::GetAttr":
            paths[node.output().debugName()] = path
        if path not in modules:
            found[path] = modules[owner]._c.getattr(node.s("name"))
    return found
