"""F.linear_cross_entropy with options, of which eager computes loss and gradients some rows at a time."""

from __future__ import annotations

import warnings

import pytest
import torch
from dynamo_state import fresh_dynamo
from torch.nn import functional as F
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

import pipeline
from pipeline.frontend.decompositions.replacements import linear_cross_entropy

__all__ = ["fresh_dynamo"]


def losses(function, rows, dtype, *, bias=True, classes=11, target=None, **options):
    """A loss and its gradients; rows 1 and, if there are as many, 4 do not count."""
    torch.manual_seed(rows)
    x, weight = torch.randn(rows, 6, dtype=dtype), torch.randn(classes, 6, dtype=dtype)
    leaves = [x, weight, *([torch.randn(classes, dtype=dtype)] if bias else [])]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    targets = torch.randint(classes, (rows,)) if target is None else target
    targets[1::3] = -100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of graphs that it retains
        result = function(*leaves[:2], targets, leaves[2] if bias else None, **options)
    gradients = torch.autograd.grad((result * torch.arange(1, result.numel() + 1)).sum(), leaves)
    return [result.detach(), *gradients]


def compiled(dynamic=False):
    return torch.compile(loss, backend="pipeline", dynamic=dynamic)


def loss(x, weight, targets, bias, reduction="mean", class_weights=None, chunk=2, policy="auto"):
    options = LinearCrossEntropyOptions(batch_chunk_size=chunk, acc_policy=policy, allow_retain_graph=True)
    arguments = {"linear_bias": bias, "weight": class_weights, "reduction": reduction, "options": options}
    return F.linear_cross_entropy(x, weight, targets, **arguments)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_loss_and_gradients(reduction, dtype):
    """Those of the loss without options, in float64."""
    forms = [(True, True, 3), (False, False, 100), (True, False, 2)]
    for bias, weighted, chunk in forms if dtype == torch.float64 else forms[:1]:
        weights = torch.rand(11, dtype=dtype) if weighted else None
        options = {"reduction": reduction, "class_weights": weights}
        ours = losses(compiled(), 7, dtype, bias=bias, chunk=chunk, **options)
        eager = losses(loss, 7, dtype, bias=bias, chunk=chunk, **options)
        tolerance = {torch.bfloat16: 0.03, torch.float16: 4e-3, torch.float32: 1e-5}.get(dtype, 1e-12)
        torch.testing.assert_close(ours, eager, rtol=tolerance, atol=tolerance)


def test_many_rows_and_rows_of_unknown_number(monkeypatch):
    monkeypatch.setattr(linear_cross_entropy, "_MOST_PARTS", 5)
    for dynamic, rows in [(False, 43), (True, 9), (True, 5)]:
        ours, eager = (losses(call, rows, torch.float64, chunk=4) for call in (compiled(dynamic), loss))
        torch.testing.assert_close(ours, eager, rtol=1e-12, atol=1e-12)


def test_weights_without_gradients():
    x, weight, targets = torch.randn(5, 6, requires_grad=True), torch.randn(11, 6), torch.arange(5)
    for call in (loss, compiled()):
        x.grad = None
        call(x, weight, targets, None).backward()
        expected = torch.autograd.grad(F.cross_entropy(x @ weight.T, targets), x)[0]
        torch.testing.assert_close(x.grad, expected)


def test_logits_are_never_all_there():
    """Temporaries have the logits of a part, and the weight once more."""
    rows, classes, part = 1024, 8192, 64
    x, weight, targets = torch.randn(rows, 16), torch.randn(classes, 16), torch.randint(classes, (rows,))
    options = LinearCrossEntropyOptions(batch_chunk_size=part)

    class Loss(torch.nn.Module):
        def forward(self, x, weight, targets):
            return F.linear_cross_entropy(x, weight, targets, reduction="sum", options=options)

    executable = pipeline.compile(Loss(), (x, weight, targets))
    torch.testing.assert_close(executable(x, weight, targets), Loss()(x, weight, targets), rtol=1e-4, atol=1e-2)
    assert executable.memory.workspace < 4 * (3 * part + 2 * 16) * classes


def test_classes_out_of_range_are_refused():
    with pytest.raises((IndexError, RuntimeError, pipeline.PipelineError)):
        losses(compiled(), 4, torch.float32, target=torch.tensor([0, 1, 11, 2]))
