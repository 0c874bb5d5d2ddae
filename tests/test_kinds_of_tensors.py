"""Tensors that have no elements in plain memory, as arguments and weights: right, or one clear error, never a crash."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import pipeline


class Plain(torch.Tensor):
    """A subclass that changes nothing."""


class Wrapper(torch.Tensor):
    """A subclass without memory of its own, as those of quantization libraries."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        unwrapped = [arg.inner if isinstance(arg, Wrapper) else arg for arg in args]
        return function(*unwrapped, **(kwargs or {}))


def freed():
    x = torch.randn(2, 4)
    x.untyped_storage().resize_(0)
    return x


REFUSED = {
    "fake": lambda: FakeTensorMode().from_tensor(torch.randn(2, 4)),
    "meta": lambda: torch.empty(2, 4, device="meta"),
    "sparse": lambda: torch.eye(4)[:2].to_sparse(),
    "csr": lambda: torch.eye(4)[:2].to_sparse_csr(),
    "quantized": lambda: torch.quantize_per_tensor(torch.randn(2, 4), 0.1, 0, torch.qint8),
    "nested": lambda: torch.nested.nested_tensor([torch.randn(2, 4)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.randn(2, 4)], layout=torch.jagged),
    "mkldnn": lambda: torch.randn(2, 4).to_mkldnn(),
    "wrapper": lambda: Wrapper(torch.randn(2, 4)),
    "freed": freed,
}

TAKEN = {
    "subclass": lambda: torch.randn(2, 4).as_subclass(Plain),
    "parameter": lambda: nn.Parameter(torch.randn(2, 4)),
    "requires grad": lambda: torch.randn(2, 4, requires_grad=True) * 1,
    "negative view": lambda: torch.randn(2, 4, dtype=torch.complex64).conj().imag,
    "expanded": lambda: torch.randn(1, 4).expand(2, 4),
    "transposed": lambda: torch.randn(4, 2).T,
    "part": lambda: torch.randn(9)[1:].view(2, 4),
    "inference": lambda: torch.inference_mode()(torch.randn)(2, 4),
}


class Tanh(nn.Module):
    def forward(self, x):
        return torch.tanh(x) + 1


@pytest.fixture(scope="module")
def tanh():
    return pipeline.compile(Tanh(), (torch.randn(2, 4),))


@pytest.mark.parametrize("kind", REFUSED)
def test_an_argument_that_is_refused(kind, tanh):
    with pytest.raises(pipeline.ArgumentError, match="argument x: expected"):
        tanh(REFUSED[kind]())


@pytest.mark.parametrize("kind", TAKEN)
def test_an_argument_that_is_taken(kind, tanh):
    x = TAKEN[kind]()
    torch.testing.assert_close(tanh(x), Tanh()(x.detach().as_subclass(torch.Tensor)))


def test_inside_of_vmap(tanh):
    x = torch.randn(3, 2, 4)
    torch.testing.assert_close(torch.func.vmap(tanh)(x), torch.func.vmap(Tanh())(x))


DIFFERENTIATED = {
    "grad": lambda call, x: torch.func.grad(lambda x: call(x).sum())(x),
    "vjp": lambda call, x: torch.func.vjp(call, x),
    "jvp": lambda call, x: torch.func.jvp(call, (x,), (x,)),
    "jacfwd": lambda call, x: torch.func.jacfwd(call)(x),
    "jacrev": lambda call, x: torch.func.jacrev(call)(x),
}


@pytest.mark.parametrize("transform", DIFFERENTIATED)
def test_inside_of_a_derivative(transform, tanh):
    with pytest.raises(pipeline.ArgumentError, match=r"argument x: expected .*got one that torch.func"):
        DIFFERENTIATED[transform](tanh, torch.randn(2, 4))


class Weighted(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x):
        return torch.tanh(self.weight) + x


@pytest.mark.parametrize("kind", TAKEN)
def test_a_weight_that_is_taken(kind):
    model, x = Weighted(TAKEN[kind]()), torch.randn(4)
    with torch.no_grad():
        torch.testing.assert_close(pipeline.compile(model, (x,))(x), model(x).as_subclass(torch.Tensor))


@pytest.mark.parametrize("kind", [kind for kind in REFUSED if kind not in ("sparse", "csr")])
def test_a_weight_that_is_refused(kind):
    with pytest.raises(pipeline.PipelineError):
        pipeline.compile(Weighted(REFUSED[kind]()), (torch.randn(4),))
