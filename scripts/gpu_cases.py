"""What gpu_check.py builds, runs and times: functions and models of torch, with arguments. Needs torch alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))

from gpu_models import MODELS, Case, Function, ResNet18

#: Elements of the kernels that are timed by their memory traffic: more than caches hold.
_LARGE = 1 << 25


@dataclass(frozen=True)
class Timed:
    """A function that is timed on a GPU, against eager.

    Attributes:
        function: of torch.
        shapes, dtype: of its arguments.
        operations: multiply-adds count as two; 0 where memory traffic is what counts.
        tolerance: against the function in float32, relative to the greatest result.
        target: features of the target, such as `+cublas`.
    """

    function: Callable[..., torch.Tensor]
    shapes: tuple[tuple[int, ...], ...]
    dtype: torch.dtype = torch.float32
    operations: int = 0
    tolerance: float = 1e-5
    target: str = ""

    def arguments(self, device: str) -> tuple[torch.Tensor, ...]:
        """Random ones, the same each time on one kind of device."""
        generator = torch.Generator(device).manual_seed(0)
        return tuple(torch.randn(shape, generator=generator, device=device).to(self.dtype) for shape in self.shapes)


_ROWS = (_LARGE // 1024, 1024)
_SQUARE = ((4096, 4096), (4096, 4096))
_HEADS = ((4, 16, 2048, 64),) * 3
_ATTENTION = 4 * 4 * 16 * 2048 * 2048 * 64
_HALF = torch.bfloat16

TIMED: dict[str, Timed] = {
    "x * 2 + y": Timed(lambda x, y: x * 2 + y, (_ROWS, _ROWS)),
    "x * 2 + y, bfloat16": Timed(lambda x, y: x * 2 + y, (_ROWS, _ROWS), _HALF, tolerance=1e-2),
    "gelu(x + bias)": Timed(lambda x, b: F.gelu(x + b), (_ROWS, (1024,)), tolerance=1e-5),
    "softmax": Timed(lambda x: torch.softmax(x, -1), (_ROWS,)),
    "softmax, bfloat16": Timed(lambda x: torch.softmax(x, -1), (_ROWS,), _HALF, tolerance=1e-2),
    "layer norm": Timed(lambda x: F.layer_norm(x, (1024,)), (_ROWS,)),
    "sum of rows": Timed(lambda x: x.sum(-1), (_ROWS,), tolerance=1e-4),
    "transpose": Timed(lambda x: x.t() * 1.5, (_ROWS,)),
    "matmul 4096": Timed(torch.matmul, _SQUARE, operations=2 * 4096**3, tolerance=1e-4),
    "matmul 4096, bfloat16": Timed(torch.matmul, _SQUARE, _HALF, 2 * 4096**3, 1e-2),
    "matmul 4096, bfloat16, by cuBLAS": Timed(torch.matmul, _SQUARE, _HALF, 2 * 4096**3, 1e-2, "+cublas-always"),
    "relu(matmul 4096 + bias), float16": Timed(
        lambda a, b, c: torch.relu(a @ b + c), (*_SQUARE, (4096,)), torch.float16, 2 * 4096**3, 1e-2
    ),
    "matmul 1024, bfloat16": Timed(torch.matmul, ((1024, 1024),) * 2, _HALF, 2 * 1024**3, 1e-2),
    "matmul 16384 x 1024 x 1024, bfloat16": Timed(
        torch.matmul, ((16384, 1024), (1024, 1024)), _HALF, 2 * 16384 * 1024**2, 1e-2
    ),
    "attention": Timed(F.scaled_dot_product_attention, _HEADS, operations=_ATTENTION, tolerance=1e-4),
    "attention, bfloat16": Timed(F.scaled_dot_product_attention, _HEADS, _HALF, _ATTENTION, 2e-2),
    "causal attention, bfloat16": Timed(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), _HEADS, _HALF, _ATTENTION // 2, 2e-2
    ),
}


def _attention(dtype: torch.dtype, **options: Any) -> Callable[[], Case]:
    def make() -> Case:
        shapes = ((2, 4, 130, 64), (2, 2, 200, 64), (2, 2, 200, 64))
        args = tuple(torch.randn(shape).to(dtype) for shape in shapes)
        function = Function(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options))
        return Case(function, args, 1e-4 if dtype == torch.float32 else 2e-2)

    return make


def _product(dtype: torch.dtype, *sizes: int) -> Callable[[], Case]:
    def make() -> Case:
        rows, inner, columns = sizes
        a, b, c = torch.randn(rows, inner), torch.randn(inner, columns), torch.randn(columns)
        args = tuple(one.to(dtype) for one in (a, b, c))
        return Case(Function(lambda a, b, c: torch.relu(a @ b + c)), args, 1e-3 if dtype == torch.float32 else 5e-2)

    return make


#: What is compared with PyTorch's results on the CPU, which go along: every kind of kernel.
NUMBERS: dict[str, Callable[[], Case]] = {
    **MODELS,
    "resnet18": lambda: Case(ResNet18(16), (torch.randn(1, 3, 32, 32),), 1e-3),  # small enough to be carried along
    **{f"attention, {dtype}": _attention(dtype) for dtype in (torch.float32, torch.float16, torch.bfloat16)},
    **{f"causal attention, {dtype}": _attention(dtype, is_causal=True) for dtype in (torch.float32, torch.bfloat16)},
    **{
        f"product {sizes}, {dtype}": _product(dtype, *sizes)
        for sizes in ((256, 128, 512), (130, 72, 200), (70, 37, 45))
        for dtype in (torch.float32, torch.float16, torch.bfloat16)
    },
    "product of many tiles, bfloat16": _product(_HALF, 1500, 72, 2056),
    "convolution, float16": lambda: Case(
        nn.Conv2d(16, 64, 3, padding=1).half(), (torch.randn(2, 16, 17, 19).half(),), 2e-2
    ),
}
