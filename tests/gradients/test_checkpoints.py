"""Checkpoints: backward computes again what forward has not kept, of the same random numbers."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import Tensor, nn
from torch._functorch import config as functorch_config
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """A layer, something of it that may draw numbers, and a residual; shapes (batch, tokens, 8)."""

    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(8, 24, dtype=torch.float64), function

    def forward(self, x: Tensor) -> Tensor:
        return x + self.function(self.layer(x))[..., :8]


def attention(p: float, **options):
    def attend(rows: Tensor) -> Tensor:
        queries, keys, values = rows.unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        result = F.scaled_dot_product_attention(queries, keys, values, dropout_p=p, **options)
        return result.transpose(1, 2).flatten(2)

    return attend


BLOCKS = {
    "attention": attention(0.0),
    "causal attention": attention(0.0, is_causal=True),
    "attention with a mask": attention(0.0, attn_mask=torch.tril(torch.ones(5, 5, dtype=torch.bool))),
    "attention with dropout": attention(0.3),
    "dropout": lambda rows: F.dropout(F.gelu(rows), 0.3),
    "dropout of nothing": lambda rows: F.dropout(F.gelu(rows), 0.0),
    "alpha dropout": lambda rows: F.alpha_dropout(F.selu(rows), 0.3, training=True),
    "dropout of channels": lambda rows: F.dropout1d(rows, 0.3),
    "noise": lambda rows: (rows + 0.3 * torch.randn_like(rows)).tanh(),
    "bernoulli": lambda rows: rows.tanh() * torch.bernoulli(torch.sigmoid(rows)),
    "gumbel_softmax": lambda rows: F.gumbel_softmax(rows, tau=0.5),
    "rand of a size": lambda rows: rows * torch.rand(rows.shape[-1], dtype=rows.dtype),
    "two that share numbers": lambda rows: (lambda mask: rows.sin() * mask + rows.cos() * mask)(torch.rand_like(rows)),
}


def losses(block, tokens=5, *, call=None, checkpointed=True, reentrant=False):
    """A result and gradients of two blocks; `call` compiles or leaves as is."""

    def both(x: Tensor) -> Tensor:
        if not checkpointed:
            return block(block(x))
        inner = checkpoint(block, x, use_reentrant=reentrant)
        return checkpoint(block, inner, use_reentrant=reentrant)

    block.zero_grad()
    torch.manual_seed(4)
    x = torch.linspace(-1, 1, 2 * tokens * 8, dtype=torch.float64).reshape(2, tokens, 8).requires_grad_()
    result = call(both)(x) if call else both(x)
    result.square().sum().backward()
    return [result.detach(), x.grad, *(weight.grad for weight in block.parameters())]


def compiled(**options):
    return lambda function: torch.compile(function, backend="pipeline", options=options)


@functools.cache
def without_checkpoints(name):
    """A block of a name, its result and its gradients."""
    block = Block(BLOCKS[name])
    return block, losses(block, call=compiled(), checkpointed=False)


@pytest.mark.parametrize("reentrant", [False, True], ids=["plain", "reentrant"])
@pytest.mark.parametrize("name", BLOCKS)
def test_numbers_are_those_of_forward(name, reentrant):
    """A seed gives the same numbers with checkpoints and without, so gradients are the same, too."""
    block, expected = without_checkpoints(name)
    torch.testing.assert_close(losses(block, call=compiled(), reentrant=reentrant), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", BLOCKS)
def test_numbers_of_eager(name):
    block = Block(BLOCKS[name])
    result = losses(block, call=compiled(random="eager", fallback="torch"))
    torch.testing.assert_close(result, losses(block), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in BLOCKS if "attention" not in name])
def test_symbolic_sizes(name):
    """Not of attention: dynamo itself cannot trace a checkpoint of heads cut out of symbolic sizes."""
    block = Block(BLOCKS[name])

    def call(function):
        return torch.compile(function, backend="pipeline", dynamic=True)

    for tokens in (5, 3):
        expected = losses(block, tokens, call=call, checkpointed=False)
        torch.testing.assert_close(losses(block, tokens, call=call), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["attention", "dropout", "alpha dropout"])
def test_what_is_kept(name):
    """Between forward and backward there are inputs of the blocks, weights and masks alone."""
    block = Block(BLOCKS[name])
    x = torch.randn(2, 5, 8, dtype=torch.float64, requires_grad=True)

    @torch.compile(backend="pipeline")
    def both(x: Tensor) -> Tensor:
        return checkpoint(block, checkpoint(block, x, use_reentrant=False), use_reentrant=False)

    kept = both(x).grad_fn.saved_tensors
    numbers = sum(tensor.numel() for tensor in kept if tensor.dtype != torch.bool)
    assert numbers <= 2 * x.numel() + sum(weight.numel() for weight in block.parameters())
    without = torch.compile(lambda x: block(block(x)), backend="pipeline")(x).grad_fn.saved_tensors
    assert numbers < sum(tensor.numel() for tensor in without if tensor.dtype != torch.bool)


def test_what_is_kept_behind_a_dropped_input():
    """What is computed of a mask and of the input is computed again, as all else in a checkpoint."""
    block = nn.Sequential(nn.Dropout(0.3), nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 8)).double()
    x = torch.randn(16, 8, dtype=torch.float64, requires_grad=True)
    result = torch.compile(lambda x: checkpoint(block, x, use_reentrant=False), backend="pipeline")(x)
    kept = [tensor for tensor in result.grad_fn.saved_tensors if tensor.dtype != torch.bool]
    weights = sum(weight.numel() for weight in block.parameters())
    assert sum(tensor.numel() for tensor in kept) <= x.numel() + weights


@pytest.mark.parametrize("budget", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("name", BLOCKS)
def test_budgets_of_memory(name, budget):
    """torch's budget says how much of the activations is kept; no numbers are drawn twice for it."""
    block, expected = without_checkpoints(name)
    torch._dynamo.reset()
    with functorch_config.patch(activation_memory_budget=budget):
        result = losses(block, call=compiled(), checkpointed=False)
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)


class NoisyGradient(torch.autograd.Function):
    """x, and what backward multiplies its gradient with is random, of its shape or of another one."""

    @staticmethod
    def forward(ctx, x, like):
        ctx.like = like
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        noise = torch.rand_like(gradient) if ctx.like else torch.rand(24, dtype=torch.float64)
        return gradient * noise, None


@pytest.mark.parametrize("like", [True, False], ids=["like", "of a size"])
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_backward_draws_numbers(training, like):
    block = Block(lambda rows: NoisyGradient.apply(rows, like)).train(training)
    results = [losses(block, call=compiled(), checkpointed=False) for _ in range(2)]
    torch.testing.assert_close(*results)
    assert not torch.equal(results[0][1], losses(Block(lambda rows: rows * 2), checkpointed=False)[1])


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_backward_draws_numbers_of_eager(training):
    block = Block(lambda rows: NoisyGradient.apply(rows, True)).train(training)
    result = losses(block, call=compiled(random="eager", fallback="torch"), checkpointed=False)
    torch.testing.assert_close(result, losses(block, checkpointed=False), rtol=1e-12, atol=1e-12)
