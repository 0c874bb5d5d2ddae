"""Layers and directions of a recurrent net, whatever its cells are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pipeline.frontend.recurrent.cells import Cell, CellWeights, State

#: (cell, inputs, first state, weights, is_reverse) → outputs, last state: one layer in one direction.
RunCell = Callable[[Cell, Tensor, State, CellWeights, bool], tuple[Tensor, State]]


def stack(
    cell: Cell,
    run: RunCell,
    inputs: Tensor,
    states: Sequence[Tensor],
    parameters: Sequence[Tensor],
    has_biases: bool,
    layers: int,
    dropout: float,
    directions: int,
) -> tuple[Tensor, ...]:
    """The outputs of the last layer, and the last states of all: [layers * directions, batch, ..] each.

    16-bit floats are computed in float32 and rounded once.

    Args:
        states: the first states, [layers * directions, batch, ..] each.
        parameters: those of all layers and directions, one after the other.
        dropout: the part of the outputs between two layers that becomes zero.
    """
    dtype = inputs.dtype
    inputs, states, parameters = _wide(inputs), list(map(_wide, states)), list(map(_wide, parameters))
    weights = _weights(parameters, layers * directions, has_biases)
    last: list[State] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            first = tuple(state.select(0, number) for state in states)
            output, state = run(cell, inputs, first, weights[number], direction == 1)
            outputs.append(output)
            last.append(state)
        inputs = torch.cat(outputs, -1) if directions > 1 else outputs[0]
        if dropout and layer < layers - 1:
            inputs = torch.dropout(inputs, dropout, True)
    return inputs.to(dtype), *(torch.stack(kind).to(dtype) for kind in zip(*last, strict=True))


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype.itemsize == 2 else tensor


def _weights(parameters: Sequence[Tensor], count: int, has_biases: bool) -> list[CellWeights]:
    """The parameters as torch lists them: both matrices, both biases if there are any, the projection if there is."""
    each = len(parameters) // count
    weights = []
    for first in range(0, len(parameters), each):
        matrices, rest = parameters[first : first + 2], parameters[first + 2 : first + each]
        biases = rest[:2] if has_biases else (None, None)
        projection = rest[2 * has_biases :]
        weights.append(CellWeights(*matrices, *biases, *projection))
    return weights
