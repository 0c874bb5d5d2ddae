"""Gradients of embeddings: rows are added up in the result itself, which is filled with zeros first."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from torch import nn

import pipeline

ROWS, WIDTH = 5000, 64


@pytest.mark.parametrize("forms", [{}, {"padding_idx": 3}, {"scale_grad_by_freq": True}])
def test_gradients(forms):
    model = nn.Embedding(ROWS, WIDTH, **forms)
    places = torch.tensor([[3, 7, 7], [0, ROWS - 1, 3]])
    gradient = torch.randn(2, 3, WIDTH)
    compiled = torch.compile(model, backend="pipeline")
    found = [torch.autograd.grad(each(places), model.weight, gradient)[0] for each in (compiled, model)]
    torch.testing.assert_close(*found)
    _, backward = pipeline.executables(compiled)
    table = 4 * ROWS * WIDTH
    assert backward.memory.workspace < table / 10
    assert backward.memory.code < table / 10


def test_what_is_added_to_other_constants():
    """Constants whose elements differ, and zeros that are read elsewhere, too."""

    def function(places, gradient):
        before, zeros = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.zeros(9, 16)
        added = zeros.index_put([places], gradient, accumulate=True)
        return before.index_put([places[:1] % 2], gradient[:1, :2], accumulate=True), added, zeros + 1

    places, gradient = torch.tensor([8, 0, 8]), torch.randn(3, 16)
    exe = pipeline.compile(Function(function), (places, gradient))
    torch.testing.assert_close(exe(places, gradient), function(places, gradient))
