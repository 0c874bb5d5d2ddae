"""Optimizers' steps through torch.compile: in place, in code, as eager's."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pipeline
from pipeline.frontend.gradients.foreach import for_each

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True, foreach=True),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.1, foreach=True),
    "adamax": lambda p: torch.optim.Adamax(p, 0.01, foreach=True),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_steps(make, count):
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))
    reference = copy.deepcopy(model)
    ours, theirs = make(model.parameters()), make(reference.parameters())
    step = torch.compile(ours.step, backend="pipeline")
    places = [parameter.data_ptr() for parameter in model.parameters()]
    for _ in range(4):
        x = torch.randn(7, 5)
        for each, optimizer, advance in ((model, ours, step), (reference, theirs, theirs.step)):
            optimizer.zero_grad()
            each(x).square().sum().backward()
            advance()
    torch.testing.assert_close(model.state_dict(), reference.state_dict(), rtol=1e-5, atol=1e-6)
    assert [parameter.data_ptr() for parameter in model.parameters()] == places
    assert count["direct"] == count["graphs"]


def test_a_compiled_model_sees_what_a_compiled_step_wrote():
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    step, compiled = torch.compile(optimizer.step, backend="pipeline"), torch.compile(model, backend="pipeline")
    x = torch.randn(2, 4)
    for _ in range(3):
        optimizer.zero_grad()
        compiled(x).square().sum().backward()
        step()
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), model(x))


def test_a_rate_that_is_a_tensor_is_an_argument(count):
    parameter = torch.ones(5, requires_grad=True)
    optimizer = torch.optim.AdamW([parameter], lr=torch.tensor(0.1))
    reference = parameter.detach().clone().requires_grad_()
    eager = torch.optim.AdamW([reference], lr=torch.tensor(0.1))
    step = torch.compile(optimizer.step, backend="pipeline")
    for number in range(5):
        parameter.grad, reference.grad = torch.full((5,), number - 2.0), torch.full((5,), number - 2.0)
        for each in (optimizer, eager):
            each.param_groups[0]["lr"].fill_(0.1 / (number + 1))
        step()
        eager.step()
    torch.testing.assert_close(parameter, reference)
    assert count["graphs"] <= 2  # the first one makes the optimizer's state


def test_ops_on_lists():
    """Each op that optimizers have, with each form of its arguments, beside eager's."""
    lists = [[torch.rand(3) + 0.5, torch.rand(2, 2) + 0.5] for _ in range(3)]
    numbers, line = [1.5, 2.5], torch.tensor([1.5, 2.5])
    cases = {
        "add.List": (*lists[:2],), "add.Scalar": (lists[0], 2.0), "add.ScalarList": (lists[0], numbers),
        "sub.List": (*lists[:2],), "mul.Tensor": (lists[0], line[0]), "div.ScalarList": (lists[0], numbers),
        "pow.ScalarAndTensor": (2.0, lists[0]), "pow.Scalar": (lists[0], 2.0), "sqrt": (lists[0],),
        "clamp_min.List": (*lists[:2],), "clamp_max.Scalar": (lists[0], 0.7), "maximum.Scalar": (lists[0], 0.9),
        "minimum.ScalarList": (lists[0], numbers), "addcmul.Scalar": (*lists, 0.5), "addcmul.Tensor": (*lists, line),
        "addcdiv.ScalarList": (*lists, numbers), "lerp.Scalar": (*lists[:2], 0.3), "lerp.List": (*lists,),
        "norm.Scalar": (lists[0], 2), "sign": (lists[0],), "neg": (lists[0],), "reciprocal": (lists[0],),
        "max": (lists[0],), "zero": (lists[0],), "copy": (*lists[:2],),
    }  # fmt: skip
    for name, args in cases.items():
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, f"_foreach_{packet}"), overload or "default")
        torch.testing.assert_close(for_each()[op](*args), list(op(*args)), msg=name)


def test_sparse_gradients_are_eagers():
    """Dynamo gives a backend no graph of them."""
    table = nn.Embedding(4, 2, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())
    table(torch.tensor([1, 2])).sum().backward()
    step = torch.compile(optimizer.step, backend="pipeline")
    before = table.weight.detach().clone()
    step()
    assert not torch.equal(table.weight, before)
    assert pipeline.executables(step) == []
