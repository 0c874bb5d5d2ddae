"""Which values of a graph are plain, tensors, numbers and symbols; and keys that say all about their types."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

_SYMBOLS = (torch.SymInt, torch.SymBool)


class NotPlainError(Exception):
    """A program is not one to be taken apart op by op."""


def has_plain_value(node: fx.Node, symbolic: bool) -> bool:
    """Whether all that is known about a node's value are numbers; with `symbolic`, or symbols."""
    return all(_is_plain_value(value, symbolic) for value in pytree.tree_leaves(node.meta["val"]))


def _is_plain_value(value: Any, symbolic: bool) -> bool:
    numbers = (int, torch.SymInt) if symbolic else int
    if not isinstance(value, torch.Tensor):
        return (
            value is None or isinstance(value, (int, float, complex, str)) or symbolic and isinstance(value, _SYMBOLS)
        )
    if value.layout != torch.strided or value.is_conj() or value.is_neg():
        return False
    return all(isinstance(number, numbers) for number in (*value.shape, *value.stride(), value.storage_offset()))


def is_symbolic(node: fx.Node) -> bool:
    """Whether a node's value is a symbolic size, or has one."""
    return any(not _is_plain_value(value, False) for value in pytree.tree_leaves(node.meta["val"]))


def tensors_of(node: fx.Node) -> list[Any]:
    """The values of the nodes among a node's arguments."""
    return [leaf.meta["val"] for leaf in pytree.tree_leaves((node.args, node.kwargs)) if isinstance(leaf, fx.Node)]


def type_key(value: Any) -> Any:
    """`tensor_key` of each leaf of a value."""
    return tuple(map(tensor_key, pytree.tree_leaves(value)))


def tensor_key(value: Any) -> Any:
    """What two values have in common where ops do the same with both, as far as types go; numbers are themselves."""
    if not isinstance(value, torch.Tensor):
        return type(value), _known(value)
    kind = (value.dtype, value.device, value.layout, value.requires_grad)
    sizes, strides = tuple(map(_known, value.shape)), tuple(map(_known, value.stride()))
    return sizes, strides, _known(value.storage_offset()), *kind


def _known(value: Any) -> Any:
    """A number, or what a symbolic one is computed as, which can be compared without a guard."""
    return value.node.expr if isinstance(value, _SYMBOLS) else value


def leaf_key(leaf: Any) -> Any:
    """`tensor_key` of a node's value; of another argument what it is. Raises `NotPlainError` for one without a hash."""
    if isinstance(leaf, fx.Node):
        return tensor_key(leaf.meta["val"])
    try:
        hash(leaf)
    except TypeError:
        raise NotPlainError from None
    return type(leaf), repr(leaf) if isinstance(leaf, float) else leaf
