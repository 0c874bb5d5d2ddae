"""Compiles a ResNet-18 and compares it with PyTorch: stages, kernels, accuracy and time.

Usage: python examples/resnet18.py [IMAGE_SIZE]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from resnet import ResNet18
from rich.console import Console
from torch import nn

import pipeline


def resnet18() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The network with random weights and norm statistics, and an image to run it on."""
    torch.manual_seed(0)
    model = ResNet18().eval().requires_grad_(False)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    size = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 224
    return model, (torch.randn(1, 3, size, size),)


def milliseconds(run: Callable[[], object], repeats: int = 10) -> float:
    """The median time of a call after a warm-up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    console = Console()
    torch.set_num_threads(1)
    model, inputs = resnet18()
    start = last = time.perf_counter()
    seconds: dict[str, float] = {}

    def observe(stage: str, text: str = "") -> None:
        nonlocal last
        now = time.perf_counter()
        seconds[stage], last = now - last, now

    with console.status("compiling ResNet-18"):
        executable = pipeline.compile(model, inputs, observer=observe)
    observe("machine code")
    stages = ", ".join(f"{stage} {took:.1f}" for stage, took in seconds.items())
    print(f"compiled in {last - start:.1f} s: {stages}\n\n{executable}\n")

    expected, result = model(*inputs), executable(*inputs)
    error = ((result - expected).abs().max() / expected.abs().max()).item()
    eager, compiled = milliseconds(lambda: model(*inputs)), milliseconds(lambda: executable(*inputs))
    print(f"largest error against PyTorch eager, relative to the largest output: {error:.1e}")
    print(f"one thread: PyTorch eager {eager:.1f} ms, pipeline {compiled:.1f} ms")
    if error > 1e-4:
        sys.exit("the results differ")


if __name__ == "__main__":
    main()
