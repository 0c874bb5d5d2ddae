"""What recurrent nets compute in one step, by the kind of the cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

State = tuple[Tensor, ...]


@dataclass(frozen=True)
class CellWeights:
    """The parameters of one layer in one direction, the biases and the projection if it has them.

    Attributes:
        input: [gates * hidden, features]
        recurrent: [gates * hidden, outputs]
        input_bias, recurrent_bias: [gates * hidden]
        projection: [outputs, hidden]
    """

    input: Tensor
    recurrent: Tensor
    input_bias: Tensor | None = None
    recurrent_bias: Tensor | None = None
    projection: Tensor | None = None


@dataclass(frozen=True)
class Cell:
    """A kind of cell.

    Attributes:
        states: how many tensors it hands from step to step, the first of which is its output.
        adds_biases_first: whether the recurrent bias may be added to the input's product.
        step: (the input's product: [batch, gates * hidden], state, captured) → the next state.
    """

    states: int
    adds_biases_first: bool
    step: Callable[[Tensor, State, Sequence[Tensor]], State]

    def input_product(self, inputs: Tensor, weights: CellWeights) -> Tensor:
        """[.., features] → [.., gates * hidden], for all steps at once."""
        bias = weights.input_bias
        if self.adds_biases_first and bias is not None and weights.recurrent_bias is not None:
            bias = bias + weights.recurrent_bias
        return torch.nn.functional.linear(inputs, weights.input, bias)

    def captured(self, weights: CellWeights) -> tuple[Tensor, ...]:
        """What `step` takes of the weights: the transposed matrices, and the bias that is not yet added."""
        bias = None if self.adds_biases_first else weights.recurrent_bias
        projection = weights.projection
        taken = weights.recurrent.t(), bias, None if projection is None else projection.t()
        return tuple(tensor.clone() for tensor in taken if tensor is not None)


def _lstm(product: Tensor, state: State, captured: Sequence[Tensor]) -> State:
    """c = sigmoid(f) * c + sigmoid(i) * tanh(g); h = sigmoid(o) * tanh(c), projected if there is a matrix for it."""
    hidden, cell = state
    recurrent, *projection = captured
    into, forget, candidate, out = (product + hidden @ recurrent).chunk(4, -1)
    cell = forget.sigmoid() * cell + into.sigmoid() * candidate.tanh()
    hidden = out.sigmoid() * cell.tanh()
    return (hidden @ projection[0] if projection else hidden), cell


def _gru(product: Tensor, state: State, captured: Sequence[Tensor]) -> State:
    """n = tanh(n_x + sigmoid(r) * n_h); h = n + sigmoid(z) * (h - n)."""
    (hidden,) = state
    recurrent, *bias = captured
    recurrent_product = hidden @ recurrent
    reset, update, candidate = (recurrent_product + bias[0] if bias else recurrent_product).chunk(3, -1)
    reset_input, update_input, candidate_input = product.chunk(3, -1)
    new = (candidate_input + (reset_input + reset).sigmoid() * candidate).tanh()
    return (new + (update_input + update).sigmoid() * (hidden - new),)


def _plain(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor, State, Sequence[Tensor]], State]:
    """h = activation(product + h @ recurrent)."""

    def step(product: Tensor, state: State, captured: Sequence[Tensor]) -> State:
        return (activation(product + state[0] @ captured[0]),)

    return step


LSTM = Cell(2, True, _lstm)
GRU = Cell(1, False, _gru)
RNN_TANH = Cell(1, True, _plain(torch.tanh))
RNN_RELU = Cell(1, True, _plain(torch.relu))
