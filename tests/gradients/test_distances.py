"""Distances of pairs of rows and gradients of `torch.cdist` and `pdist`, of every norm and of rows that are equal."""

from __future__ import annotations

import math

import pytest
import torch
from torch._dynamo.utils import counters

SHAPES = {
    "few rows": ((5, 3), (4, 3)),
    "one": ((1, 1), (1, 1)),
    "batches": ((2, 1, 5, 3), (3, 4, 3)),
    "many rows": ((30, 3), (40, 3)),  # eager has products for more than 25 rows
    "no rows": ((0, 3), (4, 3)),
    "no columns": ((2, 0), (3, 0)),
}


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_distances(shape, p):
    generator = torch.Generator().manual_seed(1)
    first, second = (torch.randn(sizes, dtype=torch.float64, generator=generator) for sizes in SHAPES[shape])
    if first.numel():
        second[..., 0, :] = first.reshape(-1, first.shape[-1])[0]  # equal rows
        if second.shape[-2] > 1:
            second[..., 1, :] = first.reshape(-1, first.shape[-1])[0]
            second[..., 1, 0] += 1  # equal in some places

    def distances(a, b):
        return torch.cdist(a, b, p, "donot_use_mm_for_euclid_dist").sin()

    gradients = []
    for called in (torch.compile(distances, backend="pipeline", options={"fallback": "error"}), distances):
        a, b = first.clone().requires_grad_(), second.clone().requires_grad_()
        called(a, b).sum().backward()
        gradients.append((a.grad, b.grad))
    assert counters["pipeline"]["backward in eager"] == 0
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_gradients_of_distances_of_any_number_of_rows(p):
    called = torch.compile(lambda a, b: torch.cdist(a, b, p), backend="pipeline", dynamic=True)
    for m, n in ((5, 4), (2, 9)):
        pairs = [(torch.linspace(-1, 1, m * 3).reshape(m, 3), torch.linspace(0, 2, n * 3).reshape(n, 3)) for _ in "ab"]
        for tensor in (*pairs[0], *pairs[1]):
            tensor.requires_grad_()
        called(*pairs[0]).square().sum().backward()
        torch.cdist(*pairs[1], p).square().sum().backward()
        for found, expected in zip(*pairs, strict=True):
            torch.testing.assert_close(found.grad, expected.grad, rtol=1e-4, atol=1e-5)
    assert counters["pipeline"]["backward in eager"] == 0


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("dynamic", [False, True])
def test_pairs_of_rows(p, dynamic):
    """Of many, few, two, one and no rows, some of them equal; of no columns."""
    called = torch.compile(lambda x: torch.pdist(x, p).sin(), backend="pipeline", dynamic=dynamic)
    for rows, columns in ((30, 5), (3, 2), (9, 5), (2, 5)) if dynamic else ((7, 3), (1, 3), (0, 3), (4, 0)):
        x = torch.randn(rows, columns, dtype=torch.float64, generator=torch.manual_seed(rows))
        if rows > 2:
            x[2] = x[0]
            x[1, :1] = x[0, :1]
        found, expected = x.clone().requires_grad_(), x.clone().requires_grad_()
        results = called(found), torch.pdist(expected, p).sin()
        torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)
        for result in results[: 2 if rows else 1]:  # eager's backward pass of no rows reads memory that is not there
            (result * torch.arange(1.0, len(result) + 1)).sum().backward()
        torch.testing.assert_close(found.grad, expected.grad if rows else x, rtol=1e-10, atol=1e-12)
    assert counters["pipeline"]["backward in eager"] == 0
    assert counters["stats"]["unique_graphs"] <= 2 or not dynamic  # two rows have one distance
