"""Models with branches and loops on the values of tensors, each with arguments that take every way through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as map_rows

Arguments = tuple[Any, ...]
Case = tuple[Callable[[], nn.Module], list[Arguments]]

#: (model, sets of arguments) by name: through torch.export, and through TorchScript.
EXPORTED: dict[str, Case] = {}
SCRIPTED: dict[str, Case] = {}


def _case(cases: dict[str, Case], *arguments: Arguments) -> Callable[[type[nn.Module]], type[nn.Module]]:
    def register(kind: type[nn.Module]) -> type[nn.Module]:
        cases[kind.__name__] = (kind, list(arguments))
        return kind

    return register


def _numbers(*shape: int, seed: int = 0, shift: float = 0.0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) + shift


def _shifted(*shape: int, shifts: tuple[float, ...] = (-2, 2)) -> list[Arguments]:
    return [(_numbers(*shape, seed=number, shift=shift),) for number, shift in enumerate(shifts)]


def _zero() -> torch.Tensor:
    return torch.zeros((), dtype=torch.int64)


# Branches


@_case(EXPORTED, *_shifted(3, 4))
class TwoResults(nn.Module):
    def forward(self, x):
        z = x * 2
        return torch.cond(x.sum() > 0, lambda: (z.sin(), z.sum()), lambda: (x - z, z.mean()), ())


@_case(EXPORTED, *_shifted(3))
class Trees(nn.Module):
    def forward(self, x):
        positive = torch.cond(
            x.sum() > 0,
            lambda x: {"a": x * 2, "b": (x.sum(), [x + 1])},
            lambda x: {"a": x * 3, "b": (x.mean(), [x - 1])},
            (x,),
        )
        return positive["b"][1][0] + positive["a"], positive["b"][0]


@_case(EXPORTED, *((_numbers(4, shift=a), _numbers(4, seed=1, shift=b)) for a in (-2, 2) for b in (-2, 2)))
class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, y):
        z = self.linear(x)

        def positive():
            return torch.cond(y.mean() > 0, lambda: z.sin() + y, lambda: self.linear(z) - y, ())

        return torch.cond(x.sum() > 0, positive, lambda: (z * y).cos(), ()) + z


@_case(EXPORTED, (torch.tensor([2.0]), torch.tensor(0.5)), (torch.tensor([3.0]), torch.tensor(0.5)))
class Forum(nn.Module):
    """The graph of a question in PyTorch's forum: a constant from outside is written to in a branch."""

    def forward(self, x, outer):
        ret = torch.zeros(1)

        def equal():
            ret.add_(outer.double())
            return ret * 3 + 1

        return torch.cond((x == 2).all(), equal, lambda: x + 4, ())


@_case(EXPORTED, *_shifted(2, 3))
class WriteThroughView(nn.Module):
    def forward(self, x):
        whole = x * 1.0
        column = whole[:, 0]

        def positive():
            column.mul_(2)
            return whole.sum()

        return torch.cond(x.sum() > 0, positive, lambda: whole.mean(), ()) + whole


@_case(EXPORTED, *((_numbers(3, 4, shift=a), _numbers(4, seed=1, shift=b)) for a in (-2, 2) for b in (-2, 2)))
class NestedWrites(nn.Module):
    def forward(self, x, y):
        z = x * 1.0

        def positive():
            z[:, 0].mul_(2)
            return torch.cond(y.sum() > 0, lambda: z.add_(1).sum(), lambda: z.mean(), ())

        return z * torch.cond(x.sum() > 0, positive, lambda: z.sum(), ())


@_case(EXPORTED, *_shifted(3))
class WriteToInput(nn.Module):
    def forward(self, x):
        def positive():
            x.add_(1)
            return x * 2

        return torch.cond(x.sum() > 0, positive, lambda: x - 1, ())


@_case(EXPORTED, *_shifted(3))
class CountingBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        def positive():
            self.count.add_(1)
            return x + self.count

        return torch.cond(x.sum() > 0, positive, lambda: x * self.count, ())


@_case(EXPORTED, *_shifted(3))
class ReturnsCaptured(nn.Module):
    def forward(self, x):
        y = x + 1
        return torch.cond(x.sum() > 0, lambda: y, lambda: x * 2, ()) * 2


@_case(EXPORTED, *_shifted(3))
class ConstantsInBranches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda: x + torch.tensor([1.0, 2.0, 3.0]), lambda: x * torch.tensor(5.0), ())


