"""Programs that read numbers from tensors: x: [n, 6] of floats, i: an int tensor [1] with 0 <= i < n where n > 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

Program = Callable[..., Any]


def _end(x: torch.Tensor, i: torch.Tensor) -> int:
    end = i.item()
    torch._check(end >= 0)
    torch._check(end <= x.shape[0])
    return end


OF_ITEMS: dict[str, Program] = {
    "mul": lambda x, i: x * i.item(),
    "mul_float": lambda x, i: x * x.sum().item(),
    "add": lambda x, i: x + i.item(),
    "div": lambda x, i: x / (i.item() + 1),
    "return_int": lambda x, i: i.item(),
    "return_float": lambda x, i: (x.sum().item(), x + 1),
    "return_float64": lambda x, i: x.double().mean().item(),
    "return_bool": lambda x, i: (x > 100).any().item(),
    "int_of_tensor": lambda x, i: x + int(i),
    "float_of_tensor": lambda x, i: x + float(x.sum()),
    "int_of_float": lambda x, i: x + int(x.abs().sum().item()),
    "sqrt": lambda x, i: x * math.sqrt(i.item() + 1),
    "power": lambda x, i: x * (i.item() + 1) ** 2,
    "mixed": lambda x, i: x * (i.item() / (x.shape[0] + 1)),
    "slice_end": lambda x, i: x[: _end(x, i)] * 2,
    "slice_start": lambda x, i: x[_end(x, i) :] + 1,
    "slice_sum": lambda x, i: x[: _end(x, i)].sum(0),
    "narrow": lambda x, i: x.narrow(0, 0, _end(x, i)).exp(),
    "full_value": lambda x, i: torch.full((3,), i.item()),
    "full_float": lambda x, i: torch.full((x.shape[0],), x.sum().item()),
    "scatter_value": lambda x, i: x.scatter(1, torch.zeros_like(x).long(), i.item()),
    "masked_fill": lambda x, i: x.masked_fill(x > 0, i.item()),
    "masked_fill_float": lambda x, i: x.masked_fill(x > 0, x.sum().item()),
    "fill": lambda x, i: x.clone().fill_(i.item()),
    "arange": lambda x, i: torch.arange(_end(x, i)) * 2,
    "zeros": lambda x, i: torch.zeros(_end(x, i), 3) + 1,
    "select": lambda x, i: x.select(0, i.item()),
    "index": lambda x, i: x[i.item()],
    "clamp": lambda x, i: x.clamp(max=i.item()),
    "compare": lambda x, i: x < i.item(),
    "alpha": lambda x, i: torch.add(x, x, alpha=i.item()),
    "check": lambda x, i: (torch._check(i.item() >= 0), x + 1)[1],
    "tensor": lambda x, i: torch.tensor(i.item()) + x,
    "max_with_size": lambda x, i: x + torch.sym_max(i.item(), x.shape[0]),
    "two_items": lambda x, i: x * i.item() + (x * 0.25).double().mean().item(),
    "compare_items": lambda x, i: (i.item() > 3, i.item() * 2, x.sum().item() > 0),
    "matmul_behind": lambda x, i: x[: _end(x, i)] @ torch.ones(6, 4),
    "softmax_behind": lambda x, i: torch.softmax(x[: _end(x, i)], -1),
}
