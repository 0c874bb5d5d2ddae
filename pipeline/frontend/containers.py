"""Containers among arguments and results: torch's description of them as the runtime's, and those of other libraries.

torch.export has to know how to take the latter apart. Transformers registers its caches for torch.export too, but puts
them together by concatenation: torch records that when it decomposes a program, and fails.
"""

from __future__ import annotations

import collections
import sys
from typing import Any

import torch.utils._pytree as torch_pytree

from pipeline.errors import CaptureError, PipelineError
from pipeline.runtime.pytree import CACHE, LEAF, Tree, build_cache


def register_containers() -> None:
    """Tells torch of transformers' caches of keys and values, if the process has loaded those."""
    module = sys.modules.get("transformers.cache_utils")
    kind = getattr(module, "DynamicCache", None)
    if kind is None or kind in torch_pytree.SUPPORTED_NODES:
        return
    torch_pytree.register_pytree_node(
        kind,
        _parts,
        lambda parts, context: build_cache(kind, *parts),
        serialized_type_name=f"{kind.__module__}.{kind.__name__}",
        flatten_with_keys_fn=lambda cache: (
            [(torch_pytree.MappingKey(key), part) for key, part in zip(CACHE, _parts(cache)[0], strict=True)],
            list(CACHE),
        ),
    )


def _parts(cache: Any) -> tuple[list[Any], list[str]]:
    """The keys and the values of each layer."""
    for layer in cache.layers:
        if type(layer).__name__ != "DynamicLayer":
            raise CaptureError(f"caches with a {type(layer).__name__} are not supported; call it with use_cache=False")
    return [[layer.keys for layer in cache.layers], [layer.values for layer in cache.layers]], list(CACHE)


def _cache_tree(spec: torch_pytree.TreeSpec, class_name: str) -> Tree | None:
    """The Tree of a cache's spec; None if it is none."""
    if spec.context != list(CACHE):
        return None
    keys, _ = spec.children()
    layers = Tree("list", (LEAF,) * keys.num_leaves)
    return Tree("cache", (layers, layers), CACHE, class_name)


def tree_of(spec: torch_pytree.TreeSpec) -> Tree:
    """Torch's TreeSpec as a Tree."""
    if spec.is_leaf():
        return LEAF
    children = tuple(tree_of(child) for child in spec.children())
    kind, keys = spec.type, spec.context
    if kind in (tuple, list):
        return Tree("tuple" if kind is tuple else "list", children)
    if kind is dict:
        return Tree("dict", children, tuple(keys))
    if kind is collections.namedtuple:
        return Tree("namedtuple", children, tuple(keys._fields), _class_name(keys))
    name = _class_name(kind)
    if kind.__module__ == "torch.return_types":
        return Tree("structseq", children, tuple(kind.__match_args__), name)
    if kind is collections.OrderedDict:
        return Tree("dict", children, tuple(keys), name)
    cache = _cache_tree(spec, name)
    if cache is not None:
        return cache
    if isinstance(keys, (list, tuple)) and len(keys) == len(children) and all(isinstance(key, str) for key in keys):
        return Tree("object", children, tuple(keys), name)
    raise PipelineError(
        f"{name}: this container class is not supported among arguments and results, use a dict or tuple"
    )


def _class_name(kind: type) -> str:
    """`module:qualified.name`, by which the runtime finds a class."""
    return f"{kind.__module__}:{kind.__qualname__}"
