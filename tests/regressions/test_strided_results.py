"""as_strided of what ops compute looks at the memory of its operand, not of another tensor of that type."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline

#: Of f32[4, 4]; several results of an op, and views of results, too.
MADE = {
    "argument": lambda x: x,
    "clone": lambda x: x.clone(),
    "silu": lambda x: F.silu(x),
    "softplus": lambda x: F.softplus(x),
    "gelu": lambda x: F.gelu(x + 1),
    "hardswish": lambda x: F.hardswish(x).t(),
    "log_softmax": lambda x: F.log_softmax(x, 1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "full": lambda x: torch.full((4, 4), 3.0) + x[0, 0],
    "ones": lambda x: torch.ones_like(x),
    "product": lambda x: F.linear(x, x),
    "floor_divide": lambda x: x // -0.3,
    "part": lambda x: F.silu(x).narrow(0, 2, 2),
    "view": lambda x: F.elu(x).view(2, 8)[1],
    "twice": lambda x: F.silu(x).as_strided((4, 4), (1, 4)).contiguous() + 1,
    "written to": lambda x: F.mish(x).mul_(2),
    "part written to": lambda x: (y := F.silu(x), y[1].fill_(2.0), y)[-1],
}

VIEWS = [((2, 2), (1, 1), None), ((2, 3), (2, 1), None), ((3,), (2,), 1), ((2, 2), (0, 1), None)]


@pytest.mark.parametrize("writes", [False, True], ids=["plain", "argument written to"])
def test_as_strided_of_results(writes: bool) -> None:
    def function(x: torch.Tensor) -> dict[str, list[torch.Tensor]]:
        if writes:
            x.mul_(1.5)
        made = {name: make(x) for name, make in MADE.items()}
        return {name: [one.as_strided(*view) * 2 for view in VIEWS] for name, one in made.items()}

    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    executable = pipeline.compile(Function(function), (x.clone(),))
    torch.testing.assert_close(executable(x.clone()), function(x.clone()))
