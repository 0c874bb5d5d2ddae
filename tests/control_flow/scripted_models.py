"""Models that branch and loop in Python, through TorchScript."""

from __future__ import annotations

import torch
from cases import Cases, case, numbers
from torch import nn

#: (model, sets of arguments) by name.
SCRIPTED: Cases = {}


@case(SCRIPTED, (torch.tensor([2.0]), torch.tensor(0.5)), (torch.tensor([3.0]), torch.tensor(0.5)))
class ForumInPython(nn.Module):
    def forward(self, x, outer):
        ret = torch.zeros(1)
        if bool((x == 2).all()):
            ret = ret.add_(outer.double())
            ret = ret * 3 + 1
        else:
            ret = x + 4
        return ret


@case(SCRIPTED, *((numbers(3, shift=a), numbers(3, seed=1, shift=b)) for a in (-2, 2) for b in (-2, 2)))
class NestedInPython(nn.Module):
    def forward(self, x, y):
        z = x * 2
        if x.sum() > 0:
            z = z + y if y.sum() > 0 else z - y
            w = z * 2
        else:
            w = x.cos()
        return w + z


@case(SCRIPTED, *((numbers(3, 4), torch.tensor(n)) for n in (3, 0, 1)))
class RowsByNumber(nn.Module):
    """A loop whose number of rounds is a tensor's, and which indexes with its counter."""

    def forward(self, x, n):
        total = x[0] * 0
        for i in range(int(n)):
            total = total + x[i] * i
        return total


@case(SCRIPTED, (numbers(3),))
class ManyRounds(nn.Module):
    """More rounds than are run one by one."""

    def forward(self, x):
        for i in range(40):
            x = torch.tanh(x) + i % 3
        return x


@case(SCRIPTED, (numbers(3),))
class Lists(nn.Module):
    def forward(self, x):
        rows = []
        for _ in range(20):
            x = x * 1.1
            rows.append(x)
        return torch.stack(rows)


@case(SCRIPTED, *((numbers(3, shift=shift),) for shift in (-9, -3, 0, 1, 2)))
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


@case(SCRIPTED, *((numbers(2, 3, shift=shift),) for shift in (-1, 1, 9)))
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


@case(SCRIPTED, (torch.rand(3),), (torch.rand(3) + 9,))
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


@case(SCRIPTED, *((numbers(3, shift=shift),) for shift in (0, 4)))
class WritesInLoops(nn.Module):
    """Writes to what is carried, whose memory is the caller's in the first round only."""

    def forward(self, x):
        h = x
        while bool(h.sum() < 9):
            h[0] = 5.0
            h = h + 1
        return h * 2


@case(SCRIPTED, *((numbers(4, 3), torch.tensor(n)) for n in (0, 2)))
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


@case(SCRIPTED, *((numbers(3, shift=shift), numbers(3, seed=1)) for shift in (-2, 0, 2)))
class BranchReturnsWhatItWritesTo(nn.Module):
    def forward(self, x, y):
        a = x * 1
        if bool(x.sum() > 0):
            a = (a + y).clamp(-8, 8)
        else:
            a.view(-1)[0] += 1
        a.mul_(0.5).floor_()
        return a


@case(SCRIPTED, *((numbers(3, 4, shift=shift), numbers(3, 4, seed=1)) for shift in (-3, 0, 3)))
class BranchesInALoopHandOnOneTensorOrTwo(nn.Module):
    """What a round goes on with is one tensor behind a branch, and two where the loop is left."""

    def forward(self, x, y):
        b = y + 1
        c = x - y
        k = torch.zeros(())
        while bool(c.max() > b.min() + 1) and bool(k < 3):
            if bool((b < 0).any()):
                if bool((c < -2).any()):
                    break
            else:
                c = (b.abs() - x.sum()).clamp(-8, 8)
                b.mul_(0.5).floor_()
            b.copy_(c)
            k = k + 1
            b = b.clamp(-8, 8)
            c = c.clamp(-8, 8)
        b = (c + 1.25).clamp(-8, 8)
        c[-1:].neg_()
        return b, c
