"""Values of a script as flat lists of tensors and integers, which is what the graphs of cond and while_loop take."""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as torch_pytree

from pipeline.errors import CaptureError
from pipeline.frontend.torchscript.python_ops import TensorBool, as_tensor

#: A value that TorchScript's own rewrites made up, and that is never used.
UNINITIALIZED = type("Uninitialized", (), {"__repr__": lambda self: "a variable that is not set"})()


def tuple_of(node: Any, values: Sequence[Any]) -> tuple[Any, ...]:
    """What a prim::TupleConstruct makes: a tuple, or a named one where its type has names."""
    kind = node.output().type()
    fields = _FIELDS.search(str(node)) if str(kind).startswith("__torch__.") else None
    if fields is None:
        return tuple(values)
    names = _names_of_fields(fields[1])
    return named_tuple(str(kind).rpartition(".")[2], tuple(names))(*values)


#: What follows the name of a value in a graph's text: `%6 : NamedTuple(a : Tensor, b : (Tensor, int)) = ..`.
_FIELDS = re.compile(r": NamedTuple\((.*)\) = prim::TupleConstruct")


def _names_of_fields(fields: str) -> list[str]:
    """The names before the colons that lie in no bracket."""
    while (without := re.sub(r"[(\[][^()\[\]]*[)\]]", "", fields)) != fields:
        fields = without
    return [field.partition(":")[0].strip() for field in fields.split(",")]


@functools.cache
def named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    """The class of named tuples of a script, which knows its name and its fields alone."""
    return collections.namedtuple(name, fields)


@dataclass(frozen=True)
class Leaf:
    """What a leaf is: `tensor`, `bool`, `int`, `float` or `constant`, with an example of it."""

    kind: str
    example: Any

    @staticmethod
    def of(value: Any) -> Leaf:
        """The leaf of a value, where what is known is a constant."""
        if isinstance(value, torch.Tensor):
            return Leaf("tensor", value)
        symbolic = {torch.SymInt: "int", torch.SymFloat: "float", torch.SymBool: "bool", TensorBool: "bool"}
        return Leaf(symbolic.get(type(value), "constant"), value)

    def common(self, other: Leaf) -> Leaf:
        """What both are."""
        if self.example is UNINITIALIZED or other.example is UNINITIALIZED:
            return self if other.example is UNINITIALIZED else other
        if self.kind == other.kind == "tensor":
            _check_same(self.example, other.example)
            return self
        if self.kind == other.kind == "constant" and _same(self.example, other.example):
            return self
        kinds = {leaf.scalar_kind() for leaf in (self, other)}
        if len(kinds) != 1 or None in kinds:
            raise CaptureError(f"a variable is {self} on one way and {other} on another, depending on tensors")
        return Leaf(str(kinds.pop()), self.example)

    def scalar_kind(self) -> str | None:
        """`bool`, `int` or `float` for what can be a number known only as the program runs."""
        if self.kind != "constant":
            return None if self.kind == "tensor" else self.kind
        names = {bool: "bool", int: "int", float: "float"}
        return names.get(type(self.example))

    def packed(self, value: Any, with_integers: bool) -> Any:
        """The value as a tensor, or an integer if these may stay."""
        if value is UNINITIALIZED:
            value = torch.zeros(self.example.shape, dtype=self.example.dtype) if self.kind == "tensor" else 0
        if self.kind == "int" and not with_integers:
            return torch.scalar_tensor(value, dtype=torch.int64)
        if self.kind == "bool":
            return as_tensor(value)
        return torch.scalar_tensor(value, dtype=torch.float64) if self.kind == "float" else value

    def unpacked(self, value: Any) -> Any:
        """The inverse of `packed`."""
        if self.kind == "bool":
            return TensorBool(value)
        is_number = self.kind in ("int", "float") and isinstance(value, torch.Tensor)
        return value.item() if is_number else value

    def trial(self) -> Any:
        """An example of the value of which nothing is known but what it is."""
        if self.kind == "tensor":
            return self.example.detach().clone()
        if self.kind == "constant":
            return self.example
        dtype = {"bool": torch.bool, "int": torch.int64, "float": torch.float64}[self.kind]
        anything = torch.empty((), dtype=dtype)
        return TensorBool(anything) if self.kind == "bool" else anything.item()

    def __str__(self) -> str:
        if self.kind != "tensor":
            return repr(self.example) if self.kind == "constant" else self.kind
        return f"{str(self.example.dtype).removeprefix('torch.')}{list(self.example.shape)}"


@dataclass(frozen=True)
class FlatLayout:
    """How a list of values becomes a flat list of tensors and integers."""

    spec: torch_pytree.TreeSpec
    leaves: tuple[Leaf, ...]

    @staticmethod
    def of(values: Sequence[Any]) -> FlatLayout:
        """The layout of values, where what is known is a constant."""
        leaves, spec = torch_pytree.tree_flatten(list(values))
        return FlatLayout(spec, tuple(map(Leaf.of, leaves)))

    @staticmethod
    def common(one: Sequence[Any], other: Sequence[Any]) -> FlatLayout:
        """The layout of two lists of values that stand for the same."""
        pairs = [
            (b if a is UNINITIALIZED else a, a if b is UNINITIALIZED else b) for a, b in zip(one, other, strict=True)
        ]
        first, second = (FlatLayout.of([pair[side] for pair in pairs]) for side in (0, 1))
        if first.spec != second.spec:
            raise CaptureError("a variable is a list or tuple of different lengths on two ways that depend on tensors")
        leaves = (a.common(b) for a, b in zip(first.leaves, second.leaves, strict=True))
        return FlatLayout(first.spec, tuple(leaves))

    def pack(self, values: Sequence[Any], with_integers: bool = True) -> list[Any]:
        """The tensors of values of this layout, and the integers, which are tensors too unless `with_integers`."""
        flat: list[Any] = []
        for place, value in enumerate(values):
            spec = self.spec.child(place)
            flat += [UNINITIALIZED] * spec.num_leaves if value is UNINITIALIZED else torch_pytree.tree_leaves(value)
        return [
            leaf.packed(value, with_integers)
            for leaf, value in zip(self.leaves, flat, strict=True)
            if leaf.kind != "constant"
        ]

    def unpack(self, packed: Sequence[Any]) -> list[Any]:
        """The inverse of `pack`."""
        given = iter(packed)
        leaves = [leaf.example if leaf.kind == "constant" else leaf.unpacked(next(given)) for leaf in self.leaves]
        return torch_pytree.tree_unflatten(leaves, self.spec)

    def trial(self) -> list[Any]:
        """Examples of the values."""
        return torch_pytree.tree_unflatten([leaf.trial() for leaf in self.leaves], self.spec)


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and one == other)


def _check_same(one: torch.Tensor, other: torch.Tensor) -> None:
    sizes = zip(one.shape, other.shape, strict=False)
    fits = all(a == b for a, b in sizes if isinstance(a, int) and isinstance(b, int))
    if one.dtype != other.dtype or one.dim() != other.dim() or not fits:
        kinds = " and ".join(str(Leaf("tensor", value)) for value in (one, other))
        raise CaptureError(f"a variable is a tensor of two kinds on two ways that depend on tensors: {kinds}")
