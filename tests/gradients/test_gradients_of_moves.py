"""Gradients of what moves elements, and of functions whose gradients are made of results: by code, in every dtype."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._dynamo.utils import counters
from torch.nn.functional import fold, pad, tanhshrink, unfold
from torch.utils import _pytree as pytree

#: Of [4, 6].
FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "diagonal": torch.diag,
    "narrow_copy": lambda x: torch.narrow_copy(x, 0, 1, 2),
    "one of all": lambda x: x.unbind(1)[2][1:],
    "windows": lambda x: x.unfold(1, 2, 2) * 1,
    "trace": torch.trace,
    "take": lambda x: x.take(torch.tensor([0, 3, 3, -1])),
    "put": lambda x: x.put(torch.tensor([[0], [-3]]), x[0, :2] * 2),
    "put and add": lambda x: x.put(torch.tensor([2, 3, 2]), x[0, :3] * 2, accumulate=True),
    "masked_scatter": lambda x: x.masked_scatter(torch.eye(4, 6) > 0, x * 2),
    "masked_scatter a row": lambda x: x.masked_scatter(torch.arange(6) > 2, x * 2),
    "masked_scatter nothing": lambda x: x.masked_scatter(torch.tensor(False), x[:0]),
    "reflect 1d": lambda x: pad(x[None], (1, 2), mode="reflect"),
    "reflect 2d": lambda x: pad(x[None, None], (1, 2, 0, 1), mode="reflect"),
    "reflect 3d": lambda x: pad(x.reshape(1, 1, 2, 2, 6), (1, 2, 0, 1, 1, 1), mode="reflect"),
    "repeat 1d": lambda x: pad(x[None], (1, 2), mode="replicate"),
    "repeat one": lambda x: pad(x[:, :1], (3, 2), mode="replicate"),
    "repeat 2d": lambda x: pad(x[None, None], (1, 2, 0, 1), mode="replicate"),
    "repeat 3d": lambda x: pad(x.reshape(1, 2, 2, 1, 6), (1, 2, 3, 1, 1, 1), mode="replicate"),
    "repeat and crop": lambda x: pad(x[None, None], (-1, 2, 1, -2), mode="replicate"),
    "crop": lambda x: pad(x[None], (-1, -2), mode="replicate"),
    "circular": lambda x: pad(x[None], (1, 2), mode="circular"),
    "unfold": lambda x: unfold(x[None, None], 2),
    "fold": lambda x: fold(x.reshape(1, 4, 6), (3, 4), 2),
    "tanh": torch.tanh,
    "tanhshrink": tanhshrink,
    "sigmoid": torch.sigmoid,
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name, dtype):
    """Of sizes that are symbols."""
    function, x = FUNCTIONS[name], torch.randn(4, 6, dtype=dtype, requires_grad=True)
    check_gradients(function, (x,), dynamic=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128])
def test_gradients_of_known_sizes(dtype):
    """All functions in one program, each of a tensor of its own."""

    def all_functions(*xs):
        return [function(x) for function, x in zip(FUNCTIONS.values(), xs, strict=True)]

    check_gradients(all_functions, [torch.randn(4, 6, dtype=dtype, requires_grad=True) for _ in FUNCTIONS], False)


def check_gradients(function, xs, dynamic):
    results, expected = torch.compile(function, backend="pipeline", dynamic=dynamic)(*xs), function(*xs)
    torch.testing.assert_close(results, expected)
    incoming = pytree.tree_map(torch.randn_like, pytree.tree_leaves(expected))
    gradients = (torch.autograd.grad(pytree.tree_leaves(of), xs, incoming) for of in (results, expected))
    for number, (mine, its) in enumerate(zip(*gradients, strict=True)):
        torch.testing.assert_close(mine, its, msg=lambda text, number=number: f"function {number}: {text}")
    assert counters["pipeline"]["backward"] == 1
    assert counters["pipeline"]["backward in eager"] == 0