@_case(EXPORTED, *_shifted(3, 4, shifts=(-3, 0, 3)))
class MixtureOfExperts(nn.Module):
    """The expert of the batch is the one that its mean chooses."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 5) for _ in range(3))

    def forward(self, x):
        mean = x.mean()

        def others():
            return torch.cond(mean > -1, lambda: self.experts[1](x), lambda: self.experts[2](x), ())

        return torch.cond(mean > 1, lambda: self.experts[0](x).relu(), others, ())


@_case(EXPORTED, (_numbers(4), torch.tensor(3)), (_numbers(4), torch.tensor(7)))
class ConditionOnANumber(nn.Module):
    def forward(self, x, n):
        return torch.cond(n.item() > 4, lambda x: x.sin(), lambda x: x.cos(), (x,))


@_case(EXPORTED, *_shifted(6, shifts=(-1, 0, 1)))
class SeveralInARow(nn.Module):
    def forward(self, x):
        for _ in range(3):
            x = torch.cond(x.sum() > 1, lambda x: x * 0.5 - 1, lambda x: x * 2 + 1, (x,))
        return x


# Loops


@_case(EXPORTED, *((_numbers(5), torch.tensor(n)) for n in (3, 0, 1, 10)))
class Power(nn.Module):
    def forward(self, x, n):
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 2 + i), (_zero(), x))


@_case(EXPORTED, (_numbers(5),))
class CountedByNumber(nn.Module):
    def forward(self, x):
        return while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, h[i] + h), (0, x))[1]


@_case(EXPORTED, (_numbers(3),))
class TreesInLoop(nn.Module):
    def forward(self, x):
        def body(state):
            low, high = state["h"]
            return ({"i": state["i"] + 1, "h": (low * 2, high + low)},)

        return while_loop(lambda state: state["i"] < 4, body, ({"i": _zero(), "h": (x, x.clone())},))


@_case(EXPORTED, (_numbers(6, 2, 8),), (_numbers(6, 2, 8) * 100,), (_numbers(6, 2, 8) * 0,))
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

        return while_loop(goes_on, step, (_zero(), torch.zeros(2, 4), torch.zeros(2, 4)))


@_case(EXPORTED, *_shifted(4, shifts=(-2, 0, 2)))
class CondInWhile(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        half = x * 0.5

        def body(i, h):
            return i + 1, torch.cond(h.sum() > 0, lambda: self.linear(h).tanh() + half, lambda: h - 2 * half, ())

        return while_loop(lambda i, h: i < 5, body, (_zero(), x))[1]


@_case(EXPORTED, *_shifted(4))
class WhileInCond(nn.Module):
    def forward(self, x):
        def loop():
            return while_loop(lambda i, h: h.abs().max() < 20, lambda i, h: (i + 1, h * 1.5 + i), (_zero(), x))[1]

        return torch.cond(x.sum() > 0, loop, lambda: x.cos(), ())


@_case(EXPORTED, *((_numbers(3), torch.tensor(n)) for n in (0, 1, 3)))
class WhileInWhile(nn.Module):
    def forward(self, x, n):
        def body(i, h):
            inner = while_loop(lambda j, h: j < i, lambda j, h: (j + 1, h * 1.5), (_zero(), h))[1]
            return i + 1, inner + 1

        return while_loop(lambda i, h: i < n, body, (_zero(), x))[1]


@_case(EXPORTED, *((_numbers(4), torch.tensor(n)) for n in (0, 4)))
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

        return while_loop(lambda i, h: i < n, body, (_zero(), x))[1] + total


@_case(EXPORTED, (_numbers(4),))
class WritesToItsState(nn.Module):
    def forward(self, x):
        def body(i, h):
            h = h.clone()
            h[0] = 5.0
            h.mul_(2)
            return i + 1, h

        return while_loop(lambda i, h: i < 3, body, (_zero(), x))[1]


@_case(EXPORTED, (_numbers(2, 3), torch.tensor(4)), (_numbers(2, 3) * 9, torch.tensor(5)), (_numbers(2, 3), _zero()))
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

        first = torch.zeros(2, dtype=torch.int64)
        goes_on = lambda t, token, state: torch.logical_and(t < n, (token < 6).any())  # noqa: E731
        steps, token, state = while_loop(goes_on, step, (_zero(), first, x.clone()))
        return steps, token, state, self.cache.sum(0)


@_case(EXPORTED, (_numbers(5, 2, 8),))
class ScanOfGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 4)

    def forward(self, xs):
        def step(h, x):
            h = self.cell(x, h)
            return h, h.clone()

        return scan(step, torch.zeros(2, 4), xs, dim=0)


@_case(EXPORTED, (_numbers(2, 5, 3), _numbers(3, seed=1)))
class ScanOfTrees(nn.Module):
    """Along another dim and backwards, with two results a step and a value from outside."""

    def forward(self, xs, y):
        def step(state, x):
            total = state["total"] + x * y
            return {"total": total}, (total * 2, total.sum())

        return scan(step, {"total": torch.zeros(2, 3)}, xs, dim=1, reverse=True)


@_case(EXPORTED, *_shifted(4, 3, shifts=(-1, 0, 1)))
class CondInScan(nn.Module):
    def forward(self, xs):
        def step(h, x):
            h = torch.cond(x.sum() > 0, lambda: h + x, lambda: h * 0.5, ())
            return h, h * 1

        return scan(step, torch.zeros(3), xs)


@_case(EXPORTED, (_numbers(5, 3, 4), _numbers(4, 2)))
class MapOfMatrices(nn.Module):
    def forward(self, xs, y):
        return map_rows(lambda x, y: {"product": x @ y + 1, "sum": (x.sum(),)}, xs, y)


@_case(EXPORTED, *_shifted(4, 3, shifts=(-1, 1)))
class WhileInMap(nn.Module):
    def forward(self, xs):
        def grow(x):
            return while_loop(lambda x: x.sum() < 9, lambda x: (x.abs() * 1.5 + 1,), (x * 1,))[0]

        return map_rows(grow, xs)


@_case(EXPORTED, *_shifted(3, shifts=(-1, 1)))
class Newton(nn.Module):
    """Square roots until they are close, and no more than 20 rounds."""

    def forward(self, x):
        target = x.abs() + 1

        def is_far(i, root):
            return torch.logical_and(i < 20, (root * root - target).abs().max() > 1e-3)

        return while_loop(is_far, lambda i, root: (i + 1, (root + target / root) * 0.5), (_zero(), target.clone()))


# TorchScript


@_case(SCRIPTED, (torch.tensor([2.0]), torch.tensor(0.5)), (torch.tensor([3.0]), torch.tensor(0.5)))
class ForumInPython(nn.Module):
    def forward(self, x, outer):
        ret = torch.zeros(1)
        if bool((x == 2).all()):
            ret = ret.add_(outer.double())
            ret = ret * 3 + 1
        else:
            ret = x + 4
        return ret


@_case(SCRIPTED, *((_numbers(3, shift=a), _numbers(3, seed=1, shift=b)) for a in (-2, 2) for b in (-2, 2)))
class NestedInPython(nn.Module):
    def forward(self, x, y):
        z = x * 2
        if x.sum() > 0:
            z = z + y if y.sum() > 0 else z - y
            w = z * 2
        else:
            w = x.cos()
        return w + z


@_case(SCRIPTED, *((_numbers(3, 4), torch.tensor(n)) for n in (3, 0, 1)))
class RowsByNumber(nn.Module):
    """A loop whose number of rounds is a tensor's, and which indexes with its counter."""

    def forward(self, x, n):
        total = x[0] * 0
        for i in range(int(n)):
            total = total + x[i] * i
        return total


