"""nn.utils.rnn.pack_padded_sequence and pad_packed_sequence inside of a model: rows whose number the data say.

torch.export takes packed rows for as many as there are steps. Here they are a selection from the padded ones, the
longest sequence is as long as a number read from a tensor, and both have bounds that calls are held to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from pipeline.frontend.capture.replaced import replaced

#: Where the sizes of steps keep the sizes of what was packed: (steps, sequences).
_PADDED_SIZES = "pipeline_padded_sizes"


@contextlib.contextmanager
def packed_as_selection() -> Iterator[None]:
    """Lets torch.export trace what packs and unpacks in the `with` block; one thread at a time."""
    functions = torch._VF
    with (
        replaced(functions, "_pack_padded_sequence", _pack),
        replaced(functions, "_pad_packed_sequence", _unpack),
    ):
        yield


def _pack(x: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """[steps, sequences, ..], the longest sequence first → the rows of each step in turn, and how many each has."""
    x = x.transpose(0, 1) if batch_first else x
    steps, sequences = x.shape[:2]
    are_lengths = (lengths > 0) & (lengths <= steps)
    torch._assert_async(are_lengths.all(), "pack_padded_sequence: a length below 1 or above the number of steps")
    is_sorted = (lengths == lengths.cummin(0).values).all()
    torch._assert_async(is_sorted, "pack_padded_sequence: lengths must be in decreasing order")
    is_there = torch.arange(steps)[:, None] < lengths
    longest: Any = lengths.max().item()
    torch._check(longest >= 0)
    torch._check(longest <= steps)
    batch_sizes = is_there.sum(1).narrow(0, 0, longest)
    setattr(batch_sizes, _PADDED_SIZES, (steps, sequences))
    return x[is_there], batch_sizes


def _unpack(
    rows: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, steps: Any
) -> tuple[Tensor, Tensor]:
    """The rows of each step in turn → [steps, sequences, ..], padded, and the lengths of the sequences."""
    sequences = getattr(batch_sizes, _PADDED_SIZES, (None, None))[1]
    if sequences is None:
        sequences = batch_sizes[0].item()
        torch._check(sequences >= 0)
    counts = pad(batch_sizes, (0, steps - batch_sizes.shape[0]))
    numbers = torch.arange(sequences)
    is_there = numbers < counts[:, None]
    places = torch.where(is_there, numbers + (counts.cumsum(0) - counts)[:, None], 0)
    taken = rows.index_select(0, places.reshape(-1)).reshape(*places.shape, *rows.shape[1:])
    is_row = is_there.reshape(*is_there.shape, *(1 for _ in rows.shape[1:]))
    padded = torch.where(is_row, taken, torch.full((), padding_value, dtype=rows.dtype))
    return padded.transpose(0, 1) if batch_first else padded, is_there.sum(0)
