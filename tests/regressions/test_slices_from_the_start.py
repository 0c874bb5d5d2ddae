"""Slices that start at 0 and have symbolic sizes behind the dim that is cut were taken for row-major memory."""

import pytest
import torch
from function_model import Function
from numerics import differences
from torch.export import Dim

import pipeline

SLICES = {
    "columns": lambda x: x[:, :2],
    "rows": lambda x: x[:2],
    "both": lambda x: x[:2, :2],
    "last": lambda x: x[..., :3],
    "to one before the end": lambda x: x[:, :-1],
    "narrow": lambda x: x.narrow(1, 0, 2),
    "stepped": lambda x: x[:, ::2],
    "of a transposed": lambda x: x.transpose(0, 1)[:, :2],
    "selected": lambda x: x[:, 0],
}

USES = {
    "of an argument": lambda part, x: part(x),
    "computed": lambda part, x: part(x * 2),
    "beside the whole": lambda part, x: (part(y := x * 2), y),
    "reshaped": lambda part, x: part(x + 1).flatten(),
    "softmax": lambda part, x: part(x * 2).softmax(-1),
    "sum": lambda part, x: part(x.exp()).sum(0),
    "product": lambda part, x: part(x * 2) @ part(x + 1).transpose(-1, -2),
    "sorted": lambda part, x: part(x * 2).sort(-1)[0],
    "cumulative": lambda part, x: part(x * 2).cumsum(0),
    "joined": lambda part, x: torch.cat([part(x * 2), part(x)], 0),
    "gathered": lambda part, x: part(x * 2)[torch.tensor([1, 0])],
}

SHAPES = ((4, 4, 5), (5, 6, 7), (4, 9, 4))


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_slices(use):
    torch.manual_seed(0)
    model = Function(lambda x: [use(part, x) for part in SLICES.values()])
    sizes = dict(enumerate(Dim(name, min=4, max=64) for name in "abc"))
    executable = pipeline.compile(
        model, (torch.randn(5, 6, 7),), dynamic_shapes=(({0: sizes[0], 1: sizes[1], 2: sizes[2]},),)
    )
    for shape in SHAPES:
        x = torch.randn(shape)
        got, expected = executable(x.clone()), model(x)
        wrong = [name for name, one, other in zip(SLICES, got, expected, strict=True) if differences(one, other)]
        assert not wrong, shape