@_case(SCRIPTED, (_numbers(3),))
class ManyRounds(nn.Module):
    """More rounds than are run one by one."""

    def forward(self, x):
        for i in range(40):
            x = torch.tanh(x) + i % 3
        return x


@_case(SCRIPTED, (_numbers(3),))
class Lists(nn.Module):
    def forward(self, x):
        rows = []
        for _ in range(20):
            x = x * 1.1
            rows.append(x)
        return torch.stack(rows)


@_case(SCRIPTED, *((_numbers(3, shift=shift),) for shift in (-9, -3, 0, 1, 2)))
class EarlyExit(nn.Module):
    def forward(self, x):
        if x.sum() > 3:
            return x * 2
        x = x + 1
        for _ in range(5):
            if x.max() > 4:
                break
            if x.min() < -4:
                return x - 1
            x = x * 1.5
        return x.cos()


@_case(SCRIPTED, *((_numbers(2, 3, shift=shift),) for shift in (-1, 1, 9)))
class BuffersInPython(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        if x.sum() > 0 and x.max() < 5:
            self.count += 1
            y = self.linear(x) + self.count
        else:
            y = self.norm(x)
        return y


@_case(SCRIPTED, (torch.rand(3),), (torch.rand(3) + 9,))
class NumbersInLoops(nn.Module):
    """An int, a float and a bool that change from round to round."""

    def forward(self, x):
        scale = 0.5
        rounds = 0
        is_even = True
        while bool(x.sum() < 10):
            scale = scale * 2 + float(x[0])
            x = x + scale * x + 1 if is_even else x + rounds
            rounds += 1
            is_even = not is_even
        return x * scale + rounds


@_case(SCRIPTED, *((_numbers(3, shift=shift),) for shift in (0, 4)))
class WritesInLoops(nn.Module):
    """Writes to what is carried, whose memory is the caller's in the first round only."""

    def forward(self, x):
        h = x
        while bool(h.sum() < 9):
            h[0] = 5.0
            h = h + 1
        return h * 2


@_case(SCRIPTED, *((_numbers(4, 3), torch.tensor(n)) for n in (0, 2)))
class RecurrentInPython(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 2)

    def forward(self, xs, n):
        h = torch.zeros(1, 2)
        out = torch.zeros(4, 2)
        for t in range(int(n)):
            h = self.cell(xs[t].unsqueeze(0), h)
            out[t] = h[0]
        return h, out
