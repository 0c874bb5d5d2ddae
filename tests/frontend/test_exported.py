"""What the signature says about a captured model."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim

import pipeline


class Double(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


@pytest.mark.parametrize("size", [0, 1, 7])
def test_a_dynamic_size_may_be_zero_or_one(size: int) -> None:
    executable = pipeline.compile(Double(), (torch.ones(3, 2),), dynamic_shapes=({0: Dim.DYNAMIC},))
    x = torch.randn(size, 2)
    assert torch.equal(executable(x), x * 2)


def test_the_range_that_the_user_gives_holds() -> None:
    executable = pipeline.compile(Double(), (torch.ones(5, 2),), dynamic_shapes=({0: Dim("n", min=4, max=6)},))
    assert executable(torch.ones(4, 2)).shape == (4, 2)
    for size in (3, 7):
        with pytest.raises(pipeline.PipelineError, match=rf"argument x: dimension 0 is {size}, expected 4 to 6"):
            executable(torch.ones(size, 2))
