"""A cell over packed sequences: those of a batch, the longest first, the rows of each step side by side.

Which rows a step has is known only as the program runs. So each step computes as many as there are sequences, and
keeps what the sequences that have ended by then had before.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop_op

from pipeline.frontend.recurrent.cells import Cell, CellWeights, State
from pipeline.frontend.recurrent.rows import row


def run_packed(
    cell: Cell, inputs: Tensor, state: State, weights: CellWeights, is_reverse: bool, *, batch_sizes: Tensor
) -> tuple[Tensor, State]:
    """for t in range(steps): rows = the next batch_sizes[t] ones; state[: len(rows)] = step(inputs[rows], state)

    Args:
        inputs: [rows, features].
        state: what the cell begins with, each [sequences, ..].
        is_reverse: from the last step to the first; the shorter sequences join later then.
        batch_sizes: [steps] of int64, how many sequences are as long as that; none is more than the one before.

    Returns:
        The outputs, [rows, ..], and the state after the last step of each sequence.
    """
    rows, sequences = inputs.shape[0], state[0].shape[0]
    products = cell.input_product(inputs, weights)
    products = torch.cat([products, products.new_zeros([sequences, products.shape[1]])])  # the last steps read beyond
    outputs = state[0].new_zeros([rows + sequences, state[0].shape[1]])
    numbers = torch.arange(sequences, device=inputs.device)
    starts = batch_sizes.cumsum(0) - batch_sizes

    def goes_on(t: int, *rest: Tensor) -> bool:
        return t < rest[cell.states + 1].shape[0]

    carried = (0, *(tensor.clone() for tensor in state), outputs)
    read = (batch_sizes.clone(), starts, numbers, products, *cell.captured(weights))
    _, *state, outputs = while_loop_op(goes_on, partial(_step, cell, is_reverse), carried, read)
    return outputs[:rows], tuple(state)


def _step(cell: Cell, is_reverse: bool, t: int, *rest: Tensor) -> tuple[Any, ...]:
    """One round: (t, state, outputs) → those of the next."""
    state, outputs = rest[: cell.states], rest[cell.states]
    batch_sizes, starts, numbers, products, *captured = rest[cell.states + 1 :]
    place = batch_sizes.shape[0] - 1 - t if is_reverse else t
    taken = numbers + row(starts, 0, place)
    is_live = (numbers < row(batch_sizes, 0, place)).unsqueeze(1)
    following = cell.step(products.index_select(0, taken), state, captured)
    state = tuple(torch.where(is_live, new, old) for new, old in zip(following, state, strict=True))
    written = torch.where(is_live, state[0], outputs.index_select(0, taken))
    return t + 1, *state, outputs.index_copy(0, taken, written)
