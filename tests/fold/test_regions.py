"""Norms inside the branches and bodies of torch.cond and torch.while_loop fold by the same rules as elsewhere."""

import copy

import torch
import torch.nn.functional as F
from support import assert_close, main_text, randomize, remarks
from torch import nn
from torch._higher_order_ops import while_loop

import pipeline


def layers(kernel=3):
    return nn.Sequential(nn.Conv2d(4, 4, kernel, padding=kernel // 2, bias=False), nn.BatchNorm2d(4))


class Net(nn.Module):
    """A few layers and norms for the models below to use."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.norm, self.other = layers(), layers(1), nn.BatchNorm2d(4), nn.BatchNorm2d(4)


class Branches(Net):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda: F.relu(self.one(x)), lambda: self.two(x).sin(), ())


class NestedBranches(Net):
    def forward(self, x):
        def positive():
            return torch.cond(x.amax() > 2, lambda: F.relu(self.one(x)), lambda: self.two(x).cos(), ())

        return torch.cond(x.sum() > 0, positive, lambda: self.norm(self.two[0](x) + 1), ())


class NormInsideOfConvolutionOutside(Net):
    """Its result has one user, in one of the branches; the other branch does not look at it."""

    def forward(self, x):
        y = self.one[0](x)
        return torch.cond(x.sum() > 0, lambda: F.relu(self.norm(y)), lambda: x.sin(), ())


class NormsOfBothBranches(Net):
    """The convolution's result has two users: each branch would need its own weight."""

    def forward(self, x):
        y = self.one[0](x)
        return torch.cond(x.sum() > 0, lambda: self.norm(y), lambda: self.other(y), ())


class Affine(Net):
    """Norms of the data alone."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda: self.norm(x.sin()), lambda: self.other(x.cos()), ())


class Parallel(Net):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda: F.relu(self.one(x) + self.two(x) + self.norm(x)), lambda: x.sin(), ())


class Loop(Net):
    def forward(self, x):
        def step(i, y):
            return i + 1, torch.tanh(self.one(y))

        return while_loop(lambda i, y: (i < 3) & (y.sum() < 1000), step, (torch.zeros((), dtype=torch.int64), x))[1]


class BranchInLoop(Net):
    def forward(self, x):
        def step(i, y):
            y = torch.cond(y.sum() > 0, lambda: torch.tanh(self.one(y)), lambda: torch.tanh(self.two(y)), ())
            return i + 1, y.clone()

        return while_loop(lambda i, y: i < 3, step, (torch.zeros((), dtype=torch.int64), x))[1]


class NormOfWhatTheLoopChanges(Net):
    """The convolution feeds the loop, whose body normalizes its own value: that is no convolution's result."""

    def forward(self, x):
        def step(i, y):
            return i + 1, self.norm(y)

        start = torch.zeros((), dtype=torch.int64), self.one[0](x)
        return while_loop(lambda i, y: i < 3, step, start)[1]


class BatchStatistics(Net):
    def forward(self, x):
        def positive():
            return F.batch_norm(self.one[0](x), None, None, self.norm.weight, self.norm.bias, True)

        return torch.cond(x.sum() > 0, positive, lambda: x.sin(), ())


def compiled(form):
    """The executable, after it gave what eager gives on both ways, for the first weights and for new ones."""
    torch.manual_seed(0)
    model = randomize(form())
    inputs = [torch.randn(2, 4, 5, 6) + shift for shift in (0.5, -0.5, 3)]
    executable = pipeline.compile(model, (inputs[0],))
    before = [executable(x).clone() for x in inputs]
    for x, result in zip(inputs, before, strict=True):
        assert_close(result, copy.deepcopy(model).double()(x.double()).float(), 1e-5)
    randomize(model, seed=1)
    for weight in (model.one[0].weight, model.two[0].weight):
        weight.mul_(-1.5)
    executable.refresh()
    after = [executable(x) for x in inputs]
    for x, result in zip(inputs, after, strict=True):
        assert_close(result, copy.deepcopy(model).double()(x.double()).float(), 1e-5)
    assert not any(torch.allclose(one, other, rtol=0.1) for one, other in zip(before[:1], after, strict=False))
    return executable


def folded(executable, name="fold-batch-norm"):
    return len(remarks(executable, name, "passed"))


def test_in_both_branches():
    executable = compiled(Branches)
    assert folded(executable) == 2
    assert "sqrt" not in main_text(executable) and "arith.subf" not in main_text(executable)


def test_in_nested_branches():
    executable = compiled(NestedBranches)
    assert folded(executable) == 3
    assert "sqrt" not in main_text(executable)


def test_out_of_a_branch_into_the_convolution_before_it():
    executable = compiled(NormInsideOfConvolutionOutside)
    assert folded(executable) == 1
    assert "sqrt" not in main_text(executable)


def test_a_result_for_both_branches_stays_as_it_is():
    executable = compiled(NormsOfBothBranches)
    assert folded(executable) == 0
    missed = remarks(executable, "fold-batch-norm", "missed")
    assert missed == ["not folded into what it reads: the unscaled result of conv2d has another user"] * 2
    assert folded(executable, "merge-scale-shifts") == 2
    assert "sqrt" not in main_text(executable)


def test_lone_norms_are_one_multiply_and_one_add():
    executable = compiled(Affine)
    text = main_text(executable)
    assert [text.count(f"arith.{op}") for op in ("mulf", "subf", "divf")] == [2, 0, 0]
    assert "sqrt" not in text


def test_parallel_convolutions_in_a_branch():
    executable = compiled(Parallel)
    assert folded(executable, "merge-parallel-convs") == 1
    text = main_text(executable)
    assert text.count("linalg.conv") + text.count('"parallel", "reduction", "reduction", "reduction"]') == 1


def test_in_the_body_of_a_loop():
    executable = compiled(Loop)
    assert folded(executable) == 1
    assert "sqrt" not in main_text(executable)


def test_in_a_branch_in_a_loop():
    executable = compiled(BranchInLoop)
    assert folded(executable) == 2
    assert "sqrt" not in main_text(executable)


def test_a_value_that_the_loop_changes_has_no_convolution_behind_it():
    executable = compiled(NormOfWhatTheLoopChanges)
    assert folded(executable) == 0
    assert "its data comes from an argument" in remarks(executable, "fold-batch-norm", "missed")[0]
    assert "sqrt" not in main_text(executable)


def test_statistics_of_the_batch_stay():
    executable = compiled(BatchStatistics)
    assert folded(executable) == 0
    assert "sqrt" in main_text(executable)
