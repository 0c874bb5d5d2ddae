"""Kernels that move elements or compute each for itself: transposes, gathers, scatters, sorts, elementwise ops."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from function_model import Function
from hypothesis import strategies as st
from schedules import FLAGS, SIZES, Program, Schedule, strided, values
from torch import nn

ALL = (
    torch.bool,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
)
ANY = st.sampled_from(ALL)
_SHAPE = st.tuples(st.integers(0, 3), SIZES, SIZES)


def transposes(shape, order, dtype, computes):
    x = values(*shape, dtype=dtype)

    def permuted(x):
        y = x.permute(order)
        return y.contiguous(), (y + y).contiguous() if computes else y.float().contiguous()

    return Program(Function(permuted), (x,))


def gathers(lines, width, shape, dtype, far):
    table = values(lines, width, dtype=dtype)
    indices = torch.randint(0, lines, shape)
    places = torch.randint(0, lines, (shape[0], width))

    def gather(table, indices, places):
        return F.embedding(indices, table), table[:, indices[:, 0] % width], table.gather(0, places), table.flip(0)

    return Program(Function(gather), (strided(table) if far else table, indices, places))


def scatters(lines, width, updates, dtype, far):
    x, u = values(lines, width, dtype=dtype), values(updates, width, dtype=dtype)
    indices = torch.randint(0, lines, (updates,))
    each = torch.randint(0, lines, (updates, width))

    def scatter(x, u, indices, each):
        added = x.index_add(0, indices, u), x.scatter_add(0, each, u), x.index_put((indices,), u, accumulate=True)
        return (*added, x.index_fill(0, indices, 3))

    return Program(Function(scatter), (x, strided(u) if far else u, indices, each))


def sorts(lines, width, dtype, descending, far):
    x = values(lines, width, dtype=dtype)

    def ordered(x):
        several = torch.sort(x, dim=-1, descending=descending, stable=True), torch.sort(x, dim=0, stable=True)
        first = () if dtype == torch.bool else (x.topk(min(3, width), -1)[0],)
        return (*several[0], *several[1], *first)

    return Program(Function(ordered), (strided(x) if far else x,))


def parts(shape, dtype, far):
    x, y = values(*shape, dtype=dtype), values(*shape, dtype=dtype)

    def joined(x, y):
        z = torch.cat([x, y, x], 1)
        return z, z[:, 1:-1:2], F.pad(x, (1, 2, 0, 1)), torch.stack([x, y], -1), torch.cat([x + x, y], -1), x.flip(1, 2)

    return Program(Function(joined), (strided(x) if far else x, y))


def arithmetic(shape, dtype, far):
    """A chain of ops that all dtypes have, with broadcast operands."""
    x, y, z = values(*shape, dtype=dtype), values(shape[2], dtype=dtype), values(shape[1], 1, dtype=dtype)

    def chain(x, y, z):
        if dtype == torch.bool:
            return (x & y) | ~z, x ^ z, torch.where(x, y, z), x == y
        whole = (x + y) * z - x, torch.where(x > z, x, y), x.clamp(1, 3), -x if dtype != torch.uint8 else x
        exact = (*whole, torch.maximum(x, y), x != z)
        return (*exact, x / (z * z + 1)) if dtype.is_floating_point else (*exact, (x & y) | (z ^ x), x >> 1)

    return Program(Function(chain), (strided(x) if far else x, y, z))


def casts(shape, source, targets, far):
    size = shape[0] * shape[1] * shape[2]
    x = (torch.arange(size) % 100).reshape(shape).to(source)
    return Program(Function(lambda x: [x.to(target) for target in targets]), (strided(x) if far else x,))


FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt", "log1p", "expm1", "atan", "exp2")


def functions(shape, names, dtype, far):
    x = (torch.rand(shape, dtype=torch.float64) * 2 + 0.5).to(dtype)

    def apply(x):
        return [getattr(torch, name)(x) for name in names] + [F.gelu(x) * F.silu(x), x**1.7]

    return Program(Function(apply), (strided(x) if far else x,))


class Steps(nn.Module):
    """A recurrent network over a while_loop of known length: small kernels in a loop, which become one."""

    def __init__(self, width, length):
        super().__init__()
        self.cell = nn.Linear(width, width)
        self.length = length

    def forward(self, x, start):
        def step(number, state):
            return number + 1, torch.tanh(self.cell(state) + x.index_select(0, number.view(1))[0])

        first = torch.zeros((), dtype=torch.int64)
        return torch.while_loop(lambda number, state: number < self.length, step, (first, start))[1]


def steps(rows, width, length):
    return Program(Steps(width, length), (values(length, rows, width), values(rows, width)))


MOVES = [
    Schedule(
        "transposes",
        {
            "shape": st.tuples(st.integers(0, 3), st.integers(1, 70), st.integers(1, 70)),
            "order": st.permutations((0, 1, 2)),
            "dtype": ANY,
            "computes": FLAGS,
        },
        transposes,
        (r"tile-and-vectorize: tiles of (?!1 )(\d+) x 1 vectors of \1\b",),
        typical={"shape": (2, 33, 47), "order": (0, 2, 1), "dtype": torch.float32, "computes": True},
        count=2,
        units=0,
    ),
    Schedule(
        "gathers",
        {
            "lines": SIZES,
            "width": SIZES,
            "shape": st.tuples(st.integers(0, 5), st.integers(1, 4)),
            "dtype": ANY,
            "far": FLAGS,
        },
        gathers,
        (r"gathers-to-rows: reads \d tables row by row",),
        typical={"lines": 9, "width": 40, "shape": (3, 2), "dtype": torch.float32, "far": True},
        count=2,
        units=0,
    ),
    Schedule(
        "scatters",
        {
            "lines": SIZES,
            "width": SIZES,
            "updates": st.integers(0, 9),
            "dtype": st.sampled_from(ALL[1:]),
            "far": FLAGS,
        },
        scatters,
        (r"kernel: scatter",),
        units=4,
    ),
    Schedule(
        "sorts",
        {"lines": st.integers(0, 5), "width": SIZES, "dtype": ANY, "descending": FLAGS, "far": FLAGS},
        sorts,
        (r"kernel: sort",),
        typical={"lines": 3, "width": 17, "dtype": torch.float32, "descending": True, "far": True},
        count=2,
        units=0,
    ),
    Schedule("parts", {"shape": _SHAPE, "dtype": ANY, "far": FLAGS}, parts, (r"kernel: elementwise",), units=0),
    Schedule(
        "elementwise",
        {"shape": _SHAPE, "dtype": ANY, "far": FLAGS},
        arithmetic,
        (r"tile-and-vectorize: tiles of 1 x 1 vectors of ([2-9]|\d\d)",),
        units=0,
    ),
    Schedule(
        "casts",
        {"shape": _SHAPE, "source": ANY, "targets": st.lists(ANY, min_size=4, max_size=4, unique=True), "far": FLAGS},
        casts,
        (r"tile-and-vectorize: tiles of 1 x 1 vectors of ([2-9]|\d\d)",),
        units=0,
    ),
    Schedule(
        "functions",
        {
            "shape": _SHAPE,
            "names": st.lists(st.sampled_from(FUNCTIONS), min_size=4, max_size=4, unique=True),
            "dtype": st.sampled_from((torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)),
            "far": FLAGS,
        },
        functions,
        (r"tile-and-vectorize: tiles of 1 x 1 vectors of ([2-9]|\d\d)",),
        units=4,
    ),
    Schedule(
        "loops",
        {"rows": st.integers(1, 9), "width": st.integers(1, 40), "length": st.integers(1, 5)},
        steps,
        (r"outline-loops: one kernel",),
        count=2,
        typical={"rows": 3, "width": 20, "length": 4},
    ),
]
