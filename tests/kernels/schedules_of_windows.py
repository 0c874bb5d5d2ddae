"""Convolutions and pools: direct, with channels last, by Winograd's algorithm, depthwise."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from schedules import FLAGS, Program, Schedule, strided, values
from schedules_of_products import TILES
from torch import nn

#: Layouts and algorithms whatever they cost.
LAST = "canonicalize, cse, propagate-layouts{always=true}"
FORCED = LAST + ", winograd-weights{always=true results=%d}"

_SIDE = st.integers(1, 21)


class Windows(nn.Module):
    """A convolution between two others, with what comes behind it."""

    def __init__(self, conv, first=None, tail="none"):
        super().__init__()
        self.first = first or nn.Identity()
        self.conv = conv
        self.tail = tail

    def forward(self, x):
        y = self.conv(self.first(x))
        tails = {
            "none": lambda: y,
            "relu": lambda: torch.relu(y),
            "twice": lambda: (y, y.mean((2, 3))),
            "concat": lambda: torch.cat([y, y + 1], 1),
            "pad": lambda: F.pad(y, (1, 0, 2, 1)),
        }
        return tails[self.tail]()


_KINDS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


def convolution(rank, channels, results, groups, kernel, stride, padding, dilation, sides, tail, far):
    """With groups that divide the channels, and sides that the window fits into."""
    least = dilation * (kernel - 1) + 1
    sides = [max(side, least - 2 * padding) for side in sides[:rank]]
    conv = _KINDS[rank](groups * channels, groups * results, kernel, stride, padding, dilation, groups)
    x = values(2, groups * channels, *sides)
    return Program(Windows(conv, tail=tail), (strided(x) if far else x,))


def transposed(channels, results, groups, kernel, stride, padding, sides):
    conv = nn.ConvTranspose2d(
        groups * channels, groups * results, kernel, stride, min(padding, kernel - 1), groups=groups
    )
    return Program(Windows(conv), (values(1, groups * channels, *(side + 1 for side in sides[:2])),))


def between(channels, results, kernel, stride, padding, dilation, sides, tail):
    """Behind another convolution, so that its layout can be chosen."""
    least = dilation * (kernel - 1) + 1
    sides = [max(side, least - 2 * padding) for side in sides[:2]]
    model = Windows(nn.Conv2d(channels, results, kernel, stride, padding, dilation), nn.Conv2d(3, channels, 1), tail)
    return Program(model, (values(2, 3, *sides),))


def winograd(channels, results, sides, padding, tail):
    sides = [max(side, 3 - 2 * padding) for side in sides[:2]]
    model = Windows(nn.Conv2d(channels, results, 3, padding=padding), nn.Conv2d(3, channels, 1), tail)
    return Program(model, (values(1, 3, *sides),))


def depthwise(channels, kernel, stride, dilation, sides, tail):
    padding = dilation * (kernel // 2)
    conv = nn.Conv2d(channels, channels, kernel, stride, padding, dilation, groups=channels)
    least = max(1, dilation * (kernel - 1) + 1 - 2 * padding)
    return Program(Windows(conv, tail=tail), (values(2, channels, *(max(least, side) for side in sides[:2])),))


class Pools(nn.Module):
    """Pools of an image, and one behind a function."""

    def __init__(self, kernel, stride, padding):
        super().__init__()
        self.window = (kernel, stride, padding)

    def forward(self, x):
        return F.max_pool2d(x, *self.window), F.avg_pool2d(x, *self.window), F.adaptive_avg_pool2d(x.abs(), 1)


def pools(channels, kernel, stride, padding, sides, far):
    padding = min(padding, kernel // 2)
    x = values(2, channels, *(max(side, kernel) for side in sides[:2]))
    return Program(Pools(kernel, stride, padding), (strided(x) if far else x,))


_SIDES = st.tuples(_SIDE, _SIDE, st.integers(1, 5))
_TAILS = st.sampled_from(("none", "relu", "twice", "concat", "pad"))
_WINDOW = {"kernel": st.integers(1, 4), "stride": st.integers(1, 3), "padding": st.integers(0, 2)}
_WINOGRAD = {
    "channels": st.sampled_from((4, 16, 32, 48)),
    "results": st.sampled_from((16, 32, 64, 96)),
    "sides": _SIDES,
    "padding": st.integers(0, 1),
    "tail": _TAILS,
}
_TYPICAL_WINOGRAD = {"channels": 32, "results": 64, "sides": (7, 9), "padding": 1, "tail": "relu"}
_TYPICAL_DEPTHWISE = {"channels": 5, "kernel": 3, "stride": 1, "dilation": 1, "sides": (9, 33), "tail": "relu"}

WINDOWS = [
    Schedule(
        "convolution",
        {
            "rank": st.sampled_from((2, 2, 1, 3)),
            "channels": st.integers(1, 9),
            "results": st.integers(1, 20),
            "groups": st.integers(1, 2),
            **_WINDOW,
            "dilation": st.integers(1, 2),
            "sides": _SIDES,
            "tail": st.sampled_from(("none", "relu")),
            "far": FLAGS,
        },
        convolution,
        (TILES,),
        linear=True,
        options={"disable": ("propagate-layouts", "winograd-weights")},
    ),
    Schedule(
        "convolution-transposed",
        {
            "channels": st.integers(1, 9),
            "results": st.integers(1, 20),
            "groups": st.integers(1, 2),
            **_WINDOW,
            "sides": _SIDES,
        },
        transposed,
        (TILES,),
        linear=True,
    ),
    Schedule(
        "convolution-channels-last",
        {
            "channels": st.sampled_from((1, 3, 16, 24, 40)),
            "results": st.sampled_from((1, 5, 16, 32, 48)),
            **_WINDOW,
            "dilation": st.integers(1, 2),
            "sides": _SIDES,
            "tail": _TAILS,
        },
        between,
        (r"propagate-layouts: channels last",),
        linear=True,
        layouts=LAST,
    ),
    Schedule(
        "convolution-winograd-2",
        _WINOGRAD,
        winograd,
        (r"tile-and-vectorize: Winograd's algorithm, 2 x 2",),
        typical=_TYPICAL_WINOGRAD,
        count=2,
        linear=True,
        layouts=FORCED % 2,
    ),
    Schedule(
        "convolution-winograd-4",
        _WINOGRAD,
        winograd,
        (r"tile-and-vectorize: Winograd's algorithm, 4 x 4",),
        typical=_TYPICAL_WINOGRAD,
        count=2,
        units=200,
        linear=True,
        layouts=FORCED % 4,
    ),
    Schedule(
        "convolution-depthwise",
        {
            "channels": st.integers(1, 20),
            "kernel": st.sampled_from((1, 2, 3, 5)),
            "stride": st.integers(1, 2),
            "dilation": st.integers(1, 2),
            "sides": st.tuples(_SIDE, st.integers(1, 70)),
            "tail": st.sampled_from(("none", "relu")),
        },
        depthwise,
        (r"tile-and-vectorize: tiles of \d+ x \d vectors of \d+ of what is padded",),
        typical=_TYPICAL_DEPTHWISE,
        count=2,
        linear=True,
        exists=lambda isa: isa.vector_bytes >= 32,
    ),
    Schedule(
        "convolution-depthwise-of-copies",
        {
            "channels": st.integers(1, 20),
            "kernel": st.sampled_from((1, 2, 3, 5)),
            "stride": st.integers(1, 2),
            "dilation": st.integers(1, 2),
            "sides": st.tuples(_SIDE, st.integers(1, 70)),
            "tail": st.sampled_from(("none", "relu")),
        },
        depthwise,
        (TILES,),
        typical=_TYPICAL_DEPTHWISE,
        count=2,
        linear=True,
        options={"disable": ("fold-pads-into-kernels",)},
    ),
    Schedule(
        "pools",
        {"channels": st.integers(1, 20), **_WINDOW, "sides": st.tuples(_SIDE, st.integers(1, 70)), "far": FLAGS},
        pools,
        (TILES,),
    ),
]
