"""torch.cond and torch.while_loop against eager, on both ways and for several numbers of rounds."""

from __future__ import annotations

import torch
from torch import nn
from torch._higher_order_ops import while_loop

import pipeline


def check(model, *argument_sets):
    """Compiles for the first arguments, and compares with eager on all."""
    model = model.eval()
    executable = pipeline.compile(model, argument_sets[0])
    with torch.no_grad():
        for arguments in argument_sets:
            wanted, got = model(*arguments), executable(*arguments)
            for one, other in zip(wanted, got, strict=True) if isinstance(wanted, tuple) else [(wanted, got)]:
                assert one.dtype == other.dtype
                torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)
    return executable


class Cond(nn.Module):
    def forward(self, x, y):
        z = x * 2
        return torch.cond(x.sum() > 0, lambda: (z.sin() + y, z.sum()), lambda: (y - z, z.mean()), ())


def test_cond_with_captured_values_and_two_results():
    torch.manual_seed(0)
    check(Cond(), *((torch.randn(3, 4) + shift, torch.randn(4)) for shift in (-2, 2)))


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, y):
        z = self.linear(x)

        def positive():
            return torch.cond(y.mean() > 0, lambda: z.sin() + y, lambda: self.linear(z) - y, ())

        return torch.cond(x.sum() > 0, positive, lambda: (z * y).cos(), ()) + z


def test_nested_cond_with_weights():
    torch.manual_seed(0)
    check(Nested(), *((torch.randn(4) + a, torch.randn(4) + b) for a in (-2, 2) for b in (-2, 2)))


class Power(nn.Module):
    def forward(self, x, n):
        start = torch.zeros((), dtype=torch.int64), x
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 2 + i), start)[1]


def test_while_loop_for_any_number_of_rounds():
    check(Power(), *((torch.randn(5), torch.tensor(n)) for n in (3, 0, 1, 10)))


class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        half = x * 0.5

        def body(i, h):
            step = torch.cond(h.sum() > 0, lambda: torch.tanh(self.linear(h)) + half, lambda: h - 2 * half, ())
            return i + 1, step

        return while_loop(lambda i, h: i < 5, body, (torch.zeros((), dtype=torch.int64), x))[1]


def test_a_loop_whose_first_condition_is_constant_ends():
    """Without the workaround for PrimLoopOp::isForLike this compiles to an endless loop."""
    torch.manual_seed(0)
    check(Fixed(), *((torch.randn(4),) for _ in range(3)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(8, 16)

    def forward(self, xs):
        def goes_on(t, h, c):
            return torch.logical_and(t < xs.shape[0], h.abs().max() < 0.9)

        def step(t, h, c):
            x = torch.index_select(xs, 0, t.reshape(1)).squeeze(0)
            h, c = self.cell(x, (h, c))
            return t + 1, h, c

        state = torch.zeros(2, 16)
        return while_loop(goes_on, step, (torch.zeros((), dtype=torch.int64), state, state.clone()))


def test_lstm_until_a_condition_on_its_state():
    torch.manual_seed(0)
    check(Recurrent(), (torch.randn(10, 2, 8),), (torch.randn(10, 2, 8) * 100,))


def test_script_capture_of_a_python_branch():
    class Branch(nn.Module):
        def forward(self, x):
            if bool(x.sum() > 0):  # noqa: SIM108 - TorchScript makes a branch of it
                y = x * 2
            else:
                y = x.cos()
            return y + 1

    model = Branch()
    executable = pipeline.compile(model, (torch.ones(3),), capture="script")
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(executable(x), model(x))


def test_torch_compile_of_cond():
    model = Cond()
    compiled = torch.compile(model, backend="pipeline")
    with torch.no_grad():
        for shift in (-2, 2):
            x, y = torch.randn(3, 4) + shift, torch.randn(4)
            for got, wanted in zip(compiled(x, y), model(x, y), strict=True):
                torch.testing.assert_close(got, wanted)
