"""A size that is symbolic to torch's shapes, and one number for all sizes that the model takes: torch swaps such ones.

The first half of the first half of 3 or 4 elements has ((s + 1) // 2 + 1) // 2 of them, which is 1.
"""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from numerics import differences
from torch.export import Dim

import pipeline

VIEWS = {
    "repeat": lambda x: x.unsqueeze(-1).repeat(2, 3),
    "expand": lambda x: x[None, :, None].expand(4, -1, 2) + x,
    "flatten": lambda x: x[None, :, None].expand(4, -1, 2).flatten(1),
    "outer product": lambda x: (x[:, None] * x[None, :]).reshape(-1),
    "stack": lambda x: torch.stack([x, x + 1]).T,
    "branch": lambda x: torch.cond(x.sum() > 0, lambda y: (y[:, None] + y).exp(), lambda y: y[:, None] - y, (x,)),
    "loop": lambda x: torch.while_loop(lambda y: y.sum() < 9, lambda y: (y * y + 1,), (x,))[0].expand(2),
    "number": lambda x: x.new_ones(4) * x.shape[0],
}


def half(x):
    return x.chunk(2, 0)[0]


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_of_one_element(view):
    model = Function(lambda x: view(half(half(x))))
    executable = pipeline.compile(model, (torch.randn(3),), dynamic_shapes=(({0: Dim.AUTO},),))
    for size in (3, 4):
        x = torch.randn(size)
        assert not differences(executable(x), model(x))
    assert not [remark for remark in executable.remarks if remark.pass_name in ("shapes", "views")]
