"""Notices that weights are not what they were when they were bound: moved in memory, written to, or replaced.

    address     what compiled code reads by its address must still be there: `share_memory`, `.data = `, `module.to`
    writes      of what was copied or prepared, autograd's number of writes must be the same: `load_state_dict`, `step`
    names       the dictionaries of the model's modules must still hold the same tensors: `functional_call`

`WordWatch` has the compiled code compare the words of memory that tell (see `torch_layout`), `PolledWatch` asks torch
tensor by tensor. Neither sees what is written through NumPy or to the `.data` of a tensor, nor writes to inference
tensors, which count none: that takes a `refresh`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline.runtime.weights.torch_layout import TorchLayout, dict_tag, torch_layout
from pipeline.runtime.weights.watched_words import Guarded, WatchedWords
from pipeline.runtime.weights.weight_source import WeightSource


@dataclass(frozen=True)
class Watched:
    """A weight to be watched.

    Attributes:
        tensor: a tensor of torch's.
        is_read: whether the code reads it, or a tensor over the same memory, by its address.
        is_copied: whether something was computed from it that a write makes old.
    """

    name: str
    tensor: Any
    is_read: bool
    is_copied: bool

    def state(self) -> tuple[int, int, int]:
        """Which tensor it is, where it lies, and its number of writes where they matter."""
        counted = self.is_copied and not self.tensor.is_inference()
        return id(self.tensor), self.tensor.data_ptr(), self.tensor._version if counted else 0


class Watch(Protocol):
    """What calls ask before they trust a state of the weights.

    Attributes:
        record: what `run` takes beside the slots.
        weights: what is watched.
    """

    record: int
    weights: Sequence[Watched]

    @property
    def run(self) -> Guarded:
        """Runs the code on slots unless a weight has changed, which it says with 1; with no slots it says so alone."""
        ...

    def accept(self, names: Iterable[str]) -> None:
        """Takes these weights as they are now: the executable has written to them itself."""
        ...


def watch(
    weights: Sequence[Watched], source: WeightSource | None, guarded: Guarded, main: Callable[[int], None]
) -> Watch:
    """What watches weights from now on.

    Args:
        source: whose names are to stand for the same tensors; None for names that are not watched.
        guarded, main: the entry with a look at the words, and without.
    """
    layout, tag = (torch_layout(), dict_tag()) if weights else (None, None)
    holders = () if source is None or not weights else source.holders()
    if weights and (layout is None or (holders and tag is None)):
        return PolledWatch(weights, source, main)
    return WordWatch(weights, holders, layout, tag, guarded)


class WordWatch:
    """Watches words of memory; see `Watch`."""

    def __init__(
        self,
        weights: Sequence[Watched],
        holders: Sequence[dict[str, Any]],
        layout: TorchLayout | None,
        tag: int | None,
        guarded: Guarded,
    ):
        self.run, self.weights = guarded, weights
        self._kept = (holders, [_hold(weight.tensor) for weight in weights])
        self._versions: dict[str, int] = {}
        words = [id(holder) + tag for holder in holders if tag is not None]
        for weight in weights:
            assert layout is not None
            words += self._words_of(weight, layout)
        self._words = WatchedWords(words)
        self.record = self._words.record

    def _words_of(self, weight: Watched, layout: TorchLayout) -> list[int]:
        """In which storage a weight is said to lie, where that is if it is read, and how many writes there were."""
        words = [layout.storage_word(weight.tensor)]
        if weight.is_read:
            words.append(layout.data_word(weight.tensor))
        version = layout.version_word(weight.tensor) if weight.is_copied else None
        if version is not None:
            self._versions[weight.name] = version
            words.append(version)
        return words

    def accept(self, names: Iterable[str]) -> None:
        """See `Watch`."""
        self._words.accept(self._versions[name] for name in names if name in self._versions)


def _hold(tensor: Any) -> tuple[Any, Any]:
    """What keeps the structures that are watched in memory, whatever becomes of the tensor.

    An alias has the same storage and number of writes. With a weak reference torch refuses to swap the tensor with
    another one (`torch.utils.swap_tensors`), which would take its TensorImpl away; torch.export has that effect, too.
    """
    return tensor.detach(), sys.modules["torch"]._C._WeakTensorRef(tensor)


class Outdated:
    """Says that weights have changed; see `Watch`."""

    record = 0
    weights: Sequence[Watched] = ()

    def run(self, slots: int, record: int) -> int:
        """See `Watch`."""
        return 1

    def accept(self, names: Iterable[str]) -> None:
        """See `Watch`."""


class PolledWatch:
    """Asks torch for each weight, a tenth of a microsecond each; see `Watch`."""

    record = 0

    def __init__(
        self, weights: Sequence[Watched], source: WeightSource | None, main: Callable[[int], None] | None = None
    ):
        """See `watch`; `main` is the code that `run` runs, if any."""
        self.weights, self._source, self._main = weights, source, main
        self._states = {weight.name: weight.state() for weight in weights}

    def run(self, slots: int, record: int) -> int:
        """See `Watch`."""
        if any(weight.state() != self._states[weight.name] for weight in self.weights):
            return 1
        if self._source is not None:
            live = self._source.tensors()
            if any(live.get(weight.name) is not weight.tensor for weight in self.weights):
                return 1
        if slots and self._main is not None:
            self._main(slots)
        return 0

    def accept(self, names: Iterable[str]) -> None:
        """See `Watch`."""
        wanted = set(names)
        self._states.update({weight.name: weight.state() for weight in self.weights if weight.name in wanted})
