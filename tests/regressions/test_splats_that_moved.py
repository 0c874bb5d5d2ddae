"""Arithmetic with tensors that are one number everywhere, wherever their elements were moved before; fuzz 42279.

Torch-mlir folds it, with an integer beside floats taken for an unsigned one, and True for -1.
"""

from __future__ import annotations

import pytest
import torch
from function_model import Function

import pipeline

INDEX = torch.tensor([1, 0, 1])

MOVES = {
    "as_strided": lambda x: x.as_strided((2, 2), (1, 1)),
    "cat": lambda x: torch.cat([x, x], 1),
    "cat_of_another": lambda x: torch.cat([x, torch.ones_like(x)]),
    "chunk": lambda x: x.chunk(2, 1)[1],
    "diagonal": lambda x: x.diagonal(),
    "embedding": lambda x: torch.nn.functional.embedding(INDEX, x),
    "expand": lambda x: x.expand(3, 2, 4),
    "flatten": lambda x: x.flatten(),
    "flip": lambda x: x.flip(0),
    "gather": lambda x: x.gather(0, INDEX[None]),
    "index": lambda x: x[INDEX],
    "index_select": lambda x: x.index_select(1, INDEX),
    "meshgrid": lambda x: torch.meshgrid(x[0], x[1], indexing="ij")[0],
    "movedim": lambda x: x.movedim(0, 1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "pad": lambda x: torch.nn.functional.pad(x, (1, 1), value=1),
    "pad_circular": lambda x: torch.nn.functional.pad(x[None], (1, 1), mode="circular"),
    "pad_reflect": lambda x: torch.nn.functional.pad(x[None], (1, 1), mode="reflect"),
    "repeat": lambda x: x.repeat(2, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(2),
    "roll": lambda x: x.roll(1, 0),
    "rot90": lambda x: x.rot90(),
    "select": lambda x: x.select(1, 2),
    "slice": lambda x: x[:, ::2],
    "split": lambda x: x.split(3, 1)[0],
    "squeeze": lambda x: x[None].squeeze(0),
    "stack": lambda x: torch.stack([x, x]),
    "t": lambda x: x.t(),
    "take": lambda x: x.take(INDEX),
    "take_along_dim": lambda x: x.take_along_dim(INDEX[:2, None], 0),
    "tile": lambda x: x.tile(2),
    "tril_of_column": lambda x: x[:1, :1].tril(),
    "unbind": lambda x: x.unbind(1)[1],
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "view": lambda x: x.view(4, 2),
    "view_as_dtype": lambda x: x.view(x.dtype),
    "where": lambda x: torch.where(x > 0, x, 1),
    "clone": lambda x: x.clone(),
    "max": lambda x: x.amax(1),
    "sum": lambda x: x.sum(1) / 4 if x.dtype.is_floating_point else x.amin(0),
}


def _arithmetic(x):
    if x.dtype == torch.bool:
        return x + x, x * -1, x.float() - -1, x | x, x.sum()
    return x * -1, x + -3, x - -2, -1 - x, x / -2, x > -1, torch.add(x, x, alpha=-2), x.clamp(max=-1), x // -2, x % -2


#: PyTorch pads no flags in these modes.
_NOT_FLAGS = ("pad_circular", "pad_reflect")


@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_arithmetic_with_a_splat_that_moved(part, dtype):
    names = [name for name in sorted(MOVES)[part::3] if dtype != torch.bool or name not in _NOT_FLAGS]

    def function(x):
        made, filled = torch.full((2, 4), 1, dtype=dtype), x.fill_(1)
        moved = {name: [MOVES[name](made), MOVES[name](filled)] for name in names}
        return {name: [_arithmetic(one) for one in both] for name, both in moved.items()}

    x = torch.zeros(2, 4, dtype=dtype)
    got = pipeline.compile(Function(function), (x.clone(),))(x.clone())
    torch.testing.assert_close(got, function(x.clone()), rtol=0, atol=0)
