"""RNN, GRU and LSTM cells in loops: nothing is allocated in a round, and the state is not copied."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._higher_order_ops import while_loop

import pipeline


class Loop(nn.Module):
    """Runs a cell over the time steps of `xs`, [steps, batch, 8]."""

    def __init__(self, cell: nn.Module, states: int):
        super().__init__()
        self.cell = cell
        self.states = states

    def forward(self, xs, *state):
        def step(t, *state):
            x = torch.index_select(xs, 0, t.reshape(1)).squeeze(0)
            following = self.cell(x, state if self.states > 1 else state[0])
            return t + 1, *(following if self.states > 1 else (following,))

        return while_loop(lambda t, *_: t < xs.shape[0], step, (torch.zeros((), dtype=torch.int64), *state))[1:]


CELLS = {"rnn": (nn.RNNCell, 1), "gru": (nn.GRUCell, 1), "lstm": (nn.LSTMCell, 2)}


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("batch", [1, 3])
def test_cells(name, batch):
    torch.manual_seed(0)
    cell, states = CELLS[name]
    model = Loop(cell(8, 16), states).eval()
    for steps in (1, 5):
        arguments = (torch.randn(steps, batch, 8), *(torch.randn(batch, 16) for _ in range(states)))
        executable = pipeline.compile(model, arguments)
        with torch.no_grad():
            for got, wanted in zip(executable(*arguments), model(*arguments), strict=True):
                torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6)
        code = executable.ir("llvm")
        assert "@aligned_alloc" not in code and "@malloc" not in code
        turns = [remark for remark in executable.remarks if "take turns" in str(remark)]
        assert len(turns) == 1, "\n".join(map(str, executable.remarks))
