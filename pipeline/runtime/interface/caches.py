"""transformers' DynamicCache of keys and values: taken apart, and put together again around the same tensors.

A cache is described by the names of its parts, each a list with one element a layer. Where layers have a sliding window
these keep the last keys and values alone: how many there have been is a part of its own, and the windows, None for a
layer without, follow the names.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

#: The parts of any cache.
CACHE = ("key_cache", "value_cache")

#: The parts of a cache of which some layers have a sliding window.
WINDOWED_CACHE = (*CACHE, "cumulative_lengths")

_ATTRIBUTES = dict(zip(WINDOWED_CACHE, ("keys", "values", "cumulative_length"), strict=True))

#: Layers that a description and its parts say everything about.
_KNOWN = ("DynamicLayer", "DynamicSlidingWindowLayer")

Description = Sequence[str | int | None]


def is_known(cache: Any) -> bool:
    """Whether all layers of a cache can be put together from its parts."""
    return all(type(layer).__name__ in _KNOWN for layer in cache.layers)


def describe(cache: Any) -> tuple[str | int | None, ...]:
    """The names of a cache's parts, and the windows of its layers if there are any."""
    windows = [getattr(layer, "sliding_window", None) for layer in cache.layers]
    return (*WINDOWED_CACHE, *windows) if any(windows) else CACHE


def part_names(description: Description) -> tuple[str, ...]:
    """The names of the parts alone."""
    return tuple(name for name in description if isinstance(name, str))


def cache_parts(cache: Any, names: Sequence[str]) -> list[list[Any]]:
    """The parts of a cache by their names."""
    return [[getattr(layer, _ATTRIBUTES[name], None) for layer in cache.layers] for name in names]


def build_cache(cls: Any, description: Description, parts: Sequence[Sequence[Any]]) -> Any:
    """A cache of the class with these parts. Its own constructor would copy the tensors."""
    cache, module = cls(), sys.modules[cls.__module__]
    windows = description[len(parts) :] or [None] * len(parts[0])
    for window, key, value, *length in zip(windows, *parts, strict=True):
        layer = module.DynamicLayer() if window is None else module.DynamicSlidingWindowLayer(window)
        layer.keys, layer.values, layer.is_initialized = key, value, key is not None
        layer.dtype, layer.device = getattr(key, "dtype", None), getattr(key, "device", None)
        if window is not None:
            (layer.cumulative_length,) = length
        cache.layers.append(layer)
    return cache
