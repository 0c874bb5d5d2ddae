"""The short way of a call gives what the long way gives, and leaves to it what it does not know."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from function_model import Function
from torch import nn

import pipeline
from pipeline.errors import ArgumentError


def both_ways(exe, *args):
    """The results of the short way, which must be the way taken, and those of the long way."""
    return exe._fast.call(args, exe._bound), exe._call(args, {}, None)


FORMS = {
    "one": (lambda x, y: x + y, [(3, 5), (3, 5)]),
    "tuple": (lambda x, y: (x + y, x * y), [(3, 5), (3, 5)]),
    "list": (lambda x: [x.sum(), x * 2], [(7,)]),
    "dictionary": (lambda x, y: {"sum": x + y, "parts": (x * 2, [y * 3])}, [(3, 5), (3, 5)]),
    "named tuple": (lambda x: x.max(-1), [(3, 5)]),
    "nothing inside": (lambda x: x + 1, [(0, 4)]),
    "scalar": (lambda x: x + 1, [()]),
    "size one": (lambda x: x.transpose(0, 1) * 2, [(1, 3, 1)]),
    "unused": (lambda x, y: x * 2, [(3,), (4,)]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bfloat16])
def test_both_ways(form, dtype):
    function, shapes = FORMS[form]
    args = tuple((torch.randn(shape) * 9).to(dtype) for shape in shapes)
    exe = pipeline.compile(Function(function), args)
    short, long = both_ways(exe, *args)
    assert short is not NotImplemented
    assert type(short) is type(long)
    for one, other in zip(torch.utils._pytree.tree_leaves(short), torch.utils._pytree.tree_leaves(long), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
        assert one.stride() == other.stride() == torch.empty(one.shape).stride()


class Step(nn.Module):
    """A step of an optimizer, without one."""

    def forward(self, parameter, momentum, gradient, unused):
        momentum.mul_(0.9).add_(gradient)
        parameter.sub_(momentum)
        return momentum.sum(), gradient * 2


def test_arguments_that_are_written_to():
    args = [nn.Parameter(torch.ones(5)), torch.zeros(5), torch.arange(5.0), torch.ones(3)]
    with torch.no_grad():
        exe = pipeline.compile(Step(), tuple(one.detach().clone() for one in args))
        versions = [one._version for one in args]
        for step in range(3):
            expected = [one.detach().clone() for one in args]
            Step()(*expected)
            result = exe._fast.call(tuple(args), exe._bound)
            torch.testing.assert_close([one.detach() for one in args], expected)
            torch.testing.assert_close(result, (expected[1].sum(), expected[2] * 2))
            assert [one._version - before for one, before in zip(args, versions, strict=True)] == [step + 1] * 2 + [
                0
            ] * 2
        shared = torch.zeros(8)
        for bad in ((shared[:5], shared[3:]), (args[0], args[0])):
            assert exe._fast.call((*bad, *args[2:]), exe._bound) is NotImplemented
        with pytest.raises(ArgumentError, match="shares memory"):
            exe(shared[:5], shared[3:], *args[2:])
        assert not shared.any()


def test_checks_that_fail():
    exe = pipeline.compile(Function(lambda table, place, unused: table[place] * 2), (X, torch.tensor([1]), X))
    assert exe._layout.status is not None
    short, long = both_ways(exe, X, torch.tensor([2]), X)
    assert torch.equal(short, long)
    assert exe._fast.call((X, torch.tensor([3]), X), exe._bound) is NotImplemented
    with pytest.raises(pipeline.PipelineError, match="out of range"):
        exe(X, torch.tensor([3]), X)
    assert torch.equal(exe(nn.Parameter(X), torch.tensor([0]), X), X[:1] * 2)


X = torch.arange(12.0).view(3, 4)
OTHERS = {
    "transposed": X.t().contiguous().t(),
    "a buffer of a subclass": nn.Buffer(X.as_subclass(type("Other", (torch.Tensor,), {}))),
    "numpy": X.numpy(),
    "negated view": torch.view_as_complex(torch.stack((X, X), -1)).conj().imag.neg(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_long_way_takes_over(name):
    exe = pipeline.compile(Function(lambda x: x * 2), (X,))
    assert torch.equal(torch.as_tensor(np.asarray(exe(OTHERS[name]))), X * 2)


WRONG = [(), (X, X), (X.double(),), (X.view(4, 3),), (X.to_sparse(),), (1.0,), (None,)]


@pytest.mark.parametrize("args", WRONG)
def test_the_long_way_says_what_is_wrong(args):
    exe = pipeline.compile(Function(lambda x: x * 2), (X,))
    assert exe._fast is not None
    with pytest.raises(ArgumentError, match="expected"):
        exe(*args)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x * 2


def write_where_checked(x, i):
    x.add_(1)
    return x[i]


NOT_FAST = {
    "mutation of a weight": lambda: pipeline.compile(Counts(), (X,)),
    "checks and writes": lambda: pipeline.compile(Function(write_where_checked), (X.clone(), torch.tensor([1]))),
    "returns its argument": lambda: pipeline.compile(Function(lambda x: (x, x * 2)), (X,)),
    "constant argument": lambda: pipeline.compile(Function(lambda x, n: x * n), (X, 2)),
}


@pytest.mark.parametrize("name", NOT_FAST)
def test_what_has_only_the_long_way(name):
    assert NOT_FAST[name]()._fast is None


def test_refreshed_weights_are_seen():
    net = nn.Linear(4, 2).requires_grad_(False)
    exe = pipeline.compile(net, (X,))
    exe(X)
    net.weight.mul_(2)
    exe.refresh()
    torch.testing.assert_close(exe(X), net(X))
