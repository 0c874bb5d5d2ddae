"""The ways in which weights change behind an executable's back."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn


def _others(module: nn.Module) -> dict[str, torch.Tensor]:
    """New values for the module's state, one tensor for the same memory however many names it has."""
    fresh: dict[int, torch.Tensor] = {}
    for tensor in [*module.parameters(), *module.buffers()]:
        values = torch.rand_like(tensor) + 0.5 if tensor.is_floating_point() else torch.ones_like(tensor)
        fresh.setdefault(tensor.data_ptr(), values.detach())
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    return {name: fresh[tensor.data_ptr()] for name, tensor in named}


def _set_data(module: nn.Module) -> None:
    others = _others(module)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        tensor.data = others[name]


def _set(module: nn.Module) -> None:
    others = _others(module)
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            tensor.set_(others[name])


def _load(module: nn.Module) -> None:
    module.load_state_dict(_others(module), strict=False)


def _assign(module: nn.Module) -> None:
    module.load_state_dict(_others(module), strict=False, assign=True)


def _step(module: nn.Module) -> None:
    parameters = list(module.parameters())
    for parameter in parameters:
        parameter.grad = torch.rand_like(parameter)
    if parameters:
        torch.optim.AdamW(parameters, lr=0.1).step()


def _replace(module: nn.Module) -> None:
    others = _others(module)
    fresh = {id(tensor): nn.Parameter(tensor) for tensor in others.values() if tensor.is_floating_point()}
    for owner_name, owner in module.named_modules():
        for name in [name for name, parameter in owner._parameters.items() if parameter is not None]:
            setattr(owner, name, fresh[id(others[f"{owner_name}.{name}".strip(".")])])


def _replace_layers(module: nn.Module) -> None:
    fresh = copy.deepcopy(module)
    _step(fresh)
    for name, child in fresh.named_children():
        setattr(module, name, child)


def _to_and_back(module: nn.Module) -> None:
    module.double().float()


CHANGES: dict[str, Callable[[nn.Module], object]] = {
    "share_memory": lambda module: module.share_memory(),
    "to": _to_and_back,
    "data": _set_data,
    "set_": _set,
    "load_state_dict": _load,
    "load_state_dict(assign)": _assign,
    "step": _step,
    "new parameters": _replace,
    "new layers": _replace_layers,
}
