"""Layers of a model that differ in their weights and their number alone: which those are.

A layer's number, by which it finds its keys and values in the cache, must be nothing to it but that: while layers are
traced it is a `LayerNumber`, which cannot be computed with, compared or looked up.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import nn

from pipeline.frontend.generation.told_modules import Untold, by_class, own_attributes


class NumberUsedError(Exception):
    """A layer does something with its number."""


class LayerNumber:
    """The number of a layer, which only the cache may know."""

    def __init__(self, value: int):
        self.value = value

    def _used(self, *others: Any) -> NoReturn:
        raise NumberUsedError

    __eq__ = __ne__ = __hash__ = __bool__ = __str__ = __repr__ = __format__ = _used


@dataclass(frozen=True)
class EqualLayer:
    """A layer of which others are equal.

    Attributes:
        module: the layer.
        prefix: its name in the model, with a dot behind it.
        number: its place among its siblings.
        kind: what equal layers have in common.
        numbers: the modules inside that have its number, and the attributes.
    """

    module: nn.Module
    prefix: str
    number: int
    kind: str
    numbers: tuple[tuple[nn.Module, str], ...]

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Its weights and buffers, by their names in it."""
        return _tensors(self.module)


def equal_layers(model: nn.Module, names_of_cache: Mapping[int, str]) -> list[EqualLayer]:
    """The layers in the lists of a model that have equals in the same list.

    Args:
        names_of_cache: what a layer of each number has in the cache, in words.
    """
    owners = Counter(id(tensor) for _, tensor in _tensors(model))
    found: list[EqualLayer] = []
    for name, modules in model.named_modules():
        inside = any(f"{name}.".startswith(layer.prefix) for layer in found)
        if not isinstance(modules, nn.ModuleList) or inside:
            continue
        numbers = _numbers(modules)
        layers = [_layer(module, f"{name}.{place}.", place, numbers) for place, module in enumerate(modules)]
        own = [
            EqualLayer(layer.module, layer.prefix, layer.number, kind, layer.numbers)
            for layer in layers
            if layer is not None and all(owners[id(tensor)] == 1 for _, tensor in layer.tensors())
            for kind in [f"{layer.kind}\n{names_of_cache.get(layer.number)}"]
        ]
        kinds = Counter(layer.kind for layer in own)
        found += [layer for layer in own if kinds[layer.kind] > 1]
    return found


@contextlib.contextmanager
def numbered(layers: Sequence[EqualLayer]) -> Iterator[None]:
    """Has layers have a `LayerNumber` meanwhile."""
    places = [(module.__dict__, name, layer.number) for layer in layers for module, name in layer.numbers]
    for attributes, name, number in places:
        attributes[name] = LayerNumber(number)
    try:
        yield
    finally:
        for attributes, name, number in places:
            attributes[name] = number


def _tensors(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _numbers(layers: nn.ModuleList) -> set[tuple[str, str]]:
    """The attributes, by the names of modules inside, that are each layer's place in all layers that have them."""
    values: dict[tuple[str, str], list[bool]] = {}
    for place, layer in enumerate(layers):
        for inner, module in layer.named_modules(remove_duplicate=False):
            for name, value in module.__dict__.items():
                if type(value) is int:
                    values.setdefault((inner, name), []).append(value == place)
    return {where for where, holds in values.items() if all(holds)} if len(layers) > 1 else set()


def _layer(module: nn.Module, prefix: str, number: int, numbers: set[tuple[str, str]]) -> EqualLayer | None:
    """A layer with what is to be said of it but for its number; None if words do not tell it."""
    lines, places = [], []
    for inner, part in module.named_modules(remove_duplicate=False):
        lines.append(f"module {inner}: {type(part).__module__}.{type(part).__qualname__} {part.extra_repr()}")
        try:
            attributes = own_attributes(part, lambda value: f"{by_class(value)} {id(value)}")
        except Untold:
            return None
        for name, value in attributes.items():
            if (inner, name) in numbers:
                places.append((part, name))
            else:
                lines.append(f"  {name} {value}")
    for inner, tensor in _tensors(module):
        kind = f"{type(tensor).__qualname__} {tensor.dtype}{tuple(tensor.shape)}{tensor.stride()}"
        lines.append(f"weight {inner}: {kind} {tensor.requires_grad}")
    return EqualLayer(module, prefix, number, "\n".join(lines), tuple(places))
