"""Models that branch on the values of tensors, by torch.cond."""

from __future__ import annotations

import torch
from cases import Cases, case, numbers, shifted
from torch import nn

#: (model, sets of arguments) by name.
BRANCHES: Cases = {}


@case(BRANCHES, *shifted(3, 4))
class TwoResults(nn.Module):
    def forward(self, x):
        z = x * 2
        return torch.cond(x.sum() > 0, lambda: (z.sin(), z.sum()), lambda: (x - z, z.mean()), ())


@case(BRANCHES, *shifted(3))
class Trees(nn.Module):
    def forward(self, x):
        positive = torch.cond(
            x.sum() > 0,
            lambda x: {"a": x * 2, "b": (x.sum(), [x + 1])},
            lambda x: {"a": x * 3, "b": (x.mean(), [x - 1])},
            (x,),
        )
        return positive["b"][1][0] + positive["a"], positive["b"][0]


@case(BRANCHES, *((numbers(4, shift=a), numbers(4, seed=1, shift=b)) for a in (-2, 2) for b in (-2, 2)))
class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, y):
        z = self.linear(x)

        def positive():
            return torch.cond(y.mean() > 0, lambda: z.sin() + y, lambda: self.linear(z) - y, ())

        return torch.cond(x.sum() > 0, positive, lambda: (z * y).cos(), ()) + z


@case(BRANCHES, (torch.tensor([2.0]), torch.tensor(0.5)), (torch.tensor([3.0]), torch.tensor(0.5)))
class Forum(nn.Module):
    """The graph of a question in PyTorch's forum: a constant from outside is written to in a branch."""

    def forward(self, x, outer):
        ret = torch.zeros(1)

        def equal():
            ret.add_(outer.double())
            return ret * 3 + 1

        return torch.cond((x == 2).all(), equal, lambda: x + 4, ())


@case(BRANCHES, *shifted(2, 3))
class WriteThroughView(nn.Module):
    def forward(self, x):
        whole = x * 1.0
        column = whole[:, 0]

        def positive():
            column.mul_(2)
            return whole.sum()

        return torch.cond(x.sum() > 0, positive, lambda: whole.mean(), ()) + whole


@case(BRANCHES, *((numbers(3, 4, shift=a), numbers(4, seed=1, shift=b)) for a in (-2, 2) for b in (-2, 2)))
class NestedWrites(nn.Module):
    def forward(self, x, y):
        z = x * 1.0

        def positive():
            z[:, 0].mul_(2)
            return torch.cond(y.sum() > 0, lambda: z.add_(1).sum(), lambda: z.mean(), ())

        return z * torch.cond(x.sum() > 0, positive, lambda: z.sum(), ())


@case(BRANCHES, *shifted(3))
class WriteToInput(nn.Module):
    def forward(self, x):
        def positive():
            x.add_(1)
            return x * 2

        return torch.cond(x.sum() > 0, positive, lambda: x - 1, ())


@case(BRANCHES, *shifted(3))
class CountingBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        def positive():
            self.count.add_(1)
            return x + self.count

        return torch.cond(x.sum() > 0, positive, lambda: x * self.count, ())


@case(BRANCHES, *shifted(3))
class ReturnsCaptured(nn.Module):
    def forward(self, x):
        y = x + 1
        return torch.cond(x.sum() > 0, lambda: y, lambda: x * 2, ()) * 2


@case(BRANCHES, *shifted(3))
class ConstantsInBranches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda: x + torch.tensor([1.0, 2.0, 3.0]), lambda: x * torch.tensor(5.0), ())


@case(BRANCHES, *shifted(3, 4, shifts=(-3, 0, 3)))
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


@case(BRANCHES, (numbers(4), torch.tensor(3)), (numbers(4), torch.tensor(7)))
class ConditionOnANumber(nn.Module):
    def forward(self, x, n):
        return torch.cond(n.item() > 4, lambda x: x.sin(), lambda x: x.cos(), (x,))


@case(BRANCHES, *shifted(6, shifts=(-1, 0, 1)))
class SeveralInARow(nn.Module):
    def forward(self, x):
        for _ in range(3):
            x = torch.cond(x.sum() > 1, lambda x: x * 0.5 - 1, lambda x: x * 2 + 1, (x,))
        return x


@case(BRANCHES, *shifted(3))
class ReturnsWhatItWritesTo(nn.Module):
    def forward(self, x):
        total = x * 1

        def writes():
            total.view(-1)[0] += 1
            return total

        return (torch.cond(x.sum() > 0, lambda: x + total, writes, ()) * 0.5).floor()
