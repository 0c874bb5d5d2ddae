"""where and masked_fill by conditions that are constants, of sizes that are known and that are not."""

from __future__ import annotations

import pytest
import torch

import pipeline

YES, NO = torch.tensor(True), torch.tensor(False)

PROGRAMS = {
    "fill": lambda x: x.masked_fill(YES, 2),
    "fill nothing": lambda x: x.masked_fill(NO, 2),
    "number": lambda x: torch.where(YES, 0.5, x),
    "tensor": lambda x: torch.where(NO, 0.5, x),
    "row of another dtype": lambda x: torch.where(YES, x, torch.ones(3, dtype=torch.float64)),
    "number in a row": lambda x: torch.where(torch.ones(3, dtype=torch.bool), 3, x),
    "number for all": lambda x: torch.where(torch.ones_like(x, dtype=torch.bool), torch.zeros_like(x), x),
    "row": lambda x: torch.where(YES, x[:1], x),
    "two numbers": lambda x: torch.where(NO, x.new_ones(()), x.new_full((), 3)) + x,
    "computed": lambda x: torch.where(YES & NO, x, x * 2),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16])
@pytest.mark.parametrize("dims", [None, {0: "n"}, {0: "n", 1: "m"}])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gives_what_eager_gives(name, dims, dtype):
    names = {dim: torch.export.Dim(symbol, min=3 if dim else 1, max=50) for dim, symbol in (dims or {}).items()}
    if "row" in name:
        names.pop(1, None)  # a row of three, beside which the sizes are 3

    class Model(torch.nn.Module):
        def forward(self, x):
            return PROGRAMS[name](x)

    x = (torch.arange(12).reshape(4, 3) % 5).to(dtype)
    executable = pipeline.compile(Model(), (x,), dynamic_shapes=(names,) if names else None)
    for rows in (4, 2, 1) if names else (4,):
        torch.testing.assert_close(executable(x[:rows]), PROGRAMS[name](x[:rows]), rtol=0, atol=0)
