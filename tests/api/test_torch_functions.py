"""Functions of torch that cannot do in a captured model what they do in eager: replaced by checks, or refused."""

from __future__ import annotations

import pytest
import torch
import torch.distributions as dist

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
