"""A linear layer whose input does not lie row by row: torch repeats its weight for the batch, the code does not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(48, 80), nn.Linear(80, 40, bias=False)

    def forward(self, x):
        return self.second(torch.relu(self.first(x.transpose(1, 2)))[:, -1:])


@pytest.mark.parametrize("options", [{}, {"weights": "int8"}], ids=str)
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_weight_is_there_once(options, dynamic):
    model, x = Transposed().eval(), torch.randn(3, 48, 5)
    sizes = ({0: torch.export.Dim.AUTO, 2: torch.export.Dim.AUTO},) if dynamic else None
    executable = pipeline.compile(model, (x,), dynamic_shapes=sizes, **options)
    weights = sum(parameter.nbytes for parameter in model.parameters())
    assert executable.memory.prepared <= 1.05 * weights
    for batch, length in ((3, 5), (1, 1), (4, 7)) if dynamic else ((3, 5),):
        x = torch.randn(batch, 48, length)
        tolerance = {"rtol": 1e-4, "atol": 1e-5} if not options else {"rtol": 0.05, "atol": 0.02}
        torch.testing.assert_close(executable(x), model(x), **tolerance)
