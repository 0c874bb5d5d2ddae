"""Functions of torch that cannot do in a captured model what they do in eager: replaced by checks, or refused."""

from __future__ import annotations

import pytest
import torch
import torch.distributions as dist
import torch.nn.functional as F
from torch.export import Dim

import pipeline

DISTRIBUTIONS = {
    "normal": lambda x: dist.Normal(x, x).log_prob(x),
    "categorical": lambda x: dist.Categorical(logits=x).log_prob(torch.tensor([1, 2, 3])),
    "dirichlet": lambda x: dist.Dirichlet(x).log_prob(x / x.sum(-1, keepdim=True)),
    "divergence": lambda x: dist.kl_divergence(dist.Normal(x, x), dist.Normal(0.0, 1.0)),
    "transformed": lambda x: dist.TransformedDistribution(dist.Normal(x, x), [dist.TanhTransform()]).log_prob(
        torch.tanh(x)
    ),
    "mixture": lambda x: dist.MixtureSameFamily(dist.Categorical(logits=x), dist.Normal(x, x)).log_prob(x[:, 0]),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name):
    x = torch.rand(3, 4) + 0.1
    torch.testing.assert_close(pipeline.compile(DISTRIBUTIONS[name], (x,))(x), DISTRIBUTIONS[name](x))


def test_a_distribution_checks_what_it_is_given(monkeypatch):
    monkeypatch.setattr(dist.Distribution, "_validate_args", True)  # dynamo turns it off for the process
    executable = pipeline.compile(DISTRIBUTIONS["normal"], (torch.ones(3),))
    with pytest.raises(pipeline.PipelineError, match="a parameter or a value that its distribution does not take"):
        executable(-torch.ones(3))


WITH_SYMBOLIC_SIZES = {
    "one_hot": lambda x: F.one_hot(x.argmax(1), x.shape[0] + 4),
    "one_hot of a number": lambda x: F.one_hot(x.argmax(1), 4),
    "combinations": lambda x: torch.combinations(x[:, 0]),
    "combinations with replacement": lambda x: torch.combinations(x.argmax(1), with_replacement=True),
    "combinations of one": lambda x: torch.combinations(x[:, 1], 1),
    "combinations of a row": lambda x: (torch.combinations(x[0], 3), torch.combinations(x[0, :0], 2, True)),
    "kron": lambda x: torch.kron(x, torch.ones(2, 3)),
    "kron of ranks": lambda x: x[:, 0].kron(x),
    "take along a dim": lambda x: torch.take_along_dim(x, x.argmax(0, keepdim=True), 0),
    "take along a dim of one": lambda x: x.take_along_dim(torch.tensor([[1]]), 1),
    "take from a row": lambda x: x[:1].take_along_dim(x.argsort(1), dim=-1),
    "take of all": lambda x: x.take_along_dim(torch.tensor([0, 3])),
}


@pytest.mark.parametrize("name", WITH_SYMBOLIC_SIZES)
def test_sizes_stay_symbolic(name):
    function = WITH_SYMBOLIC_SIZES[name]
    symbolic = pipeline.compile(function, (torch.randn(6, 4),), dynamic_shapes=({0: Dim.AUTO},), fallback="error")
    for size in (6, 1, 2, 5, 9):
        x = torch.randn(size, 4)
        torch.testing.assert_close(symbolic(x), function(x))
    torch.testing.assert_close(pipeline.compile(function, (x,))(x), function(x))


@pytest.mark.parametrize("with_replacement", [False, True])
def test_pairs_of_many(with_replacement):
    """Which two they are is found by a root, which is rounded."""

    def pairs(x):
        return torch.combinations(x, with_replacement=with_replacement)

    compiled = pipeline.compile(pairs, (torch.arange(5),), dynamic_shapes=({0: Dim.DYNAMIC},), fallback="error")
    for count in (0, 1, 2, 257, 3000):
        assert torch.equal(compiled(torch.arange(count)), pairs(torch.arange(count)))


def test_a_class_that_there_is_not():
    executable = pipeline.compile(
        lambda x, y: F.one_hot(x, y.shape[0]),
        (torch.zeros(2, dtype=torch.int64), torch.ones(3)),
        dynamic_shapes=({}, {0: Dim.AUTO}),
    )
    assert executable(torch.tensor([1, 3]), torch.ones(4)).shape == (2, 4)
    for classes in ([0, 2], [-1, 0]):
        with pytest.raises(pipeline.PipelineError, match="one_hot: Class values must be"):
            executable(torch.tensor(classes), torch.ones(2))


def test_torch_is_left_as_it_was():
    pipeline.compile(torch.tanh, (torch.ones(3),))
    assert "kron" not in vars(torch.Tensor) and torch.Tensor.kron is torch._C.TensorBase.kron


def seeds(x):
    torch.manual_seed(3)
    return x + torch.rand(3)


def changes_the_default(x):
    torch.set_default_dtype(torch.float64)
    try:
        return x + torch.ones(3)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("model", [seeds, changes_the_default])
def test_the_state_of_the_process_is_none_of_a_model(model):
    with pytest.raises(pipeline.CaptureError, match="in a model runs while it is captured, not in each call"):
        pipeline.compile(model, (torch.ones(3),))
    assert torch.get_default_dtype() == torch.float32
