"""Gradients of bags of embeddings, in all forms."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from torch import nn

import pipeline

PLACES = torch.tensor([1, 3, 3, 9, 0, 1, 1])
OFFSETS = torch.tensor([0, 2, 2, 5])  # the second bag is empty


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 3])
@pytest.mark.parametrize("last", [False, True])
def test_gradients(mode, padding, last):
    model = nn.EmbeddingBag(10, 4, mode=mode, padding_idx=padding, include_last_offset=last)
    reference = copy.deepcopy(model)
    offsets = torch.cat([OFFSETS, torch.tensor([7])]) if last else OFFSETS

    def run(function, model):
        weights = torch.arange(7.0).requires_grad_()
        given = {"per_sample_weights": weights} if mode == "sum" else {}
        result = function(PLACES, offsets, **given)
        (result * torch.arange(result.numel()).view_as(result)).sum().backward()
        return result, model.weight.grad, weights.grad

    options = {"fallback": "torch"} if mode == "max" else {}  # which torch runs
    compiled = torch.compile(model, backend="pipeline", options=options)
    torch.testing.assert_close(run(compiled, model), run(reference, reference))


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_scaled_by_frequency(mode):
    """As torch documents it: eager itself divides by how often another row is taken, where rows differ in that."""
    model = nn.EmbeddingBag(10, 4, mode=mode, scale_grad_by_freq=True)
    torch.compile(model, backend="pipeline")(PLACES, OFFSETS).sum().backward()
    sizes = [2, 0, 3, 2]
    expected = torch.zeros(10, 4)
    for place, bag in zip(PLACES, itertools.chain(*([bag] * size for bag, size in enumerate(sizes))), strict=True):
        expected[place] += (1 / sizes[bag] if mode == "mean" else 1) / (place == PLACES).sum()
    torch.testing.assert_close(model.weight.grad, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_sums_of_sixteen_bits(mode, dtype):
    """In float32, rounded once: no farther from float64 than eager's."""
    torch.manual_seed(0)
    model, places = (
        nn.EmbeddingBag(100, 16, mode=mode, dtype=dtype).requires_grad_(False),
        torch.randint(0, 100, (9, 50)),
    )
    exact = copy.deepcopy(model).double()(places)
    errors = [(run(places).double() - exact).abs().max() for run in (pipeline.compile(model, (places,)), model)]
    assert errors[0] <= errors[1]


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
@pytest.mark.parametrize("last", [False, True])
def test_bags_without_places(kind, last):
    model = nn.EmbeddingBag(10, 3, mode="sum", include_last_offset=last).requires_grad_(False)
    for places, offsets in ((PLACES, [0, 0, 7, 7]), (PLACES[:0], [0, 0])):
        given = places.to(kind), torch.tensor(offsets, dtype=kind)
        torch.testing.assert_close(pipeline.compile(model, given)(*given), model(*given))
