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

SHAPE, OTHERS = (5, 6, 7), ((4, 4, 5), (5, 6, 7), (4, 9, 4))


@pytest.mark.parametrize("symbolic", [(2,), (0, 2), (1, 2), (0, 1, 2)])
def test_slices(symbolic):
    """All uses in one program, each of a tensor of its own."""
    torch.manual_seed(0)
    programs = [(*use, *part) for use in USES.items() for part in SLICES.items()]
    model = Function(lambda x: [use(part, x + number) for number, (_, use, _, part) in enumerate(programs)])
    sizes = {dim: Dim("abc"[dim], min=4, max=64) for dim in symbolic}
    executable = pipeline.compile(model, (torch.randn(SHAPE),), dynamic_shapes=((sizes,),), cache=False)
    for other in OTHERS:
        x = torch.randn([other[dim] if dim in symbolic else SHAPE[dim] for dim in range(3)])
        pairs = zip(programs, executable(x.clone()), model(x), strict=True)
        wrong = [f"{part} {use}" for (use, _, part, _), got, expected in pairs if differences(got, expected)]
        assert not wrong, other
