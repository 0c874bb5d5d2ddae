"""The cache as the loop of generation sees it: buffers that code writes to, whose rows can change places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.runtime.call.array_libraries import as_numpy

#: Where the slots of a buffer are, by the start of its name behind `cache.`; in front are rows, heads by heads. What is
#: called otherwise is a state, [batch, ..], which has none.
_SLOTS = {"keys": -1, "values": 1}

#: A row that is none of the cache's.
_SPARE = -1


class CacheRows:
    """The rows of a cache, `batch` of them."""

    def __init__(self, buffers: Mapping[str, Any], batch: int):
        self._buffers = {name: buffers[name] for name in sorted(buffers)}
        self._batch = batch

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return sum(as_numpy(buffer).nbytes for buffer in self._buffers.values())

    @property
    def has_states(self) -> bool:
        """Whether it has what layers keep of all tokens up to the last one."""
        return any(True for _ in self._states())

    def reset(self) -> None:
        """Sets all of it to zeros."""
        for buffer in self._buffers.values():
            as_numpy(buffer)[...] = 0

    def reorder(self, sources: Sequence[int], filled: int) -> None:
        """Makes each row that of another one as it was, in place; only what changes moves, of the slots filled so far.

        Args:
            sources: the number of the row that each becomes.
        """
        moves = list(_moves(sources))
        arrays = [*(array[..., :filled] for array in self._by_slots()), *self._states()] if moves else []
        for rows in arrays:
            spare = np.empty_like(rows[0] if any(_SPARE in move for move in moves) else rows[:0])
            for target, source in moves:
                np.copyto(spare if target == _SPARE else rows[target], spare if source == _SPARE else rows[source])

    def copies(self, rows: Sequence[int], end: int) -> list[np.ndarray]:
        """What the slots up to `end` of some rows have, and the rows' states."""
        chosen = list(rows)
        return [*(array[chosen, ..., :end] for array in self._by_slots()), *(array[chosen] for array in self._states())]

    def put(self, rows: Sequence[int], copies: Sequence[np.ndarray], begin: int = 0) -> None:
        """Writes what `copies` gave, of rows of this cache or another, to the slots of rows from `begin` on."""
        chosen, waiting = list(rows), list(copies)
        for array in self._by_slots():
            copy = waiting.pop(0)
            array[chosen, ..., begin : begin + copy.shape[-1]] = copy
        for state, copy in zip(self._states(), waiting, strict=True):
            state[chosen] = copy

    def move(self, rows: Iterable[int], begin: int, end: int, by: int) -> None:
        """Puts the slots from `begin` up to `end` of some rows `by` slots further, or ahead if that is negative."""
        for array in self._by_slots() if by else ():
            for head in (head for row in rows for head in array[row]):
                head[..., begin + by : end + by] = head[..., begin:end].copy()

    def _by_slots(self) -> Iterator[np.ndarray]:
        """Keys, values and scales, [batch, heads, .., slots]."""
        for name, buffer in self._buffers.items():
            axis = _SLOTS.get(_kind(name))
            if axis is not None:
                array = as_numpy(buffer)
                by_heads = array.reshape(self._batch, -1, *array.shape[1:])
                yield np.moveaxis(by_heads, 2 if axis > 0 else -1, -1)

    def _states(self) -> Iterator[np.ndarray]:
        """The states, [batch, ..]."""
        return (as_numpy(buffer) for name, buffer in self._buffers.items() if _kind(name) not in _SLOTS)


def _kind(name: str) -> str:
    return name.partition(".")[2].partition("_")[0]


def _moves(sources: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Copies, one after the other, that make each row what its source was: to which row, and from which.

    A row is overwritten when nothing is to be copied from it any more. Where only rings are left, a spare row keeps
    one row of a ring.
    """
    waiting = {target: source for target, source in enumerate(sources) if target != source}
    readers = dict.fromkeys(range(len(sources)), 0)
    for source in waiting.values():
        readers[source] += 1
    free = [target for target in waiting if not readers[target]]
    while waiting:
        if not free:
            target = next(iter(waiting))
            yield _SPARE, target
            reader = next(row for row, source in waiting.items() if source == target)
            waiting[reader] = _SPARE
            free.append(target)
        target = free.pop()
        source = waiting.pop(target)
        yield target, source
        if source == _SPARE:
            continue
        readers[source] -= 1
        if not readers[source] and source in waiting:
            free.append(source)
