"""A cell over sequences of one length: a while_loop of its step."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop_op

from pipeline.frontend.recurrent.cells import Cell, CellWeights, State
from pipeline.frontend.recurrent.rows import row, with_row


def run_padded(
    cell: Cell, inputs: Tensor, state: State, weights: CellWeights, is_reverse: bool, *, time: int
) -> tuple[Tensor, State]:
    """for t in range(steps): state = step(inputs[t], state); outputs[t] = state[0]

    Args:
        inputs: [steps, batch, features], or [batch, steps, features] where `time`, the dim of the steps, is 1.
        state: what the cell begins with, each [batch, ..].
        is_reverse: from the last step to the first.

    Returns:
        The outputs of all steps, laid out like the inputs, and the state after the last one.
    """
    products = cell.input_product(inputs, weights)
    outputs = state[0].new_empty([*inputs.shape[:2], state[0].shape[-1]])

    def goes_on(t: int, outputs: Tensor, *_: Tensor) -> bool:
        return t < outputs.shape[time]

    def step(t: int, outputs: Tensor, *rest: Tensor) -> tuple[Any, ...]:
        state, products, captured = rest[: cell.states], rest[cell.states], rest[cell.states + 1 :]
        place = outputs.shape[time] - 1 - t if is_reverse else t
        state = cell.step(row(products, time, place), state, captured)
        return t + 1, with_row(outputs, state[0], time, place), *state

    carried = (0, outputs, *(tensor.clone() for tensor in state))
    _, outputs, *state = while_loop_op(goes_on, step, carried, (products, *cell.captured(weights)))
    return outputs, tuple(state)
