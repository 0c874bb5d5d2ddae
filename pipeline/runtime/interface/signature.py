"""What a program takes and gives back, as data: the contract between front end, compiler and runtime.

A `Signature` speaks of the user's side: the arguments of a call and its results, as pytrees of leaves. What `@main`
takes is a list of `ParameterSource`s: each is an input, a weight, or something that `@prepare` computed from the
weights.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipeline.runtime.interface.pytree import Tree

#: The element types of tensors, by the names used in messages, with their width in bytes.
DTYPE_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}

#: Of those, floats that code sees as bytes.
BYTES = ("float8_e4m3fn", "float8_e5m2")

#: What code sees of complex tensors: tensors of the other dtype with one more dimension, of size 2.
PAIRS_OF = {"complex64": "float32", "complex128": "float64"}


@dataclass(frozen=True)
class TensorType:
    """A tensor's element type and shape; a dimension is a size, or an expression in symbols, e.g. `s0` or `2*s0`."""

    dtype: str
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Argument:
    """A leaf of a call's arguments.

    Attributes:
        name: its path, e.g. `x` or `batch['ids']`.
        kind: `tensor`; `int`, a number that the program takes at run time, called by `symbol` in shapes; `constant`, a
            Python value or None that was compiled in and must come again.
        type: of a tensor.
        value: of a constant (bool, int, float, str or None), or the symbol of an `int`.
        mutated: the program writes to it.
    """

    name: str
    kind: Literal["tensor", "int", "constant"]
    type: TensorType | None = None
    value: Any = None
    mutated: bool = False


@dataclass(frozen=True)
class Weight:
    """A tensor that belongs to the model: a parameter, a buffer or a constant, called by its name in the model."""

    name: str
    type: TensorType
    mutated: bool = False


@dataclass(frozen=True)
class Result:
    """A leaf of what a call returns.

    Attributes:
        kind: `computed`, result number `index` of `@main`; `number`, the one element of that result, as a number of
            Python; `argument`, the caller's own tensor number `index`, returned as it is (after mutation); `constant`,
            `value`.
        type: of a computed tensor; None for a computed int.
        permutation: of a computed tensor whose dims lie in memory in another order, as eager's transposed views do:
            it is `computed.permute(permutation)`.
    """

    kind: Literal["computed", "number", "argument", "constant"]
    index: int = 0
    type: TensorType | None = None
    value: Any = None
    permutation: tuple[int, ...] | None = None

    @property
    def type_in_memory(self) -> TensorType | None:
        """The type of what is computed."""
        if self.type is None or self.permutation is None:
            return self.type
        sizes = dict(zip(self.permutation, self.type.shape, strict=True))
        return TensorType(self.type.dtype, tuple(sizes[dim] for dim in range(len(sizes))))


@dataclass(frozen=True)
class Mutation:
    """Result number `result` of `@main` is written to an argument or a weight after the call."""

    result: int
    argument: int | None = None
    weight: str | None = None


@dataclass(frozen=True)
class Guard:
    """A condition on sizes, in symbols, under which the model does what was compiled; its `line` asked for that."""

    condition: str
    line: str


@dataclass(frozen=True)
class Signature:
    """The contract of a compiled model; see the module's docstring.

    Attributes:
        arguments: the leaves of `(args, kwargs)`, in order.
        argument_tree: the pytree of `(args, kwargs)`.
        parameters: the names of the forward method's positional parameters, as far as known.
        defaults: (name, value) of those of its parameters that have a default that is None or a plain value.
        results, result_tree: likewise for what is returned.
        weights: every parameter, buffer and constant that `@main` or `@prepare` reads or writes.
        mutations: what is written after a call.
        ranges: for each symbol of the shapes the least and the greatest size that it may take.
        guards: what else the sizes of a call have to fulfil.
    """

    arguments: tuple[Argument, ...]
    argument_tree: Tree
    parameters: tuple[str, ...]
    results: tuple[Result, ...]
    result_tree: Tree
    weights: tuple[Weight, ...] = ()
    mutations: tuple[Mutation, ...] = ()
    ranges: tuple[tuple[str, int, int], ...] = ()
    defaults: tuple[tuple[str, Any], ...] = ()
    guards: tuple[Guard, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The signature as JSON values."""
        data = asdict(self)
        data["argument_tree"] = self.argument_tree.to_json()
        data["result_tree"] = self.result_tree.to_json()
        return data

    @staticmethod
    def from_json(data: dict[str, Any]) -> Signature:
        """The inverse of `to_json`."""
        return Signature(
            arguments=tuple(Argument(**{**a, "type": _type(a["type"])}) for a in data["arguments"]),
            argument_tree=Tree.from_json(data["argument_tree"]),
            parameters=tuple(data["parameters"]),
            results=tuple(map(_result, data["results"])),
            result_tree=Tree.from_json(data["result_tree"]),
            weights=tuple(Weight(w["name"], _known_type(w["type"]), w["mutated"]) for w in data["weights"]),
            mutations=tuple(Mutation(**m) for m in data["mutations"]),
            ranges=tuple((name, low, high) for name, low, high in data["ranges"]),
            defaults=tuple((name, value) for name, value in data["defaults"]),
            guards=tuple(Guard(**guard) for guard in data["guards"]),
        )


def _result(data: dict[str, Any]) -> Result:
    permutation = data["permutation"]
    order = None if permutation is None else tuple(permutation)
    return Result(**{**data, "type": _type(data["type"]), "permutation": order})


def _type(data: dict[str, Any] | None) -> TensorType | None:
    return None if data is None else _known_type(data)


def _known_type(data: dict[str, Any]) -> TensorType:
    return TensorType(data["dtype"], tuple(data["shape"]))


@dataclass(frozen=True)
class ParameterSource:
    """Where a parameter of `@main` or `@prepare` comes from.

    Attributes:
        kind: `argument` (a leaf of the call, by number), `weight` (by name), `prepared` (result number of `@prepare`),
            `status` (where a failed check leaves its number), `workspace` (where temporaries lie), `profile`
            (where times are recorded), `seed` (64 bits that the call's random numbers are a function of).
    """

    kind: Literal["argument", "weight", "prepared", "status", "workspace", "profile", "seed"]
    index: int = 0
    name: str = ""
