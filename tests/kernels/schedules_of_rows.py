"""Kernels over rows and columns: sums, softmax, norms, places of extremes, attention, scans."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from function_model import Function
from hypothesis import strategies as st
from schedules import FLAGS, SIZES, WITH_NONE, Program, Schedule, strided, values

FLOATS = st.sampled_from((torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16))
NUMBERS = st.sampled_from((torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.int8))

#: A remark of tile-groups on rows.
GROUPS = r"tile-groups: tiles of \d+( x \d+)* of the loops that its ops have in common"

_ROWS = {"rows": WITH_NONE, "columns": st.one_of(SIZES, st.integers(1, 600)), "far": FLAGS}


def rows_of(function):
    """What makes programs of a function of a matrix and two vectors as long as its rows."""

    def make(rows, columns, far, dtype=torch.float32):
        x, w, b = values(rows, columns, dtype=dtype), values(columns, dtype=dtype), values(columns, dtype=dtype)
        return Program(Function(function), (strided(x) if far else x, w, b))

    return make


def sums(x, w, b):
    return x.sum(-1), (x * w).sum(-1), (x * x).mean(-1), x.sum(), (x.abs() + b.abs()).sum(-1, keepdim=True) + x


def softmaxes(x, w, b):
    return x.softmax(-1), (x * 3 + b).log_softmax(-1), torch.logsumexp(x, -1), x.softmax(-1) * w


def norms(x, w, b):
    width = x.shape[-1:]
    return F.layer_norm(x, width, w, b), F.rms_norm(x, width, w), F.gelu(F.layer_norm(x, width) + x)


def columns(x, w, b):
    return x.sum(0), (x * w).mean(0), x.softmax(0), x - x.mean(0), (x * x).sum(0, keepdim=True) * x


def extremes(x, w, b):
    both = (*x.max(-1), *x.min(-1), x.argmax(-1), x.amax(-1), x.amin(-1))
    return (*both, *x.max(0), x.amin(0), x.argmin())


def counts(rows, columns, far, dtype):
    """Folds of integers and bools."""

    def folds(x):
        return x.sum(-1), x.sum(0), x.amax(-1), (x > 0).any(-1), (x > 0).all(0), (x != 0).sum()

    x = values(rows, columns, dtype=dtype)
    return Program(Function(folds), (strided(x) if far else x,))


def groups_of_channels(batch, groups, channels, side):
    w, b = values(groups * channels), values(groups * channels)
    model = Function(lambda x, w, b: F.silu(F.group_norm(x, groups, w, b)))
    return Program(model, (values(batch, groups * channels, side, 3), w, b))


def attention(batch, heads, queries, keys, width, value_width, mask, dtype):
    q, k, v = (
        values(batch, heads, *shape, dtype=dtype) for shape in ((queries, width), (keys, width), (keys, value_width))
    )
    masks = {"added": values(queries, keys, dtype=dtype), "bool": torch.rand(queries, keys) > 0.3}
    extra = (masks[mask],) if mask in masks else ()
    if mask == "bool":
        extra[0][:, 0] = True

    def attend(q, k, v, *mask_of):
        return F.scaled_dot_product_attention(q, k, v, *mask_of, is_causal=mask == "causal")

    return Program(Function(attend), (q, k, v, *extra))


def scans(shape, dtype, far):
    x = values(*shape, dtype=dtype)

    def running(x):
        return x.cumsum(-1), x.cumsum(0), (x * 0.5 + 1).cumprod(1) if dtype.is_floating_point else x.cumprod(1)

    return Program(Function(running), (strided(x) if far else x,))


_SOME = {**_ROWS, "rows": SIZES}
_TYPICAL = {"rows": 9, "columns": 77, "far": True, "dtype": torch.float32}

ROWS = [
    Schedule(
        "row-reductions",
        {**_ROWS, "dtype": FLOATS},
        rows_of(sums),
        (r"kernel: reduction", r"tiles of 1 x [2-9] vectors of"),
        typical=_TYPICAL,
        count=2,
        units=24,
        linear=True,
    ),
    Schedule(
        "row-softmax",
        {**_ROWS, "dtype": FLOATS},
        rows_of(softmaxes),
        (GROUPS, r"divide-by-reciprocals: multiplies", r"tiles of 1 x \d vectors of \d+ with [1-9] prologues"),
        typical=_TYPICAL,
        count=2,
    ),
    Schedule("row-norms", {**_SOME, "dtype": FLOATS}, rows_of(norms), (GROUPS,), typical=_TYPICAL, count=2, units=40),
    Schedule(
        "group-norm",
        {"batch": st.integers(0, 3), "groups": st.integers(1, 3), "channels": st.integers(1, 5), "side": SIZES},
        groups_of_channels,
        (GROUPS,),
        units=40,
    ),
    Schedule(
        "column-reductions",
        {**_ROWS, "dtype": FLOATS},
        rows_of(columns),
        (GROUPS,),
        typical=_TYPICAL,
        count=2,
        units=24,
    ),
    Schedule(
        "extremes",
        {**_SOME, "dtype": NUMBERS},
        rows_of(extremes),
        (r"kernel: reduction",),
        typical=_TYPICAL,
        count=2,
        units=0,
    ),
    Schedule(
        "folds-of-integers",
        {
            **_SOME,
            "dtype": st.sampled_from((torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)),
        },
        counts,
        (r"kernel: reduction",),
        typical={**_TYPICAL, "dtype": torch.int32},
        count=2,
        units=0,
    ),
    Schedule(
        "attention",
        {
            "batch": st.integers(1, 2),
            "heads": st.integers(1, 3),
            "queries": st.integers(1, 70),
            "keys": st.integers(1, 150),
            "width": st.integers(1, 40),
            "value_width": st.integers(1, 40),
            "mask": st.sampled_from(("none", "causal", "added", "bool")),
            "dtype": FLOATS,
        },
        attention,
        (r"form-groups: attention group",),
        units=40,
    ),
    Schedule(
        "scans",
        {
            "shape": st.tuples(st.integers(0, 5), st.integers(1, 20), st.integers(1, 40)),
            "dtype": st.sampled_from((torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32)),
            "far": FLAGS,
        },
        scans,
        (r"kernel: scan",),
        units=40,
    ),
]
