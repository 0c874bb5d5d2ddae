"""A convolution whose unscaled result has another user keeps its weight: that user would get scaled numbers."""

import pytest
import torch
import torch.nn.functional as F
from support import assert_close, randomize, remarks
from torch import nn

import pipeline


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.other = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.BatchNorm2d(4)


class Returned(Net):
    def forward(self, x):
        y = self.conv(x)
        return self.norm(y), y


class Residual(Net):
    def forward(self, x):
        y = self.conv(x)
        return F.relu(self.norm(y)) + y


class Viewed(Net):
    def forward(self, x):
        y = self.conv(x)
        return self.norm(y), y.flatten(1)[:, ::2]


class TwoNorms(Net):
    def forward(self, x):
        y = self.conv(x)
        return self.norm(y), self.other(y)


class ChangedInPlace(Net):
    def forward(self, x):
        y = self.conv(x)
        z = self.norm(y)
        y.mul_(2)
        return z, y


class ShapeAndMean(Net):
    def forward(self, x):
        y = self.conv(x)
        return self.norm(y) * y.mean()


class BehindAView(Net):
    def forward(self, x):
        y = self.conv(x).flatten(2)
        return self.norm(y.unflatten(2, (6, 5))), y


class InABranch(Net):
    def forward(self, x):
        y = self.conv(x)
        return self.norm(y), torch.cond(x.sum() > 0, lambda: y.sin(), lambda: y.cos(), ())


class Concatenated(Net):
    def forward(self, x):
        y = self.conv(x)
        return self.norm(y), torch.cat([y, x])


@pytest.mark.parametrize(
    "form",
    [Returned, Residual, Viewed, TwoNorms, ChangedInPlace, ShapeAndMean, BehindAView, InABranch, Concatenated],
)
def test_every_user_gets_its_own_numbers(form):
    torch.manual_seed(0)
    model, x = randomize(form()), torch.randn(2, 4, 6, 5)
    executable = pipeline.compile(model, (x,))
    for _ in range(2):
        wanted, got = model(x), executable(x)
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        for result, expected in pairs:
            assert_close(result, expected, 1e-5)
        randomize(model, seed=1)
        model.conv.weight.mul_(-2)
        executable.refresh()
    assert remarks(executable, "fold-batch-norm", "passed") == []
    missed = remarks(executable, "fold-batch-norm", "missed")
    assert missed and all("has another user" in reason for reason in missed)
