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

    compiled = torch.compile(model, backend="pipeline")
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dynamic", [False, True])
def test_maxima(dtype, dynamic):
    """Of equal rows the first has it, of NaN one that begins; bags of padding alone and of nothing are 0."""
    table = torch.randn(10, 4, generator=torch.manual_seed(0)).to(dtype)
    table[3], table[9, 1], table[0, 3] = table[9], -float("inf"), float("inf")
    table[1, 2] = table[5, 0] = float("nan")
    places = torch.tensor([1, 3, 9, 2, 2, 9, 1, 0, 1, 4, 5, 2])
    offsets = torch.tensor([0, 2, 2, 5, 6, 9, 11])

    def run(bags, places, offsets):
        weight = table.clone().requires_grad_()
        result = bags(places, weight, offsets, mode="max", padding_idx=2)
        (result * torch.arange(result.numel()).view_as(result)).nan_to_num().sum().backward()
        return result, weight.grad

    compiled = torch.compile(nn.functional.embedding_bag, backend="pipeline", dynamic=dynamic)
    calls = [
        (places, offsets),
        (places[:3].int(), torch.tensor([0, 1, 3], dtype=torch.int32)),
        (places[:0], offsets[:1]),
    ]
    for given in calls if dynamic else calls[:1]:
        expected = run(nn.functional.embedding_bag, *given)
        torch.testing.assert_close(run(compiled, *given), expected, rtol=0, atol=0, equal_nan=True)


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
@pytest.mark.parametrize("mode", ["sum", "max"])
def test_bags_without_places(kind, last, mode):
    model = nn.EmbeddingBag(10, 3, mode=mode, include_last_offset=last).requires_grad_(False)
    for places, offsets in ((PLACES, [0, 0, 7, 7]), (PLACES[:0], [0, 0])):
        given = places.to(kind), torch.tensor(offsets, dtype=kind)
        torch.testing.assert_close(pipeline.compile(model, given)(*given), model(*given))
