"""Nested containers and their leaves, without torch.

A `Tree` is the shape of a nested value: tuples, lists, dicts, named tuples and dataclass-like classes (transformers'
model outputs), with everything else, None included, a leaf. It is made from one of torch's TreeSpecs by the front end,
travels in artifacts as JSON, and takes calls' arguments apart and puts results together at run time.
"""

from __future__ import annotations

import collections
import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pipeline.errors import ArgumentError
from pipeline.runtime.interface.caches import build_cache, cache_parts, describe, part_names

Kind = Literal["leaf", "tuple", "list", "dict", "namedtuple", "structseq", "object", "cache"]


@dataclass(frozen=True)
class Tree:
    """The shape of a nested value.

    Attributes:
        kind: what container; `object` is a class that is built from keyword arguments, like a model output;
            `structseq` a subclass of tuple that is built from a tuple, like torch.return_types' and torch.Size; `cache`
            the keys and the values of each layer of a model, transformers' DynamicCache.
        keys: the keys of a dict (strings, numbers) or the field names of a named tuple or object; of a cache its
            description in `pipeline.runtime.interface.caches`.
        children: one a key, or one an element.
        type_name: `module:qualified.name` of a named tuple's, dict subclass's or object's class.
    """

    kind: Kind
    children: tuple[Tree, ...] = ()
    keys: tuple[Any, ...] = ()
    type_name: str | None = None
    leaves: int = field(init=False, compare=False, default=1)

    def __post_init__(self) -> None:
        if self.kind != "leaf":
            object.__setattr__(self, "leaves", sum(child.leaves for child in self.children))

    def to_json(self) -> Any:
        """The tree as lists and strings."""
        if self.kind == "leaf":
            return "*"
        return [self.kind, list(self.keys), [child.to_json() for child in self.children], self.type_name]

    @staticmethod
    def from_json(data: Any) -> Tree:
        """The inverse of `to_json`."""
        if data == "*":
            return LEAF
        kind, keys, children, type_name = data
        return Tree(kind, tuple(map(Tree.from_json, children)), tuple(keys), type_name)


LEAF = Tree("leaf")


def flatten(tree: Tree, value: Any, path: str = "") -> list[Any]:
    """The leaves of `value` in order; raises `ArgumentError` where its structure is not `tree`'s."""
    leaves: list[Any] = []
    _flatten(tree, value, path, leaves)
    return leaves


def _flatten(tree: Tree, value: Any, path: str, leaves: list[Any]) -> None:
    if tree.kind == "leaf":
        leaves.append(value)
        return
    for name, child, part in zip(_paths(tree, path), tree.children, _parts(tree, value, path), strict=True):
        _flatten(child, part, name, leaves)


def _parts(tree: Tree, value: Any, path: str) -> list[Any]:
    if tree.kind in ("tuple", "list"):
        wanted = tuple if tree.kind == "tuple" else list
        if not isinstance(value, wanted) or len(value) != len(tree.children):
            raise _mismatch(path, f"a {tree.kind} of {len(tree.children)}", value)
        return list(value)
    if tree.kind == "dict":
        if not isinstance(value, dict) or set(value) != set(tree.keys):
            raise _mismatch(path, f"a dict with the keys {list(tree.keys)}", value)
        return [value[key] for key in tree.keys]
    assert tree.type_name is not None
    if tree.kind == "cache":
        return _parts_of_cache(tree, value, path)
    if not all(hasattr(value, str(key)) for key in tree.keys):
        raise _mismatch(path, f"a {_short_name(tree)}", value)
    return [getattr(value, key) for key in tree.keys]


def _parts_of_cache(tree: Tree, value: Any, path: str) -> list[Any]:
    names = part_names(tree.keys)
    if isinstance(value, dict) and set(value) == set(names):
        return [value[part] for part in names]
    layers = getattr(value, "layers", None)
    count = len(tree.children[0].children)
    if layers is None or len(layers) != count:
        raise _mismatch(path, f"a {_short_name(tree)} of {count} layers", value)
    if describe(value) != tree.keys:
        windows = tree.keys[len(names) :] or (None,) * count
        raise _mismatch(path, f"a {_short_name(tree)} whose layers have the windows {windows}", value)
    return cache_parts(value, names)


def _short_name(tree: Tree) -> str:
    return str(tree.type_name).rpartition(":")[2]


def _mismatch(path: str, expected: str, value: Any) -> ArgumentError:
    came = type(value).__name__
    if isinstance(value, dict):
        came = f"a dict with the keys {list(value)}"
    elif isinstance(value, (tuple, list)):
        came = f"a {came} of {len(value)}"
    return ArgumentError(f"argument {path or 'list'}: expected {expected}, got {came}")


def unflatten(tree: Tree, leaves: Iterator[Any]) -> Any:
    """A value of the shape `tree`, its leaves taken from `leaves` in order."""
    if tree.kind == "leaf":
        return next(leaves)
    parts = [unflatten(child, leaves) for child in tree.children]
    if tree.kind == "tuple":
        return tuple(parts)
    if tree.kind == "list":
        return parts
    if tree.kind == "cache":
        cls = _class(tree.type_name)
        if cls is None or any(isinstance(leaf, np.ndarray) for leaf in parts[0]):  # it takes torch's tensors alone
            return dict(zip(part_names(tree.keys), parts, strict=True))
        return build_cache(cls, tree.keys, parts)
    named = dict(zip(tree.keys, parts, strict=True))
    return _build(tree, named)


def _build(tree: Tree, named: dict[Any, Any]) -> Any:
    """Where the class cannot be imported (an artifact on another machine) a named tuple or a dict stands for it."""
    cls = _class(tree.type_name)
    if tree.kind == "dict":
        return named if cls is None else cls(named)
    if tree.kind == "structseq" and cls is not None:
        return cls(tuple(named.values()))
    if tree.kind in ("namedtuple", "structseq"):
        return (cls or _stand_in(_short_name(tree), tree.keys))(**named)
    return named if cls is None else cls(**named)


@functools.cache
def _stand_in(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields)


@functools.cache
def _class(type_name: str | None) -> Any:
    if type_name is None:
        return None
    module, _, qualified = type_name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found


def leaf_paths(tree: Tree, path: str = "") -> list[str]:
    """A readable name for each leaf, e.g. `x`, `batch['ids']`, `states[0]`."""
    if tree.kind == "leaf":
        return [path]
    names = _paths(tree, path)
    return [leaf for name, child in zip(names, tree.children, strict=True) for leaf in leaf_paths(child, name)]


def _paths(tree: Tree, path: str) -> list[str]:
    if tree.kind in ("tuple", "list"):
        return [f"{path}[{index}]" for index in range(len(tree.children))]
    if tree.kind == "dict":
        return [f"{path}[{key!r}]" for key in tree.keys]
    names = part_names(tree.keys) if tree.kind == "cache" else tree.keys
    return [f"{path}.{name}" for name in names]
