"""Writing at indices that have more than one symbolic size."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim

import pipeline

FORMS = {
    "one": (lambda x, i, g: x.index_put([i], g, accumulate=True), (9, 8), (8,)),
    "of a line": (lambda x, i, g: x.index_put([i[0]], g[0], accumulate=True), (9, 8), (8,)),
    "two": (lambda x, i, g: x.index_put([i, (i + 1) % 8], g, accumulate=True), (9, 8, 3), (3,)),
    "two of other shapes": (lambda x, i, g: x.index_put([i, i[:1] % 8], g, accumulate=True), (9, 8, 3), (3,)),
    "behind a dim": (lambda x, i, g: torch.ops.aten.index_put(x, [None, i], g.movedim(2, 0), True), (8, 9), (8,)),
    "one number": (lambda x, i, g: x.index_put([i], g[0, 0, 0]), (9, 8), (8,)),
    "not added up": (lambda x, i, g: x.index_put([i], g * 0 + 1), (9, 8), (8,)),
    "embeddings": (lambda x, i, g: torch.ops.aten.embedding_dense_backward(g, i, 9, -1, False), (9, 8), (8,)),
}


@pytest.mark.parametrize("symbolic", [{0}, {1}, {0, 1}], ids=str)
@pytest.mark.parametrize(("function", "shape", "rest"), FORMS.values(), ids=FORMS)
def test_is_eagers(function, shape, rest, symbolic):
    def arguments(s, t):
        s, t = s if 0 in symbolic else 4, t if 1 in symbolic else 5
        return torch.randn(shape), torch.randint(0, 9, (s, t)), torch.randn(s, t, *rest)

    dims = {dim: Dim("st"[dim], max=64) for dim in symbolic}
    compiled = pipeline.compile(function, arguments(4, 5), dynamic_shapes=(None, dims, dims), cache=False)
    for sizes in ((4, 5), (1, 1), (2, 7), (7, 2), (1, 5), (4, 1)):
        given = arguments(*sizes)
        torch.testing.assert_close(compiled(*given), function(*given))
