"""The recurrent ops of ATen in terms of loops, as decompositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.recurrent import loops
from pipeline.frontend.recurrent.cells import GRU, LSTM, RNN_RELU, RNN_TANH, Cell, State, Weights
from pipeline.frontend.recurrent.layers import stack

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
        run = partial(_run, time=int(batch_first))
        chosen = dropout if train else 0.0
        return stack(
            cell, run, inputs, _listed(states), parameters, has_biases, layers, chosen, 1 + bidirectional
        )

    return decomposed


def _run(
    cell: Cell, inputs: Tensor, state: State, weights: Weights, is_reverse: bool, *, time: int
) -> tuple[Tensor, State]:
    return loops.run(cell, inputs, state, weights, time, is_reverse)


def _listed(states: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [states] if isinstance(states, Tensor) else list(states)


#: By op; lists of parameters may be longer than torch's own decompositions like them.
RECURRENT: dict[Any, Callable[..., Any]] = {
    aten.lstm.input: _on_tensors(LSTM),
    aten.gru.input: _on_tensors(GRU),
    aten.rnn_tanh.input: _on_tensors(RNN_TANH),
    aten.rnn_relu.input: _on_tensors(RNN_RELU),
}
