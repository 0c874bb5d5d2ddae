"""RNN, GRU and LSTM: cells, layers of them, both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from shapes.case import MOST_FLOPS, Case, Made, distinct, drawn, log_uniform, sizes, spread

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def cases() -> Iterator[Case]:
    yield from distinct(_cells(), 24)
    yield from distinct(_layers(), 30)


class _Results(nn.Module):
    """A recurrent net whose state is zero at first; what it returns, flat."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.net(x) if not states else self.net(x, states[0] if len(states) == 1 else states)
        flat: list[torch.Tensor] = []
        for one in found if isinstance(found, tuple) else (found,):
            flat += one if isinstance(one, tuple) else (one,)
        return tuple(flat)


def _cells() -> Iterator[Case]:
    draw = drawn("cells")
    shapes = iter(((1, 128), (1, 512), (1, 1024), (32, 256), (128, 128), (7, 20)))
    while True:
        batch, width = next(shapes, None) or (log_uniform(draw, 1, 128), spread(draw, 8, 1024))
        kind = draw.choice(list(_GATES))

        def create(batch: int = batch, width: int = width, kind: str = kind) -> Made:
            states = tuple(torch.randn(batch, width) for _ in range(2 if kind == "LSTM" else 1))
            return _Results(getattr(nn, f"{kind}Cell")(width, width)), (torch.randn(batch, width), *states)

        yield Case("recurrent_cell", f"{kind}_{sizes(batch, width)}", create)


_PUBLISHED = (
    ("LSTM", 1, 128, 256, 1, False),
    ("LSTM", 1, 50, 650, 2, False),  # language models
    ("LSTM", 8, 35, 200, 2, False),
    ("LSTM", 1, 100, 512, 1, True),  # speech
    ("GRU", 1, 100, 256, 3, False),
    ("GRU", 16, 64, 128, 1, True),
    ("RNN", 1, 64, 128, 1, False),
)


def _layers() -> Iterator[Case]:
    draw = drawn("layers")
    shapes = iter(_PUBLISHED)
    while True:
        kind, batch, steps, width, layers, both = next(shapes, None) or (
            draw.choice(list(_GATES)),
            draw.choice((1, 2, 8, 32)),
            log_uniform(draw, 4, 200),
            spread(draw, 16, 512),
            draw.choice((1, 1, 2)),
            draw.random() < 0.3,
        )
        if steps * batch * 4 * _GATES[kind] * width * width * layers > MOST_FLOPS / 2:
            continue

        def create(shape: Any = (kind, batch, steps, width, layers, both)) -> Made:
            kind, batch, steps, width, layers, both = shape
            net = getattr(nn, kind)(width, width, layers, bidirectional=both)
            return _Results(net), (torch.randn(steps, batch, width),)

        name = f"{kind}_{sizes(batch, steps, width)}_{layers}{'_both' * both}"
        yield Case("recurrent", name, create, inductor=False)
