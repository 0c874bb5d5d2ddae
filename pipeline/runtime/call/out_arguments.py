"""`out=`: the caller's tensors that take the results of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.errors import ArgumentError
from pipeline.runtime.call.arguments import Arguments, check_tensor, check_writable, take_over
from pipeline.runtime.call.array_libraries import Extent, copy, extent, library_of, overlap, permuted
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.interface.pytree import flatten, leaf_paths
from pipeline.runtime.interface.signature import Result, Signature, TensorType


class Destinations:
    """The leaves of `out` for one call, checked.

    Leaves for what is no tensor (None, constants) are left as they are. Those for results whose dims lie in memory in
    another order are seen in that order.
    """

    def __init__(self, signature: Signature, out: Any):
        self.out = out
        names = leaf_paths(signature.result_tree, "out")
        self._taken: list[tuple[str, Result, Any]] = []
        for name, result, leaf in zip(
            names, signature.results, flatten(signature.result_tree, out, "out"), strict=True
        ):
            wanted = _wanted(signature, result)
            if wanted is not None:
                leaf = take_over(name, leaf)
                check_tensor(name, wanted, leaf)
                check_writable(name, leaf)
                self._taken.append((name, result, _in_memory(result, leaf)))
            elif result.kind in ("computed", "number"):
                raise ArgumentError(f"argument {name}: the model returns a number there, which no tensor can take")
        self._check_overlap()

    def _check_overlap(self) -> None:
        extents = [(result.index, extent(name, leaf)) for name, result, leaf in self._taken]
        for number, (index, one) in enumerate(extents):
            for other_index, other in extents[:number]:
                if index != other_index and overlap(one, other):
                    raise ArgumentError(f"argument {one[0]}: shares memory with {other[0]}, which takes another result")

    def written_by_code(self, call: Arguments, weights: Sequence[Extent]) -> dict[int, Any]:
        """The tensors that the code can write directly, by the number of its result.

        They are row-major, of the call's library, and nothing that the code reads lies in them: neither an argument nor
        a weight.
        """
        read = [*weights, *(extent("", value) for value in call.values if library_of(value) is not None)]
        places: dict[int, Any] = {}
        for name, result, leaf in self._taken:
            if result.kind == "computed" and _is_plain(leaf, call.library):
                place = extent(name, leaf)
                if not any(overlap(place, other) for other in read):
                    places.setdefault(result.index, leaf)
        return places

    def fill(self, computed: Mapping[int, Any], leaves: Sequence[Any]) -> None:
        """Copies what the code did not write itself; `leaves` are the call's."""
        for name, result, leaf in self._taken:
            source = computed[result.index] if result.kind == "computed" else leaves[result.index]
            if source is leaf:
                continue
            if tuple(leaf.shape) != tuple(source.shape):
                given, made = (_returned(result, tuple(one.shape)) for one in (leaf, source))
                raise ArgumentError(f"argument {name}: has shape {given}, the result {made}")
            copy(leaf, source)


def _in_memory(result: Result, leaf: Any) -> Any:
    """The caller's tensor with its dims as those of the result lie in memory."""
    if result.permutation is None:
        return leaf
    return permuted(leaf, [result.permutation.index(dim) for dim in range(len(result.permutation))])


def _returned(result: Result, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape in memory as the caller sees it."""
    return shape if result.permutation is None else tuple(shape[dim] for dim in result.permutation)


def _wanted(signature: Signature, result: Result) -> TensorType | None:
    if result.kind == "argument":
        return signature.arguments[result.index].type
    return None if result.kind == "number" else result.type


def _is_plain(leaf: Any, library: ArrayLibrary) -> bool:
    return library_of(leaf) is library and library.is_row_major(leaf)
