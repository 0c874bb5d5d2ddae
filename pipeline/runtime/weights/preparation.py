"""What @prepare has computed from weights, each tensor once for all executables of the same weights.

Two executables have a tensor in common where all that computes it is the same (`PreparedRecipe`), and the weights
behind it are the same tensors with the same values.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline import locks
from pipeline.runtime.call.array_libraries import library_of, pointer
from pipeline.runtime.interface.code import PreparedRecipe
from pipeline.runtime.interface.recycled_memory import Lease

if TYPE_CHECKING:
    from pipeline.runtime.executable import Executable

#: What a recipe makes of weights as they are now: its digest, and where each weight lies and its number of writes.
Key = tuple[str, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, eq=False)
class PreparedTensor:
    """A result of @prepare in memory, which lives as long as this.

    Attributes:
        memory: what it lies in, with others that were computed at the same time.
        sources: keep the weights' own memory from becoming that of other weights, whose key would be this one's.
    """

    address: int
    size: int
    memory: Lease
    sources: tuple[Any, ...] = ()


class Preparation:
    """The tensors that some executables have prepared, and these executables, all of which see new weights at once.

    Attributes:
        lock: held while weights are bound.
    """

    def __init__(self) -> None:
        self.lock = locks.recursive_lock()
        self._executables: weakref.WeakSet[Executable] = weakref.WeakSet()
        self._known: weakref.WeakValueDictionary[Key, PreparedTensor] = weakref.WeakValueDictionary()

    def join(self, executable: Executable) -> None:
        """Has an executable take part."""
        self._executables.add(executable)

    @property
    def executables(self) -> list[Executable]:
        """Those that take part."""
        return list(self._executables)

    def known(self, recipes: Iterable[PreparedRecipe], tensors: Mapping[str, Any]) -> Iterator[PreparedTensor | None]:
        """What there is of these recipes already, made of these weights; None for what is to be computed."""
        for recipe in recipes:
            yield self._known.get(_key(recipe, tensors)) if recipe.digest else None

    def keep(self, recipe: PreparedRecipe, tensors: Mapping[str, Any], made: PreparedTensor) -> None:
        """Lets others have a tensor that was computed of these weights."""
        if recipe.digest:
            self._known[_key(recipe, tensors)] = made

    def forget(self) -> None:
        """Has all be computed again, whether or not weights look as before."""
        self._known.clear()


def sources_of(recipe: PreparedRecipe, tensors: Mapping[str, Any]) -> tuple[Any, ...]:
    """What keeps the memory of the weights behind a recipe; an alias does, whatever becomes of a tensor of torch's."""
    return tuple(_alias(tensors[name]) for name in recipe.weights)


def _alias(tensor: Any) -> Any:
    return tensor.detach() if hasattr(tensor, "detach") else tensor


def _key(recipe: PreparedRecipe, tensors: Mapping[str, Any]) -> Key:
    return recipe.digest, tuple((pointer(tensors[name]), _writes(tensors[name])) for name in recipe.weights)


def _writes(tensor: Any) -> int:
    """How often a tensor was written to, where that is counted."""
    owner = library_of(tensor)
    if owner is None or owner.name != "torch" or tensor.is_inference():
        return 0
    return int(tensor._version)
