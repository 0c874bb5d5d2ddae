"""Prompts as the code takes them: rows of integers of any library, with padding at their start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.errors import ArgumentError
from pipeline.generation.generated_texts import StepRecord
from pipeline.runtime.call.array_libraries import as_numpy, library_of

#: Sizes that torch.export takes for symbolic start here, so a shorter prompt or source gets padding.
SHORTEST = 2


@dataclass(frozen=True)
class Prompt:
    """A prompt, padded to the rows of the cache and to the shortest length.

    Attributes:
        given: the caller's tokens, int64[rows, length].
        ids: int64[batch, length].
        padding: how many tokens at the start of a row are padding, int64[batch].
        inputs: what the model reads besides, by name, as `prefill` takes it.
        record: what is kept of the steps that follow it.
    """

    given: np.ndarray
    ids: np.ndarray
    padding: np.ndarray
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict, kw_only=True)
    record: StepRecord | None = field(default=None, kw_only=True)

    @staticmethod
    def of(input_ids: Any, attention_mask: Any, batch: int, copies: int = 1) -> Prompt:
        """What a caller gives, each row `copies` times.

        Raises:
            ArgumentError: it has no rows or too many, no tokens, or padding elsewhere than at the start.
        """
        given = integers("input_ids", input_ids)
        rows, length = given.shape
        if not 1 <= rows * copies <= batch:
            counted = f"{rows} rows" if copies == 1 else f"{rows} rows of {copies} texts each"
            raise ArgumentError(f"input_ids: has {counted}, the model was compiled for batch={batch} at most")
        if length < 1:
            raise ArgumentError("input_ids: is empty; give it the token that texts begin with")
        padding = _padding(given, attention_mask)
        short = max(SHORTEST - length, 0)
        return Prompt(
            np.repeat(given, copies, 0),
            np.pad(filled_up(np.repeat(given, copies, 0), batch), ((0, 0), (short, 0))),
            filled_up(np.repeat(padding, copies, 0), batch) + short,
        )

    @property
    def given_padding(self) -> np.ndarray:
        """How many tokens at the start of the caller's rows are padding, int64[rows]."""
        return self.padding[: len(self.given)] - (self.length - self.given.shape[1])

    @property
    def read(self) -> np.ndarray | None:
        """The tokens that a text is about, int64[rows, length]; None where that is no text."""
        return self.given

    @property
    def length(self) -> int:
        """How many slots of the cache it fills."""
        return int(self.ids.shape[1])


def filled_up(rows: np.ndarray, batch: int) -> np.ndarray:
    """As many rows as the code takes: those that nobody asked for are like the first one."""
    return np.concatenate([rows, np.repeat(rows[:1], batch - len(rows), 0)])


def integers(name: str, given: Any) -> np.ndarray:
    """A matrix of integers of any library, or of lists."""
    try:
        array = np.asarray(given) if library_of(given) is None else as_numpy(given)
    except ValueError:
        raise ArgumentError(f"{name}: expected rows of equal length; pad them at their start") from None
    if array.ndim != 2 or array.dtype.kind not in "iub":
        raise ArgumentError(f"{name}: expected integers [rows, length], got {array.dtype}{list(array.shape)}")
    return array.astype(np.int64)


def _padding(ids: np.ndarray, attention_mask: Any) -> np.ndarray:
    """How many tokens at the start of each row are padding."""
    if attention_mask is None:
        return np.zeros(len(ids), np.int64)
    mask = integers("attention_mask", attention_mask)
    if mask.shape != ids.shape:
        raise ArgumentError(
            f"attention_mask: expected the shape of input_ids, {list(ids.shape)}, got {list(mask.shape)}"
        )
    padding = mask.argmax(-1)
    if not (mask == (np.arange(ids.shape[1]) >= padding[:, None])).all():
        raise ArgumentError("attention_mask: expected ones, with zeros at the start of rows alone: pad on the left")
    return padding
