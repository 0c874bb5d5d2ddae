"""Containers among arguments and results: torch's description of them as the runtime's, and those of other libraries.

torch.export has to know how to take the latter apart. Transformers registers its caches for torch.export too, but puts
them together by concatenation: torch records that when it decomposes a program, and fails.
"""

from __future__ import annotations

import collections
import sys
from typing import Any

import torch
import torch.utils._pytree as torch_pytree

from pipeline.errors import PipelineError
from pipeline.runtime.interface.caches import CACHE, build_cache, cache_parts, describe, is_known, part_names
from pipeline.runtime.interface.pytree import LEAF, Tree

#: The context of a cache of other layers than those whose parts are known.
_LAYERS = ["layers"]


def register_containers() -> None:
    """Tells torch of transformers' caches of keys and values, if the process has loaded those."""
    module = sys.modules.get("transformers.cache_utils")
    kind = getattr(module, "DynamicCache", None)
    if kind is None or kind in torch_pytree.SUPPORTED_NODES:
        return
    torch_pytree.register_pytree_node(
        kind,
        _parts,
        lambda parts, context: _with_layers(kind, parts) if context == _LAYERS else build_cache(kind, context, parts),
        serialized_type_name=f"{kind.__module__}.{kind.__name__}",
        flatten_with_keys_fn=_parts_with_keys,
    )


def _parts(cache: Any) -> tuple[list[Any], list[Any]]:
    """The parts of a cache and its description; its layers where parts would not say everything about them."""
    if not is_known(cache):
        return list(cache.layers), _LAYERS
    description = describe(cache)
    return list(cache_parts(cache, part_names(description))), list(description)


def _parts_with_keys(cache: Any) -> tuple[list[tuple[Any, Any]], list[Any]]:
    parts, context = _parts(cache)
    names = range(len(parts)) if context == _LAYERS else part_names(context)
    return [(torch_pytree.MappingKey(name), part) for name, part in zip(names, parts, strict=True)], context


def _with_layers(kind: Any, layers: list[Any]) -> Any:
    cache = kind()
    cache.layers.extend(layers)
    return cache


def _cache_tree(spec: torch_pytree.TreeSpec, class_name: str) -> Tree | None:
    """The Tree of a cache's spec; None if it is none."""
    if not isinstance(spec.context, list) or tuple(spec.context[: len(CACHE)]) != CACHE:
        return None
    parts = tuple(Tree("list", (LEAF,) * child.num_leaves) for child in spec.children())
    return Tree("cache", parts, tuple(spec.context), class_name)


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
    if kind is torch.Size:
        return Tree("structseq", children, tuple(map(str, range(len(children)))), name)
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
