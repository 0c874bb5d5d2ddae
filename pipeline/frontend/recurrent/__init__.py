"""nn.LSTM, nn.GRU and nn.RNN → loops over time, so that neither compile time nor code depends on the length.

torch runs these ops step by step as it traces them. Here `kept_whole` has torch.export know their results' shapes
alone; `RECURRENT` takes them apart as the program is functionalized: one product of all steps' inputs, then a
while_loop of the cell's step for each layer and direction. The recurrences of linear attention are ops of our own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pipeline.frontend.recurrent.kernels import implemented
from pipeline.frontend.recurrent.linear_attention import LINEAR_ATTENTION
from pipeline.frontend.recurrent.ops import RECURRENT
from pipeline.frontend.recurrent.packing import packed_as_selection
from pipeline.frontend.recurrent.recurrences_of_models import recurrences_as_loops
from pipeline.frontend.recurrent.shapes import kept_whole

__all__ = [
    "LINEAR_ATTENTION",
    "RECURRENT",
    "kept_whole",
    "packed_as_selection",
    "recurrences_as_loops",
    "taken_apart",
]


@contextlib.contextmanager
def taken_apart() -> Iterator[None]:
    """Lets torch trace recurrent ops in the `with` block as loops; one thread at a time."""
    with implemented(RECURRENT):
        yield
