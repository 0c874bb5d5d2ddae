"""What recurrent ops give, without their steps: what torch.export has to know of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.recurrent.kernels import implemented

aten = torch.ops.aten

@contextlib.contextmanager
def kept_whole() -> Iterator[None]:
    """Lets torch trace recurrent ops in the `with` block as one op each, of any length; one thread at a time."""
    with implemented(_SHAPES):
        yield


def _of_tensors(inputs: Tensor, states: Tensor | Sequence[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    """[steps, batch, features] or [batch, steps, features], and states of [layers * directions, batch, outputs]."""
    *_, bidirectional, batch_first = rest
    if isinstance(inputs.shape[int(batch_first)], int) and inputs.shape[int(batch_first)] == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    return _results(inputs, states, bidirectional)


def _results(inputs: Tensor, states: Tensor | Sequence[Tensor], bidirectional: bool) -> tuple[Tensor, ...]:
    given = [states] if isinstance(states, Tensor) else list(states)
    outputs = inputs.new_empty([*inputs.shape[:-1], given[0].shape[-1] * (1 + bidirectional)])
    return outputs, *map(torch.empty_like, given)


_SHAPES: dict[Any, Callable[..., Any]] = dict.fromkeys(
    (aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input), _of_tensors
)
