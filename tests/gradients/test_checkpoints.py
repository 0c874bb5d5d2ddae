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


def blocks(names=tuple(BLOCKS)):
    return nn.ModuleDict({name: Block(BLOCKS[name]) for name in names})


def losses(blocks, tokens=5, *, call=None, checkpointed=True, reentrant=False):
    """Of each name, a result and gradients of two blocks in a row, all in one program, which `call` may compile."""

    def both(block: nn.Module, x: Tensor) -> Tensor:
        if not checkpointed:
            return block(block(x))
        inner = checkpoint(block, x, use_reentrant=reentrant)
        return checkpoint(block, inner, use_reentrant=reentrant)

    def all_of(inputs: list[Tensor]) -> list[Tensor]:
        return [both(block, x) for block, x in zip(blocks.values(), inputs, strict=True)]

    blocks.zero_grad()
    torch.manual_seed(4)
    x = torch.linspace(-1, 1, 2 * tokens * 8, dtype=torch.float64).reshape(2, tokens, 8)
    inputs = [x.clone().requires_grad_() for _ in blocks]
    results = call(all_of)(inputs) if call else all_of(inputs)
    sum(result.square().sum() for result in results).backward()
    return {
        name: [result.detach(), x.grad, *(weight.grad for weight in block.parameters())]
        for (name, block), result, x in zip(blocks.items(), results, inputs, strict=True)
    }


def compiled(**options):
    return lambda function: torch.compile(function, backend="pipeline", options=options)


def assert_same(results, expected):
    for name, result in results.items():
        torch.testing.assert_close(
            result, expected[name], rtol=1e-12, atol=1e-12, msg=lambda text, name=name: f"{name}: {text}"
        )


@functools.cache
def without_checkpoints():
    """The blocks, their results and their gradients."""
    every = blocks()
    return every, losses(every, call=compiled(), checkpointed=False)


@pytest.mark.parametrize("reentrant", [False, True], ids=["plain", "reentrant"])
def test_numbers_are_those_of_forward(reentrant):
    """A seed gives the same numbers with checkpoints and without, so gradients are the same, too."""
    every, expected = without_checkpoints()
    assert_same(losses(every, call=compiled(), reentrant=reentrant), expected)


def test_numbers_of_eager():
    every = blocks()
    assert_same(losses(every, call=compiled(random="eager", fallback="torch")), losses(every))


def test_symbolic_sizes():
    """Not of attention: dynamo itself cannot trace a checkpoint of heads cut out of symbolic sizes."""
    every = blocks(name for name in BLOCKS if "attention" not in name)

    def call(function):
        return torch.compile(function, backend="pipeline", dynamic=True)

    for tokens in (5, 3):
        expected = losses(every, tokens, call=call, checkpointed=False)
        assert_same(losses(every, tokens, call=call), expected)


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
def test_budgets_of_memory(budget):
    """torch's budget says how much of the activations is kept; no numbers are drawn twice for it."""
    every, expected = without_checkpoints()
    torch._dynamo.reset()
    with functorch_config.patch(activation_memory_budget=budget):
        result = losses(every, call=compiled(), checkpointed=False)
    assert_same(result, expected)


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
    block = nn.ModuleDict({"noise": Block(lambda rows: NoisyGradient.apply(rows, like))}).train(training)
    first, second = (losses(block, call=compiled(), checkpointed=False) for _ in range(2))
    assert_same(first, second)
    without_noise = losses(nn.ModuleDict({"noise": Block(lambda rows: rows * 2)}), checkpointed=False)
    assert not torch.equal(first["noise"][1], without_noise["noise"][1])


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_backward_draws_numbers_of_eager(training):
    block = nn.ModuleDict({"noise": Block(lambda rows: NoisyGradient.apply(rows, True))}).train(training)
    result = losses(block, call=compiled(random="eager", fallback="torch"), checkpointed=False)
    assert_same(result, losses(block, checkpointed=False))
