"""From a call's arguments to checked tensors and numbers, one a leaf, with errors that name the argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.errors import ArgumentError
from pipeline.runtime.call.array_libraries import Extent, extent, library_of, overlap, shared
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.call.symbolic_sizes import evaluate, names, solve
from pipeline.runtime.interface.pytree import flatten
from pipeline.runtime.interface.signature import Argument, Signature, TensorType


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call.

    Attributes:
        leaves: what the caller passed; a tensor of another library as one of torch or NumPy over its memory.
        values: what the code takes for each leaf: a row-major tensor, a number, or None for a constant.
        library: what the results are made with: the library of the first tensor.
    """

    leaves: list[Any]
    values: list[Any]
    library: ArrayLibrary


class ArgumentReader:
    """Reads calls' arguments against a signature."""

    def __init__(self, signature: Signature, device: str = "cpu"):
        """Tensors on the CPU are taken, and on `device`."""
        self._signature = signature
        self._device = device
        self._positional, self._keywords = signature.argument_tree.children
        self._flat = not self._keywords.keys and all(child.kind == "leaf" for child in self._positional.children)
        self._constants = {
            argument.name: argument.value for argument in signature.arguments if argument.kind == "constant"
        }
        self._mutates = any(a.mutated for a in signature.arguments) or any(w.mutated for w in signature.weights)
        self._mutated_weights = {f"weight {weight.name}" for weight in signature.weights if weight.mutated}
        self._symbolic = bool(signature.ranges) or any(
            isinstance(size, str) for a in signature.arguments if a.type for size in a.type.shape
        )

    def read(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], library: ArrayLibrary, weights: Sequence[Extent]
    ) -> Arguments:
        """Checks and converts; `library` is what results are made with if no argument is a tensor."""
        leaves = self._leaves(args, kwargs)
        values: list[Any] = []
        first: ArrayLibrary | None = None
        for number, argument in enumerate(self._signature.arguments):
            leaf = leaves[number]
            if argument.kind == "tensor":
                leaf = leaves[number] = take_over(argument.name, leaf)
                owner = _check_argument(argument, leaf, self._device)
                first = first or owner
                values.append(owner.contiguous(leaf))
            elif argument.kind == "int":
                values.append(_check_int(argument, leaf))
            else:
                _check_constant(argument, leaf)
                values.append(None)
        if self._symbolic:
            self._check_symbols(leaves)
        if self._mutates:
            self._check_overlap(leaves, weights)
        return Arguments(leaves, values, first or library)

    def _leaves(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        positional, keywords = self._positional.children, self._keywords.keys
        if len(args) != len(positional) or kwargs.keys() != set(keywords):
            args, kwargs = self._rebind(args, kwargs)
        if self._flat:
            return list(args)
        leaves: list[Any] = []
        names = [*self._names(), *keywords]
        trees = [*positional, *self._keywords.children]
        for name, tree, value in zip(names, trees, [*args, *(kwargs[key] for key in keywords)], strict=True):
            leaves += flatten(tree, value, str(name))
        return leaves

    def _names(self) -> list[str]:
        known = self._signature.parameters
        return [known[i] if i < len(known) else f"args[{i}]" for i in range(len(self._positional.children))]

    def _rebind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by position that were compiled by keyword and the other way round; defaults left out or given.

        Constants that the model was compiled with are the defaults of calls.
        """
        names = self._signature.parameters
        expected = [*self._names(), *map(str, self._keywords.keys)]
        if len(args) > len(names) and len(args) > len(self._positional.children):
            raise ArgumentError(f"expected {len(expected)} arguments ({', '.join(expected)}), got {len(args)}")
        given = dict(zip(self._names() if len(args) > len(names) else names, args, strict=False))
        for name, value in kwargs.items():
            if name in given:
                raise ArgumentError(f"argument {name}: given twice")
            given[name] = value
        for name, default in self._signature.defaults:
            if name not in expected and name in given and _same(given[name], default):
                del given[name]
        for name in expected:
            if name in self._constants:
                given.setdefault(name, self._constants[name])
            if name not in given:
                raise ArgumentError(f"argument {name}: missing; expected {', '.join(expected)}")
        for name in given:
            if name not in expected:
                raise ArgumentError(f"argument {name}: was not given when the model was compiled; compile with it")
        return tuple(given[name] for name in self._names()), {key: given[key] for key in self._keywords.keys}

    def _check_symbols(self, leaves: list[Any]) -> None:
        """Sizes that share a symbol agree, and lie in the symbol's range."""
        known: dict[str, int] = {}
        first: dict[str, str] = {}
        composed: list[tuple[str, int, str]] = []
        for argument, leaf in zip(self._signature.arguments, leaves, strict=True):
            for what, size, wanted in _sizes(argument, leaf):
                if not wanted.isidentifier():
                    composed.append((what, size, wanted))
                elif known.setdefault(wanted, size) != size:
                    raise ArgumentError(f"{what} is {size}, expected {known[wanted]} as in {first[wanted]}")
                first.setdefault(wanted, what)
        for what, size, wanted in composed:
            solved = solve(wanted, size, known)
            if solved is not None:
                known[solved[0]] = solved[1]
                first[solved[0]] = f"{solved[0]} of {what}"
        for symbol, low, high in self._signature.ranges:
            if symbol in known and not low <= known[symbol] <= high:
                raise ArgumentError(f"{first[symbol]} is {known[symbol]}, expected {low} to {high}")
        for what, size, wanted in composed:
            _check_composed(what, size, wanted, known)
        for guard in self._signature.guards:
            if not _holds(guard.condition, known):
                sizes = ", ".join(f"{what} is {known[symbol]}" for symbol, what in first.items() if symbol in known)
                raise ArgumentError(
                    f"{sizes}: not what {guard.line} was captured for, {guard.condition}; compile it for such sizes"
                )

    def _check_overlap(self, leaves: list[Any], weights: Sequence[Extent]) -> None:
        """What the model mutates may share memory with nothing else: the model was compiled as if it did not."""
        tensors = [
            (argument, extent(f"argument {argument.name}", leaf))
            for argument, leaf in zip(self._signature.arguments, leaves, strict=True)
            if argument.kind == "tensor"
        ]
        places = [(one[1], one[2], True, argument.mutated) for argument, one in tensors]
        places += [(one[1], one[2], False, one[0] in self._mutated_weights) for one in weights]
        if is_shared(places):
            self._refuse_overlap(tensors, weights)

    def _refuse_overlap(self, tensors: list[tuple[Argument, Extent]], weights: Sequence[Extent]) -> None:
        """Says which tensors share memory."""
        for argument, one in tensors:
            for other in (*(place for _, place in tensors), *weights):
                if other is one or not overlap(one, other):
                    continue
                if argument.mutated:
                    raise ArgumentError(
                        f"{one[0]}: is written to and shares memory with {other[0]}; pass a copy of one of them"
                    )
                if other[0] in self._mutated_weights:
                    raise ArgumentError(f"{one[0]}: shares memory with {other[0]}, which is written to; pass a copy")


#: Where a tensor's bytes begin and end, whether it is an argument, and whether it is written to.
_Place = tuple[int, int, bool, bool]


def is_shared(places: list[_Place]) -> bool:
    """Whether two places overlap, one of them an argument and one written to.

    By their order in memory: an optimizer's step has thousands of places, and all pairs of them would take longer than
    its code.
    """
    reach: dict[tuple[bool, bool], int] = {}  # how far the places before go, by whether they are arguments and written
    for begin, end, is_argument, is_written in sorted(places):
        if begin == end:
            continue
        for (argument_before, written_before), furthest in reach.items():
            if furthest > begin and (is_argument or argument_before) and (is_written or written_before):
                return True
        kind = (is_argument, is_written)
        reach[kind] = max(end, reach.get(kind, 0))
    return False


def _holds(condition: str, known: Mapping[str, int]) -> bool:
    try:
        return bool(evaluate(condition, known))
    except ArithmeticError:  # the model's Python would not get here
        return False


def _check_argument(argument: Argument, leaf: Any, device: str) -> ArrayLibrary:
    assert argument.type is not None
    owner = check_tensor(argument.name, argument.type, leaf, device)
    if argument.mutated:
        check_writable(argument.name, leaf)
    return owner


def take_over(name: str, leaf: Any) -> Any:
    """A leaf as a tensor of torch or NumPy over the same memory; raises `ArgumentError` if that cannot be."""
    try:
        return shared(leaf)
    except BufferError as error:
        raise ArgumentError(f"argument {name}: {error}") from error


def check_tensor(name: str, wanted: TensorType, leaf: Any, device: str = "cpu") -> ArrayLibrary:
    """The library of a leaf; raises `ArgumentError` if the leaf is no tensor of that type that code can read."""
    owner = library_of(leaf)
    if owner is None:
        raise ArgumentError(f"argument {name}: expected a tensor {wanted}, got {type(leaf).__name__}")
    place = owner.device(leaf)
    if place != "cpu" and place.partition(":")[0] != device:
        raise ArgumentError(f"argument {name}: expected a dense tensor on {device}, got {place}")
    shape = owner.shape(leaf)
    if owner.dtype(leaf) != wanted.dtype or not _fits(shape, wanted.shape):
        raise ArgumentError(f"argument {name}: expected {wanted}, got {TensorType(owner.dtype(leaf), shape)}")
    return owner


def check_writable(name: str, leaf: Any) -> None:
    """Raises `ArgumentError` if nothing can be written to the tensor."""
    owner = library_of(leaf)
    obstacle = owner.obstacle(leaf) if owner is not None else None
    if obstacle:
        raise ArgumentError(f"argument {name}: is written to, but {obstacle}; pass a copy")


def _fits(shape: tuple[int, ...], wanted: tuple[int | str, ...]) -> bool:
    return shape == wanted or (
        len(shape) == len(wanted)
        and all(isinstance(want, str) or size == want for size, want in zip(shape, wanted, strict=True))
    )


def _check_int(argument: Argument, leaf: Any) -> int:
    if isinstance(leaf, bool) or not isinstance(leaf, int):
        raise ArgumentError(f"argument {argument.name}: expected an int, got {type(leaf).__name__}")
    if not -(2**63) <= leaf < 2**63:
        raise ArgumentError(f"argument {argument.name}: {leaf} does not fit 64 bits")
    return leaf


def _check_composed(what: str, size: int, wanted: str, known: dict[str, int]) -> None:
    """A size that is an expression in symbols has its value; one that no symbols give is of no other form of them."""
    if names(wanted) <= known.keys():
        if evaluate(wanted, known) != size:
            raise ArgumentError(f"{what} is {size}, expected {wanted} = {evaluate(wanted, known)}")
        return
    raise ArgumentError(
        f"{what} is {size}, expected {wanted} for a whole number {', '.join(names(wanted) - known.keys())}"
    )


def _check_constant(argument: Argument, leaf: Any) -> None:
    wanted = argument.value
    if not _same(leaf, wanted):
        message = f"argument {argument.name}: the model was compiled for {wanted!r}, got {_brief(leaf)}"
        raise ArgumentError(f"{message}; compile it again for that")


def _same(leaf: Any, constant: Any) -> bool:
    return type(leaf) is type(constant) and leaf == constant


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"


def _sizes(argument: Argument, leaf: Any) -> list[tuple[str, int, str]]:
    """(what, size, expression) for every size of the argument that is not known in advance."""
    if argument.kind == "int":
        return [(f"argument {argument.name}", leaf, argument.value)]
    if argument.type is None:
        return []
    return [
        (f"argument {argument.name}: dimension {dim}", int(leaf.shape[dim]), wanted)
        for dim, wanted in enumerate(argument.type.shape)
        if isinstance(wanted, str)
    ]
