"""The recurrent ops of ATen in terms of loops, as decompositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.recurrent.cells import GRU, LSTM, RNN_RELU, RNN_TANH, Cell
from pipeline.frontend.recurrent.layers import stack
from pipeline.frontend.recurrent.packed import run_packed
from pipeline.frontend.recurrent.padded import run_padded

aten = torch.ops.aten


def _on_tensors(cell: Cell) -> Callable[..., Any]:
    """lstm.input(x, (h, c), ..)  →  outputs, h, c: [steps, batch, features], or [batch, steps, ..] if batch_first."""

    def decomposed(
        inputs: Tensor,
        states: Tensor | Sequence[Tensor],
        parameters: Sequence[Tensor],
        has_biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        run = partial(run_padded, time=int(batch_first))
        chosen = dropout if train else 0.0
        return stack(cell, run, inputs, _listed(states), parameters, has_biases, layers, chosen, 1 + bidirectional)

    return decomposed


def _on_packed(cell: Cell) -> Callable[..., Any]:
    """lstm.data(x, batch_sizes, (h, c), ..)  →  outputs, h, c: [rows, features], the rows of each step in turn."""

    def decomposed(
        inputs: Tensor,
        batch_sizes: Tensor,
        states: Tensor | Sequence[Tensor],
        parameters: Sequence[Tensor],
        has_biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> tuple[Tensor, ...]:
        run = partial(run_packed, batch_sizes=batch_sizes)
        chosen = dropout if train else 0.0
        first = [_of_all_sequences(state, batch_sizes) for state in _listed(states)]
        return stack(cell, run, inputs, first, parameters, has_biases, layers, chosen, 1 + bidirectional)

    return decomposed


def _of_all_sequences(state: Tensor, batch_sizes: Tensor) -> Tensor:
    """The states themselves: indices that are out of range, which is checked, unless there is one for each sequence."""
    sequences = state.shape[1]
    return state.index_select(1, torch.arange(sequences, device=state.device) + batch_sizes[0] - sequences)


def _listed(states: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [states] if isinstance(states, Tensor) else list(states)


RECURRENT: dict[Any, Callable[..., Any]] = {
    aten.lstm.input: _on_tensors(LSTM),
    aten.gru.input: _on_tensors(GRU),
    aten.rnn_tanh.input: _on_tensors(RNN_TANH),
    aten.rnn_relu.input: _on_tensors(RNN_RELU),
    aten.lstm.data: _on_packed(LSTM),
    aten.gru.data: _on_packed(GRU),
    aten.rnn_tanh.data: _on_packed(RNN_TANH),
    aten.rnn_relu.data: _on_packed(RNN_RELU),
}
