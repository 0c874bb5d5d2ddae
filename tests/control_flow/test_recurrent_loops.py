"""RNN, GRU and LSTM cells in loops: one kernel, which allocates nothing in a round and does not copy its state."""

from __future__ import annotations

import copy

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
        kernels = [kernel for kernel in executable.kernels if not kernel.name.startswith("transpose")]
        if steps == 1:
            assert "loop" not in [kernel.kind for kernel in kernels]  # one round is no loop
            continue
        (kernel,) = kernels
        assert kernel.kind == "loop" and kernel.name.startswith("loop_fused_") and kernel.calls == 1
        turns = [remark for remark in executable.remarks if "take turns" in str(remark)]
        assert len(turns) == 1, "\n".join(map(str, executable.remarks))


class Until(nn.Module):
    """Decodes until a row is large: a state that is computed anew, a cache that gets a row in each round."""

    def __init__(self, width: int, rows: int):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.register_buffer("cache", torch.zeros(rows, width))

    def forward(self, x, bound):
        def step(t, h):
            h = torch.tanh(self.layer(h)) + h
            self.cache.index_copy_(0, t.reshape(1), h)
            return t + 1, h

        def goes_on(t, h):
            return torch.logical_and(t < self.cache.shape[0], h.abs().max() < bound)

        t, h = while_loop(goes_on, step, (torch.zeros((), dtype=torch.int64), x))
        return t, h + self.cache.sum(0)


@pytest.mark.parametrize(("width", "rows"), [(1, 3), (7, 5), (16, 4096)])
def test_a_cache_in_a_while_loop_is_never_copied(width, rows):
    torch.manual_seed(0)
    model = Until(width, rows).eval()
    eager = copy.deepcopy(model)
    arguments = torch.randn(1, width), torch.tensor(3.0)
    executable = pipeline.compile(model, arguments)
    with torch.no_grad():
        for bound in (0.0, 3.0, 5.0):
            given = arguments[0], torch.tensor(bound)
            for got, wanted in zip(executable(*given), eager(*given), strict=True):
                torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(model.cache, eager.cache, rtol=1e-5, atol=1e-5)
    assert "@aligned_alloc" not in executable.ir("llvm") and "@malloc" not in executable.ir("llvm")
    assert "cache is updated in place" in "\n".join(map(str, executable.remarks))
    assert [kernel.kind for kernel in executable.kernels].count("loop") == 1


def test_steps_that_are_worth_threads_stay_kernels():
    class Wide(nn.Module):
        def forward(self, x, w):
            zero = torch.zeros((), dtype=torch.int64)
            return while_loop(lambda t, h: t < 3, lambda t, h: (t + 1, torch.tanh(h @ w)), (zero, x))[1]

    x, w = torch.randn(64, 256), torch.randn(256, 256) / 16
    executable = pipeline.compile(Wide(), (x, w))
    torch.testing.assert_close(executable(x, w), Wide()(x, w), rtol=1e-4, atol=1e-5)
    assert [kernel.name for kernel in executable.kernels] == ["fused_matmul_tanh"]
    (reason,) = [str(one) for one in executable.remarks if one.pass_name == "outline-loops"]
    assert "fused_matmul_tanh takes" in reason and "operations, more than 262144" in reason


class Mixing(nn.Module):
    """Two states that change places, rows of a result, and a sum: elementwise ops, a reduction and an insertion."""

    def forward(self, x, n):
        rows = torch.zeros(4, *x.shape, dtype=x.dtype)

        def body(i, a, b):
            rows.index_copy_(0, i.reshape(1), (a + b).unsqueeze(0))
            return i + 1, b.clone(), torch.where(b > a, a, b) + a.sum().to(a.dtype)

        a, b = while_loop(lambda i, a, b: i < n, body, (torch.zeros((), dtype=torch.int64), x * 1, x + 1))[1:]
        return a, b, rows


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64]
)
@pytest.mark.parametrize("size", [0, 1, 5, 33])
def test_dtypes_and_sizes(dtype, size):
    model = Mixing()
    x = (torch.arange(size) % 3 - 1).to(dtype)
    executable = pipeline.compile(model, (x, torch.tensor(1)))
    with torch.no_grad():
        for rounds in (0, 1, 4):
            for got, wanted in zip(executable(x, torch.tensor(rounds)), model(x, torch.tensor(rounds)), strict=True):
                assert torch.equal(got, wanted) and got.dtype == dtype
