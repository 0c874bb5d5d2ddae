"""Models with loops on the values of tensors, by torch.while_loop, scan and map."""

from __future__ import annotations

import torch
from cases import Cases, case, numbers, shifted, zero
from torch import nn
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as map_rows

#: (model, sets of arguments) by name.
LOOPS: Cases = {}


@case(LOOPS, *((numbers(5), torch.tensor(n)) for n in (3, 0, 1, 10)))
class Power(nn.Module):
    def forward(self, x, n):
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 2 + i), (zero(), x))


@case(LOOPS, (numbers(5),))
class CountedByNumber(nn.Module):
    def forward(self, x):
        return while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, h[i] + h), (0, x))[1]


@case(LOOPS, (numbers(4),), (numbers(4, shift=3),))
class FirstConditionIsConstant(nn.Module):
    """Without the workaround for PrimLoopOp::isForLike this compiles to an endless loop."""

    def forward(self, x):
        return while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, torch.tanh(h + i)), (zero(), x))[1]


@case(LOOPS, (numbers(3),))
class TreesInLoop(nn.Module):
    def forward(self, x):
        def body(state):
            low, high = state["h"]
            return ({"i": state["i"] + 1, "h": (low * 2, high + low)},)

        return while_loop(lambda state: state["i"] < 4, body, ({"i": zero(), "h": (x, x.clone())},))


@case(LOOPS, (numbers(6, 2, 8),), (numbers(6, 2, 8) * 100,), (numbers(6, 2, 8) * 0,))
class RecurrentUntil(nn.Module):
    """An LSTM that stops at the end of the sequence, or when its state is large."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(8, 4)

    def forward(self, xs):
        def goes_on(t, h, c):
            return torch.logical_and(t < xs.shape[0], h.abs().max() < 0.5)

        def step(t, h, c):
            x = torch.index_select(xs, 0, t.reshape(1)).squeeze(0)
            return t + 1, *self.cell(x, (h, c))

        return while_loop(goes_on, step, (zero(), torch.zeros(2, 4), torch.zeros(2, 4)))


@case(LOOPS, *shifted(4, shifts=(-2, 0, 2)))
class CondInWhile(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        half = x * 0.5

        def body(i, h):
            return i + 1, torch.cond(h.sum() > 0, lambda: self.linear(h).tanh() + half, lambda: h - 2 * half, ())

        return while_loop(lambda i, h: i < 5, body, (zero(), x))[1]


@case(LOOPS, *shifted(4))
class WhileInCond(nn.Module):
    def forward(self, x):
        def loop():
            return while_loop(lambda i, h: h.abs().max() < 20, lambda i, h: (i + 1, h * 1.5 + i), (zero(), x))[1]

        return torch.cond(x.sum() > 0, loop, lambda: x.cos(), ())


@case(LOOPS, *((numbers(3), torch.tensor(n)) for n in (0, 1, 3)))
class WhileInWhile(nn.Module):
    def forward(self, x, n):
        def body(i, h):
            inner = while_loop(lambda j, h: j < i, lambda j, h: (j + 1, h * 1.5), (zero(), h))[1]
            return i + 1, inner + 1

        return while_loop(lambda i, h: i < n, body, (zero(), x))[1]


@case(LOOPS, *((numbers(4), torch.tensor(n)) for n in (0, 4)))
class Accumulates(nn.Module):
    """Writes to a tensor and to a buffer from outside of the loop."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x, n):
        total = torch.zeros(4)

        def body(i, h):
            total.add_(h)
            self.seen[1:].add_(h[1:])
            return i + 1, h * 2

        return while_loop(lambda i, h: i < n, body, (zero(), x))[1] + total


@case(LOOPS, (numbers(4),))
class WritesToItsState(nn.Module):
    def forward(self, x):
        def body(i, h):
            h = h.clone()
            h[0] = 5.0
            h.mul_(2)
            return i + 1, h

        return while_loop(lambda i, h: i < 3, body, (zero(), x))[1]


@case(LOOPS, (numbers(2, 3), torch.tensor(4)), (numbers(2, 3) * 9, torch.tensor(5)), (numbers(2, 3), zero()))
class BeamSearch(nn.Module):
    """Takes the best token of a row until it is the last one, and keeps what it saw in a cache."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 3)
        self.out = nn.Linear(3, 7)
        self.register_buffer("cache", torch.zeros(6, 2, 3))

    def forward(self, x, n):
        def step(t, token, state):
            state = torch.tanh(state + self.embedding(token))
            self.cache.index_copy_(0, t.reshape(1), state.unsqueeze(0))
            return t + 1, self.out(state).argmax(-1), state

        def goes_on(t, token, state):
            return torch.logical_and(t < n, (token < 6).any())

        first = torch.zeros(2, dtype=torch.int64)
        steps, token, state = while_loop(goes_on, step, (zero(), first, x.clone()))
        return steps, token, state, self.cache.sum(0)


@case(LOOPS, (numbers(5, 2, 8),))
class ScanOfGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 4)

    def forward(self, xs):
        def step(h, x):
            h = self.cell(x, h)
            return h, h.clone()

        return scan(step, torch.zeros(2, 4), xs, dim=0)


@case(LOOPS, (numbers(2, 5, 3), numbers(3, seed=1)))
class ScanOfTrees(nn.Module):
    """Along another dim and backwards, with two results a step and a value from outside."""

    def forward(self, xs, y):
        def step(state, x):
            total = state["total"] + x * y
            return {"total": total}, (total * 2, total.sum())

        return scan(step, {"total": torch.zeros(2, 3)}, xs, dim=1, reverse=True)


@case(LOOPS, *shifted(4, 3, shifts=(-1, 0, 1)))
class CondInScan(nn.Module):
    def forward(self, xs):
        def step(h, x):
            h = torch.cond(x.sum() > 0, lambda: h + x, lambda: h * 0.5, ())
            return h, h * 1

        return scan(step, torch.zeros(3), xs)


@case(LOOPS, (numbers(5, 3, 4), numbers(4, 2)))
class MapOfMatrices(nn.Module):
    def forward(self, xs, y):
        return map_rows(lambda x, y: {"product": x @ y + 1, "sum": (x.sum(),)}, xs, y)


@case(LOOPS, *shifted(4, 3, shifts=(-1, 1)))
class WhileInMap(nn.Module):
    def forward(self, xs):
        def grow(x):
            return while_loop(lambda x: x.sum() < 9, lambda x: (x.abs() * 1.5 + 1,), (x * 1,))[0]

        return map_rows(grow, xs)


@case(LOOPS, *shifted(3, shifts=(-1, 1)))
class Newton(nn.Module):
    """Square roots until they are close, and no more than 20 rounds."""

    def forward(self, x):
        target = x.abs() + 1

        def is_far(i, root):
            return torch.logical_and(i < 20, (root * root - target).abs().max() > 1e-3)

        return while_loop(is_far, lambda i, root: (i + 1, (root + target / root) * 0.5), (zero(), target.clone()))
