"""What recurrent ops give, without their steps: what torch.export has to know of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.frontend.recurrent.autocast import in_dtypes_of_eager
from pipeline.frontend.recurrent.kernels import implemented

aten = torch.ops.aten


@contextlib.contextmanager
def kept_whole() -> Iterator[None]:
    """Lets torch trace recurrent ops in the `with` block as one op each, of any length; one thread at a time."""
    check = nn.RNNBase.check_forward_args
    nn.RNNBase.check_forward_args = _check_forward_args(check)
    try:
        with implemented(_SHAPES), in_dtypes_of_eager():
            yield
    finally:
        nn.RNNBase.check_forward_args = check


def _check_forward_args(check: Callable[..., None]) -> Callable[..., None]:
    """What nn.GRU and nn.RNN check, but for the sizes of states of packed sequences.

    How many sequences there are lies in a tensor, which has no elements while torch traces; see `run_packed`.
    """

    def checked(module: nn.RNNBase, inputs: Tensor, states: Tensor, batch_sizes: Tensor | None) -> None:
        if batch_sizes is None:
            check(module, inputs, states, batch_sizes)
        else:
            module.check_input(inputs, batch_sizes)

    return checked


def _of_tensors(inputs: Tensor, states: Tensor | Sequence[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    """[steps, batch, features] or [batch, steps, features], and states of [layers * directions, batch, outputs]."""
    *_, bidirectional, batch_first = rest
    if isinstance(inputs.shape[int(batch_first)], int) and inputs.shape[int(batch_first)] == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    return _results(inputs, states, bidirectional)


def _of_packed(inputs: Tensor, _: Tensor, states: Tensor | Sequence[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    """[rows, features], the rows of each step in turn, and states of [layers * directions, sequences, outputs]."""
    return _results(inputs, states, rest[-1])


def _results(inputs: Tensor, states: Tensor | Sequence[Tensor], bidirectional: bool) -> tuple[Tensor, ...]:
    given = [states] if isinstance(states, Tensor) else list(states)
    outputs = inputs.new_empty([*inputs.shape[:-1], given[0].shape[-1] * (1 + bidirectional)])
    return outputs, *map(torch.empty_like, given)


_SHAPES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input), _of_tensors),
    **dict.fromkeys((aten.lstm.data, aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data), _of_packed),
}
