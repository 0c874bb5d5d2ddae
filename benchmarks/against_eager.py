"""Times pipeline against PyTorch eager, both on one thread, slices of the two in turn.

Usage: taskset -c 0 python benchmarks/against_eager.py [WORKLOAD ...]

Each row: the medians in milliseconds, their ratio (above 1 pipeline is faster), what pipeline reaches in GFLOP/s or in
GB/s of the data that must move, the largest error relative to the largest result, and the CPU seconds of compilation.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import nn

import pipeline

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from resnet18 import ResNet18  # noqa: E402 - an example, not a package

SLICES = 7
SLICE_SECONDS = 0.15


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]):
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(*args)


class ConvNormRelu(nn.Module):
    """Convolution, batch norm, ReLU."""

    def __init__(self, channels_in: int, channels: int, kernel: int, stride: int = 1, groups: int = 1):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.conv(x)))


class Encoder(nn.Module):
    """A pre-norm transformer block of 768 features and 12 heads."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(768), nn.LayerNorm(768)
        self.qkv, self.out = nn.Linear(768, 3 * 768), nn.Linear(768, 768)
        self.up, self.down = nn.Linear(768, 3072), nn.Linear(3072, 768)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, length, 3, 12, 64).permute(2, 0, 3, 1, 4).unbind(0)
        attention = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(attention.transpose(1, 2).reshape(n, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


@dataclass(frozen=True)
class Workload:
    """A module, its inputs, and what it must do at least: floating-point operations, bytes."""

    make: Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]
    flops: float = 0.0
    bytes: float = 0.0


def _conv(channels_in: int, channels: int, kernel: int, size: int, stride: int = 1, groups: int = 1) -> Workload:
    def make() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        return ConvNormRelu(channels_in, channels, kernel, stride, groups), (torch.randn(1, channels_in, size, size),)

    return Workload(make, flops=2 * channels * (size // stride) ** 2 * kernel**2 * channels_in // groups)


WORKLOADS = {
    "matmul 512": Workload(
        lambda: (Function(torch.matmul), (torch.randn(512, 512), torch.randn(512, 512))), flops=2 * 512**3
    ),
    "matmul 197x768x768": Workload(lambda: (nn.Linear(768, 768), (torch.randn(197, 768),)), flops=2 * 197 * 768 * 768),
    "conv 3x3 64 56x56": _conv(64, 64, 3, 56),
    "conv 3x3 256 14x14": _conv(256, 256, 3, 14),
    "conv 3x3/2 128 28x28": _conv(64, 128, 3, 56, 2),
    "conv 1x1 128-256 28x28": _conv(128, 256, 1, 28),
    "depthwise 3x3 64 128x128": _conv(64, 64, 3, 128, 1, 64),
    "int chain 2000x2000": Workload(
        lambda: (
            Function(lambda a, b, c: ((a.to(torch.int64) + b) * c).to(torch.int32)),
            tuple(torch.randint(-99, 99, (2000, 2000), dtype=kind) for kind in (torch.int32, torch.int64, torch.int32)),
        ),
        bytes=2000 * 2000 * 20,
    ),
    "gelu chain 2000x2000": Workload(
        lambda: (
            Function(lambda x, y, z: F.gelu(x * y + z) * torch.sigmoid(x)),
            tuple(torch.randn(2000, 2000) for _ in range(3)),
        ),
        bytes=2000 * 2000 * 16,
    ),
    "softmax 4096x1024": Workload(lambda: (nn.Softmax(-1), (torch.randn(4096, 1024),)), bytes=4096 * 1024 * 8),
    "layernorm 4096x1024": Workload(lambda: (nn.LayerNorm(1024), (torch.randn(4096, 1024),)), bytes=4096 * 1024 * 8),
    "encoder 128x768": Workload(lambda: (Encoder(), (torch.randn(1, 128, 768),)), flops=1.86e9),
    "resnet18 224x224": Workload(lambda: (ResNet18(), (torch.randn(1, 3, 224, 224),)), flops=3.63e9),
}


def seconds(run: Callable[[], object]) -> float:
    """The time of a call, averaged over a slice."""
    calls = 0
    start = time.perf_counter()
    while calls == 0 or time.perf_counter() - start < SLICE_SECONDS:
        run()
        calls += 1
    return (time.perf_counter() - start) / calls


def row(name: str, workload: Workload) -> list[str]:
    """The figures of a workload."""
    torch.manual_seed(0)
    model, inputs = workload.make()
    model = model.eval().requires_grad_(False)
    start = time.process_time()
    executable = pipeline.compile(model, inputs)
    compilation = time.process_time() - start
    wanted, got = model(*inputs), executable(*inputs)
    error = ((got.double() - wanted.double()).abs().max() / wanted.double().abs().max()).item()
    slices = [(seconds(lambda: model(*inputs)), seconds(lambda: executable(*inputs))) for _ in range(SLICES)]
    eager, ours = (statistics.median(times) for times in zip(*slices, strict=True))
    ratio = statistics.median(first / second for first, second in slices)
    rate = f"{workload.flops / ours / 1e9:.0f} GF/s" if workload.flops else f"{workload.bytes / ours / 1e9:.1f} GB/s"
    return [name, f"{eager * 1e3:.3f}", f"{ours * 1e3:.3f}", f"{ratio:.2f}", rate, f"{error:.0e}", f"{compilation:.1f}"]


def main() -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    console = Console(width=120)
    table = Table("workload", "eager ms", "pipeline ms", "ratio", "pipeline's rate", "error", "compile s")
    chosen = sys.argv[1:] or list(WORKLOADS)
    unknown = [name for name in chosen if name not in WORKLOADS]
    if unknown:
        sys.exit(f"unknown workload {unknown[0]!r}; there are: {', '.join(WORKLOADS)}")
    for name in chosen:
        with torch.no_grad(), console.status(name):
            table.add_row(*row(name, WORKLOADS[name]))
    console.print(table)


if __name__ == "__main__":
    main()
