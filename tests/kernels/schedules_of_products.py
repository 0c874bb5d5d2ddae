"""Matrix products: register tiles, their epilogues, batches, vectors, panels of weights, dot products of bf16."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from function_model import Function
from hypothesis import strategies as st
from schedules import FLAGS, SIZES, WITH_NONE, Program, Schedule, strided, values
from torch import nn

DTYPES = st.sampled_from((torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.int32))

#: A remark of tile-and-vectorize on several rows of vectors.
TILES = r"tile-and-vectorize: tiles of ([2-9]|\d\d) x \d vectors of ([2-9]|\d\d)"


def product(m, n, k, dtype, first, second):
    """x @ y, each transposed or strided or neither."""
    shapes = (k, m) if first == "transposed" else (m, k), (n, k) if second == "transposed" else (k, n)
    x, y = (values(*shape, dtype=dtype) for shape in shapes)
    x, y = (strided(one) if how == "strided" else one for one, how in ((x, first), (y, second)))

    def multiply(x, y):
        return (x.t() if first == "transposed" else x) @ (y.t() if second == "transposed" else y)

    return Program(Function(multiply), (x, y))


class Epilogue(nn.Module):
    """A linear layer and what runs on its tiles: a function, another operand, the result transposed."""

    def __init__(self, inner, columns, function, bias, transposed):
        super().__init__()
        self.linear = nn.Linear(inner, columns, bias=bias)
        self.function = function
        self.transposed = transposed

    def forward(self, x, other):
        y = self.function(self.linear(x)) + other
        return (y.t().contiguous(), y) if self.transposed else y


def epilogue(rows, inner, columns, function, bias, transposed):
    model = Epilogue(inner, columns, getattr(F, function), bias, transposed)
    return Program(model, (values(rows, inner), values(rows, columns)))


def batches(batch, heads, m, n, k, shared, transposed):
    m += 4 * transposed  # fewer rows read the lines of what is transposed, see `vector`
    x, y = values(batch, heads, m, k), values(*(() if shared else (batch, heads)), *((n, k) if transposed else (k, n)))
    return Program(Function(lambda x, y: x @ (y.transpose(-1, -2) if transposed else y)), (x, y))


def vector(n, k, batch, side, dtype):
    """A vector times a matrix whose lines are read along, or a column."""
    x, w = values(batch, 1, k, dtype=dtype), values(batch, n, k, dtype=dtype)
    if side == "left":
        return Program(Function(lambda x, w: x @ w.transpose(1, 2) + 1), (x, w))
    return Program(Function(lambda x, w: w @ x.transpose(1, 2)), (x, w))


def layer(rows, inner, columns, function, dtype):
    model = nn.Sequential(nn.Linear(inner, columns), nn.ReLU() if function else nn.Identity())
    return Program(model.to(dtype), (values(rows, inner, dtype=dtype),))


class Rounded(nn.Module):
    """Operands in bf16 already, so that rounding them again changes nothing."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        with torch.no_grad():
            for weight in layer.parameters():
                weight.copy_(weight.bfloat16())

    def forward(self, x):
        return self.layer(x)


def rounded_layer(rows, inner, columns):
    return Program(Rounded(nn.Linear(inner, columns)), (values(rows, inner).bfloat16().float(),))


def rounded_convolution(channels, results, size, kernel, stride):
    conv = nn.Conv2d(channels, results, kernel, stride, padding=kernel // 2)
    return Program(Rounded(conv), (values(1, channels, size, size + 2).bfloat16().float(),))


_OPERAND = st.sampled_from(("plain", "plain", "transposed", "strided"))
_LAYER = {"rows": st.integers(1, 40), "inner": st.integers(64, 300), "columns": st.integers(64, 300)}

PRODUCTS = [
    Schedule(
        "product",
        {"m": WITH_NONE, "n": WITH_NONE, "k": WITH_NONE, "dtype": DTYPES, "first": _OPERAND, "second": _OPERAND},
        product,
        (TILES,),
        linear=True,
        count=5,
    ),
    Schedule(
        "product-large-tiles",
        {
            "m": st.sampled_from((14, 28, 42)),
            "n": st.integers(17, 100),
            "k": SIZES,
            "dtype": st.just(torch.float32),
            "first": _OPERAND,
            "second": _OPERAND,
        },
        product,
        (r"tiles of 14 x 2 vectors of 16",),
        linear=True,
        exists=lambda isa: isa.vector_registers == 32,
    ),
    Schedule(
        "product-epilogue",
        {
            "rows": SIZES,
            "inner": SIZES,
            "columns": SIZES,
            "function": st.sampled_from(("relu", "gelu", "tanh")),
            "bias": FLAGS,
            "transposed": FLAGS,
        },
        epilogue,
        (r"vectors of \d+ with [1-9] epilogues",),
    ),
    Schedule(
        "product-batches",
        {
            "batch": st.integers(0, 3),
            "heads": st.integers(1, 3),
            "m": SIZES,
            "n": SIZES,
            "k": SIZES,
            "shared": FLAGS,
            "transposed": FLAGS,
        },
        batches,
        (TILES,),
        linear=True,
    ),
    Schedule(
        "product-of-a-vector",
        {
            "n": SIZES,
            "k": st.integers(1, 300),
            "batch": st.integers(1, 3),
            "side": st.sampled_from(("left", "right")),
            "dtype": DTYPES,
        },
        vector,
        (r"tiles of 1 x \d vectors of",),
        linear=True,
    ),
    Schedule(
        "product-packed-weight",
        {**_LAYER, "function": FLAGS, "dtype": st.sampled_from((torch.float32, torch.float32, torch.float64))},
        layer,
        (r"pack-weights: reads its weight in panels of \d+ columns$",),
        linear=True,
    ),
    Schedule(
        "product-bf16",
        {
            "rows": st.integers(4, 40),
            "inner": st.sampled_from((256, 300, 301, 384)),
            "columns": st.sampled_from((128, 160, 250, 192)),
            "function": FLAGS,
            "dtype": st.just(torch.bfloat16),
        },
        layer,
        (r"pack-weights: reads its weight in panels of \d+ columns of pairs",),
        linear=True,
        units=1,
        exists=lambda isa: isa.bf16_dots,
    ),
    Schedule(
        "product-precision-bf16",
        {"rows": st.integers(1, 20), "inner": st.integers(2, 100), "columns": SIZES},
        rounded_layer,
        (r"contract-in-bf16: (dot products of bf16|computed in f32: the processor has no)",),
        linear=True,
        options={"precision": "bf16"},
    ),
    Schedule(
        "convolution-precision-bf16",
        {
            "channels": st.integers(1, 40),
            "results": st.integers(1, 40),
            "size": st.integers(3, 10),
            "kernel": st.sampled_from((1, 3)),
            "stride": st.integers(1, 2),
        },
        rounded_convolution,
        (r"contract-in-bf16: (dot products of bf16|computed in f32: the processor has no)",),
        linear=True,
        options={"precision": "bf16"},
    ),
]
