"""A compiled graph and the weights that it is called with: the module's own, prepared once."""

from __future__ import annotations

import gc
import operator
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence

import torch

from pipeline import locks
from pipeline.runtime.executable import Executable

#: So many sets of weights at most are bound to one graph, as when many layers of one class are compiled one by one.
MAX_BINDINGS = 256


class Binding:
    """An executable of its own for one set of weights.

    Attributes:
        weights: the tensors, as dynamo passes them.
        executable: reads them.
    """

    def __init__(self, weights: tuple[torch.Tensor, ...], bind: Callable[[tuple[torch.Tensor, ...]], Executable]):
        before = self._references(weights)
        self.weights = weights
        self.executable = bind(weights)
        self._own = self._references(weights) - before

    def is_orphaned(self) -> bool:
        """Whether nobody else has the weights any more."""
        return bool(self.weights) and self._references(self.weights) <= self._own + 2  # of the tuple, of the question

    @staticmethod
    def _references(weights: tuple[torch.Tensor, ...]) -> int:
        return sys.getrefcount(weights[0]) if weights else 0


class Bindings:
    """The executables of one graph, by the weights that they are called with."""

    def __init__(self, names: Sequence[str], compile_for: Callable[[tuple[torch.Tensor, ...]], Executable]):
        """`compile_for` is called for the first weights; `names` are theirs in the model."""
        self._names = names
        self._compile = compile_for
        self._code: Executable | None = None
        self._last: Binding | None = None
        self._all: dict[tuple[int, ...], Binding] = {}
        self._binding = locks.lock()
        _everywhere.add(self)

    def executable_for(self, weights: tuple[torch.Tensor, ...]) -> Executable:
        """The executable that reads these tensors as they are now."""
        binding = self._last
        if binding is None or not all(map(operator.is_, weights, binding.weights)):
            binding = self._last = self._find(weights)
        return binding.executable

    @property
    def executables(self) -> list[Executable]:
        """All of them, the oldest first."""
        return [binding.executable for binding in self._all.values()]

    def forget_orphans(self) -> None:
        """Drops the bindings of tensors that nobody has any more, unless one is being made."""
        if self._binding.acquire(blocking=False):
            try:
                self._forget([key for key, binding in self._all.items() if binding.is_orphaned()])
            finally:
                self._binding.release()

    def _forget(self, keys: Sequence[tuple[int, ...]]) -> None:
        for key in keys:
            if self._all.pop(key) is self._last:
                self._last = None

    def _find(self, weights: tuple[torch.Tensor, ...]) -> Binding:
        """The binding of other weights than the last call's, made if there is none."""
        self.forget_orphans()
        with self._binding:
            found = self._all.get(_key(weights))
            if found is None:
                self._forget(list(self._all)[: len(self._all) + 1 - MAX_BINDINGS])
                found = self._all[_key(weights)] = Binding(weights, self._bind)
        return found

    def _bind(self, weights: tuple[torch.Tensor, ...]) -> Executable:
        if self._code is not None:
            return self._code.with_weights(dict(zip(self._names, weights, strict=True)))
        executable = self._compile(weights)
        self._code = executable.without_weights()
        return executable


#: Of all graphs.
_everywhere: weakref.WeakSet[Bindings] = weakref.WeakSet()


def forget_orphans(phase: str = "stop", info: Mapping[str, int] | None = None) -> None:
    """Drops the bindings of tensors that nobody has any more; Python's garbage collector does so after a full round."""
    if phase == "stop" and (info is None or info["generation"] == 2):
        for bindings in list(_everywhere):
            bindings.forget_orphans()


gc.callbacks.append(forget_orphans)


def _key(weights: tuple[torch.Tensor, ...]) -> tuple[int, ...]:
    return tuple(map(id, weights))
