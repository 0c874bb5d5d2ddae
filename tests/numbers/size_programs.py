"""Programs that compute with sizes as numbers: name → (function, shapes of its tensors for a size n)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

Program = Callable[..., Any]

#: One tensor of shape [n, 6].
OF_MATRIX: dict[str, Program] = {
    "mul": lambda x: x * x.shape[0],
    "add": lambda x: x + x.shape[0],
    "sub": lambda x: x - x.shape[0] * 2,
    "rsub": lambda x: x.shape[0] - x,
    "div": lambda x: x / x.shape[0],
    "rdiv": lambda x: x.shape[0] / (x * x + 1),
    "pow": lambda x: x.abs() ** x.shape[0],
    "half": lambda x: x * (x.shape[0] // 2),
    "remainder": lambda x: x + x.shape[0] % 3,
    "negative_floor": lambda x: x + (-x.shape[0]) // 4,
    "negative_remainder": lambda x: x + (3 - x.shape[0]) % 4,
    "mul_sqrt": lambda x: x * math.sqrt(x.shape[0]),
    "div_sqrt": lambda x: x / math.sqrt(x.shape[0]),
    "power_half": lambda x: x * x.shape[0] ** 0.5,
    "power_minus_half": lambda x: x * (x.shape[0] + 1) ** -0.5,
    "square": lambda x: x * x.shape[0] ** 2,
    "ratio": lambda x: x * (torch.sym_float(x.shape[0]) / 7),
    "ratio_of_ints": lambda x: x * (x.shape[0] / 7),
    "log": lambda x: x * math.log(x.shape[0] + 1),
    "log2": lambda x: x * math.log2(x.shape[0] + 1),
    "exp": lambda x: x * math.exp(x.shape[0] / 1000),
    "sin": lambda x: x * math.sin(x.shape[0]) + math.cos(x.shape[0]) * math.tanh(x.shape[0]),
    "ceil": lambda x: x + math.ceil(x.shape[0] / 3),
    "floor": lambda x: x + math.floor(x.shape[0] / 3),
    "trunc": lambda x: x + math.trunc(x.shape[0] / 3),
    "sym_int": lambda x: x + torch.sym_int(x.shape[0] * 0.7),
    "exp_of_negative": lambda x: x * math.exp(-x.shape[0] / 7) + math.expm1(1 / (x.shape[0] + 1)),
    "log10": lambda x: x * math.log10(x.shape[0] + 1) - math.log(x.shape[0] + 1, 3) + math.pow(x.shape[0], 0.25),
    "round": lambda x: x + round(x.shape[0] / 2),
    "min": lambda x: x + min(x.shape[0], 5),
    "max": lambda x: x + torch.sym_max(x.shape[0], 5),
    "max_float": lambda x: x + torch.sym_max(x.shape[0] / 2, 1.5),
    "ite": lambda x: x + torch.sym_ite(x.shape[0] > 4, x.shape[0], x.shape[0] * 2),
    "full": lambda x: torch.full((3,), x.shape[0]),
    "full_float": lambda x: torch.full((3,), x.shape[0] / 2),
    "full_like": lambda x: torch.full_like(x, x.shape[0] / 2),
    "fill": lambda x: x.clone().fill_(x.shape[0]),
    "tensor": lambda x: torch.tensor(x.shape[0]) + x,
    "scalar_tensor": lambda x: torch.scalar_tensor(x.shape[0] / 3) + x,
    "alpha": lambda x: torch.add(x, x, alpha=x.shape[0]),
    "clamp": lambda x: x.clamp(max=x.shape[0] / 4),
    "clamp_ints": lambda x: (x * 9).long().clamp(-x.shape[0], x.shape[0]),
    "where": lambda x: torch.where(x > 0, x, x.shape[0] / 3),
    "masked_fill": lambda x: x.masked_fill(x > 0, x.shape[0]),
    "compare": lambda x: (x * 3 < x.shape[0]) & (x != x.shape[0] / 3),
    "linspace": lambda x: torch.linspace(0, 1, x.shape[0]),
    "linspace_to": lambda x: torch.linspace(-1, x.shape[0], 5),
    "linspace_steps": lambda x: torch.linspace(0, x.shape[0] - 1, x.shape[0]) / x.shape[0],
    "arange": lambda x: torch.arange(x.shape[0]) * x.shape[0],
    "arange_float": lambda x: torch.arange(0, x.shape[0], 0.5),
    "arange_step": lambda x: torch.arange(0, x.shape[0] * 2, 2) + x[:, 0].long(),
    "arange_float_end": lambda x: torch.arange(x.shape[0], dtype=torch.float32) / x.shape[0],
    "arange_down": lambda x: torch.arange(x.shape[0], 0, -1),
    "std": lambda x: x.std(0),
    "var_all": lambda x: x.var(),
    "std_biased": lambda x: x.std(0, correction=0),
    "mean": lambda x: x.mean(0),
    "layer_norm_by_hand": lambda x: (x - x.mean(0)) / (x.var(0) + 1e-5).sqrt(),
    "scaled_dot": lambda x: torch.softmax(x.t() @ x / math.sqrt(x.shape[0]), -1),
    "half_precision": lambda x: (x.half() * x.shape[0] / 3).float(),
    "bf16": lambda x: (x.bfloat16() * (x.shape[0] / 3)).float(),
    "int_tensor": lambda x: (x * 5).int() * x.shape[0],
    "int_tensor_by_float": lambda x: (x * 5).int() * (x.shape[0] / 3),
    "byte_tensor": lambda x: (x * 5).abs().byte() + x.shape[0] % 5,
    "return_int": lambda x: (x + 1, x.shape[0] * 2),
    "return_float": lambda x: (x + 1, x.shape[0] / 3),
    "return_bool": lambda x: (x + 1, x.shape[0] > 4, torch.sym_not(x.shape[0] > 4)),
    "return_only": lambda x: x.shape[0] + 1,
    "numel": lambda x: x.sum() / x.numel(),
    "positions": lambda x: torch.exp(torch.arange(x.shape[0]) * (-math.log(10000.0) / (x.shape[0] + 1))),
    "rotary": lambda x: torch.outer(torch.arange(x.shape[0]).float(), 1.0 / (100 ** (torch.arange(0, 6, 2) / 6))),
}

#: Two tensors, [n, 6] and [m] of m = n + 3.
OF_TWO: dict[str, Program] = {
    "min_of_two": lambda x, y: x + min(x.shape[0], y.shape[0]),
    "max_of_two": lambda x, y: x + torch.sym_max(x.shape[0], y.shape[0]),
    "quotient": lambda x, y: y * (x.shape[0] / y.shape[0]),
    "floor_quotient": lambda x, y: y + y.shape[0] // (x.shape[0] + 1),
    "sum_of_two": lambda x, y: torch.full((2,), x.shape[0] + y.shape[0]),
    "ratios": lambda x, y: (x.shape[0] / y.shape[0], x.shape[0] * y.shape[0], x.shape[0] < y.shape[0]),
    "by_zero": lambda x, y: y + y.shape[0] // x.shape[0],
    "modulo_zero": lambda x, y: y + y.shape[0] % x.shape[0],
    "true_by_zero": lambda x, y: y + y.shape[0] / x.shape[0],
}
