"""Small models whose reports tests look at."""

from __future__ import annotations

import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop


class Block(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.norm = nn.BatchNorm2d(filters)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = Block(3, 16), Block(16, 16), Block(16, 8)

    def forward(self, x):
        x = self.first(x)
        x = x + self.second(x)
        return self.third(x).mean((2, 3))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: torch.relu(self.left(x)), lambda x: self.right(x).tanh(), (x,))


class Rounds(nn.Module):
    def forward(self, x):
        def body(i, x):
            return i + 1, torch.tanh(x @ x)

        return while_loop(lambda i, x: i < 3, body, (torch.tensor(0), x))[1]


def net():
    torch.manual_seed(0)
    return Net().eval(), (torch.randn(1, 3, 16, 16),)


def branches():
    torch.manual_seed(0)
    return Branches().eval(), (torch.ones(4, 16),)


def rounds():
    return Rounds(), (torch.eye(16),)
