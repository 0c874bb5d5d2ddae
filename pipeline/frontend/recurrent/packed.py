"""A cell over packed sequences: those of a batch, the longest first, the rows of each step side by side.

Which rows a step has is known only as the program runs. So each step computes as many as there are sequences, and
keeps what the sequences that have ended by then had before.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop_op

from pipeline.frontend.recurrent.cells import Cell, State, Weights
from pipeline.frontend.recurrent.rows import row


def run_packed(
    cell: Cell, inputs: Tensor, state: State, weights: Weights, is_reverse: bool, *, batch_sizes: Tensor
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
    steps = batch_sizes.shape[0]
    products = cell.input_product(inputs, weights)
    products = torch.cat([products, products.new_zeros([sequences, products.shape[1]])])  # the last steps read beyond
    outputs = state[0].new_zeros([rows + sequences, state[0].shape[1]])
    starts = batch_sizes.cumsum(0) - batch_sizes

    def goes_on(t: int, outputs: Tensor, *_: Tensor) -> bool:
        return t < steps

    def body(t: int, outputs: Tensor, *rest: Tensor) -> tuple[Any, ...]:
        state, (products, starts, counts, numbers), captured = (
            rest[: cell.states],
            rest[cell.states : cell.states + 4],
            rest[cell.states + 4 :],
        )
        place = steps - 1 - t if is_reverse else t
        taken = numbers + row(starts, 0, place)
        goes_on = (numbers < row(counts, 0, place)).unsqueeze(1)
        following = cell.step(products.index_select(0, taken), state, captured)
        state = tuple(torch.where(goes_on, new, old) for new, old in zip(following, state, strict=True))
        written = torch.where(goes_on, state[0], outputs.index_select(0, taken))
        return t + 1, outputs.index_copy(0, taken, written), *state

    numbers = torch.arange(sequences, device=inputs.device)
    carried = (0, outputs, *(tensor.clone() for tensor in state))
    read = (products, starts, batch_sizes.clone(), numbers, *cell.captured(weights))
    _, outputs, *state = while_loop_op(goes_on, body, carried, read)
    return outputs[:rows], tuple(state)
