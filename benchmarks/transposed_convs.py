"""Times transposed convolutions against PyTorch, on one thread.

Usage: taskset -c 1 python benchmarks/transposed_convs.py [--write] [PART OF A NAME ...]

What decoders (DCGAN, U-Net), vocoders (HiFi-GAN) and 3d networks use. The least times of many calls, of both by turns.
`--write` puts the table into docs/performance.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import pipeline

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
START, END = "<!-- transposed: benchmarks/transposed_convs.py --write -->", "<!-- end of transposed -->"

#: How long each model is measured, in seconds.
BUDGET = 1.5

HEADER = ("transposed convolution", "PyTorch (ms)", "pipeline (ms)", "times as fast", "error, PyTorch's")


def _with_norm(layer: nn.Module, channels: int) -> nn.Module:
    return nn.Sequential(layer, nn.BatchNorm2d(channels), nn.ReLU())


def _generator() -> nn.Module:
    """That of a DCGAN."""
    first = _with_norm(nn.ConvTranspose2d(100, 512, 4, 1, 0, bias=False), 512)
    layers = [
        _with_norm(nn.ConvTranspose2d(wide, wide // 2, 4, 2, 1, bias=False), wide // 2) for wide in (512, 256, 128)
    ]
    return nn.Sequential(first, *layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())


#: The models, and the shapes of their data.
CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "64 → 32, 4x4, steps of 2, 32x32": (lambda: nn.ConvTranspose2d(64, 32, 4, 2, 1), (1, 64, 32, 32)),
    "128 → 64, 4x4, steps of 2, norm, relu, 16x16": (
        lambda: _with_norm(nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False), 64),
        (1, 128, 16, 16),
    ),
    "512 → 256, 4x4, steps of 2, 4x4": (lambda: nn.ConvTranspose2d(512, 256, 4, 2, 1), (1, 512, 4, 4)),
    "64 → 3, 4x4, steps of 2, tanh, 32x32": (
        lambda: nn.Sequential(nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()),
        (1, 64, 32, 32),
    ),
    "128 → 64, 2x2, steps of 2, 32x32": (lambda: nn.ConvTranspose2d(128, 64, 2, 2), (1, 128, 32, 32)),
    "128 → 64, 3x3, steps of 2, norm, relu, 32x32": (
        lambda: _with_norm(nn.ConvTranspose2d(128, 64, 3, 2, 1, 1, bias=False), 64),
        (1, 128, 32, 32),
    ),
    "21 → 21, 16x16, steps of 8, 28x28": (lambda: nn.ConvTranspose2d(21, 21, 16, 8, 4), (1, 21, 28, 28)),
    "64 → 64, 4x4, steps of 2, 4 groups, 16x16": (
        lambda: nn.ConvTranspose2d(64, 64, 4, 2, 1, groups=4),
        (1, 64, 16, 16),
    ),
    "64 → 64, 3x3, steps of 1, 32x32": (lambda: nn.ConvTranspose2d(64, 64, 3, 1, 1), (1, 64, 32, 32)),
    "512 → 256, 16, steps of 8, 32": (lambda: nn.ConvTranspose1d(512, 256, 16, 8, 4), (1, 512, 32)),
    "64 → 32, 4, steps of 2, 4096": (lambda: nn.ConvTranspose1d(64, 32, 4, 2, 1), (1, 64, 4096)),
    "32 → 16, 4x4x4, steps of 2, 8x8x8": (lambda: nn.ConvTranspose3d(32, 16, 4, 2, 1), (1, 32, 8, 8, 8)),
    "64 → 32, 3x3x3, steps of 2, 8x8x8": (lambda: nn.ConvTranspose3d(64, 32, 3, 2, 1, 1), (1, 64, 8, 8, 8)),
    "generator of a DCGAN": (_generator, (1, 100, 1, 1)),
}


def least(*calls: Callable[[], Any]) -> list[float]:
    """The least time of each of some functions, in milliseconds; they take turns."""
    for call in calls * 3:
        call()
    found = [float("inf")] * len(calls)
    end = time.perf_counter() + BUDGET
    while time.perf_counter() < end:
        for number, call in enumerate(calls):
            start = time.perf_counter()
            call()
            found[number] = min(found[number], time.perf_counter() - start)
    return [1000 * seconds for seconds in found]


def row(name: str) -> tuple[str, ...]:
    """A row of the table."""
    torch.manual_seed(0)
    make, shape = CASES[name]
    model, x = make().eval().requires_grad_(False), torch.randn(shape)
    executable = pipeline.compile(model, (x,), num_threads=1)
    theirs, ours = least(lambda: model(x), lambda: executable(x))
    results = executable(x), model(x)
    exact = model.double()(x.double())
    errors = [((result - exact).abs().max() / exact.abs().max()).item() for result in results]
    return name, f"{theirs:.3g}", f"{ours:.3g}", f"**{theirs / ours:.2f}**", "{:.0e}, {:.0e}".format(*errors)


def show(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Prints a table."""
    table = Table(*header)
    for cells in rows:
        table.add_row(*(cell.strip("*") for cell in cells))
    Console(width=120).print(table)


def write(header: tuple[str, ...], rows: list[tuple[str, ...]], start: str, end: str) -> None:
    """Puts a table between its marks in docs/performance.md."""
    lines = [header, ("---", *["---:"] * (len(header) - 1)), *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    page = PAGE.read_text()
    before, rest = page.split(start)
    PAGE.write_text(f"{before}{start}\n{table}\n{end}{rest.split(end)[1]}")


def main(arguments: list[str]) -> None:
    """Prints the table of the models that the arguments name, or of all."""
    torch.set_num_threads(1)
    parts = [one for one in arguments if not one.startswith("--")]
    rows = [row(name) for name in CASES if not parts or any(part in name for part in parts)]
    show(HEADER, rows)
    if "--write" in arguments:
        write(HEADER, rows, START, END)


if __name__ == "__main__":
    main(sys.argv[1:])
