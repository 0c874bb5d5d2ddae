"""Measures the memory of calls: what PyTorch eager and pipeline take at most, beyond what the model itself takes.

Usage: python benchmarks/memory.py [MODEL ...]

Each row, in MB: the weights; by how much the resident memory of the process grows at most during a call, for eager and
for pipeline (its first call, in which the workspace is made); and what `exe.memory` says of that.
"""

from __future__ import annotations

import ctypes
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import pipeline

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "examples")]
from against_eager import WORKLOADS  # noqa: E402 - beside this file
from compile_times import Transformer  # noqa: E402

MODELS = {
    "ResNet-18": WORKLOADS["resnet18 224x224"],
    "BERT-base": Transformer("Bert", 128),
    "GPT-2": Transformer("GPT2", 64),
}


def peak_growth(call: Callable[[], object]) -> float:
    """By how many MB the resident memory grows at most during a call."""
    ctypes.CDLL(None).malloc_trim(0)  # what earlier calls have freed
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    kept = call()
    after = _status("VmHWM")
    del kept
    return (after - before) / 1e3


def _status(name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return float(found[1])


def row(name: str) -> list[str]:
    torch.manual_seed(0)
    model, args = MODELS[name].make()
    model = model.eval().requires_grad_(False)
    model(*args)  # what torch sets up once
    eager = peak_growth(lambda: model(*args))
    executable = pipeline.compile(model, args)
    memory = executable.memory
    ours = peak_growth(lambda: executable(*args))
    figures = (memory.weights / 1e6, memory.prepared / 1e6, eager, ours, memory.workspace / 1e6, memory.results / 1e6)
    return [name, *(f"{figure:.1f}" for figure in figures)]


def main() -> None:
    warnings.filterwarnings("ignore")
    table = Table("model", "weights", "prepared", "eager's call", "pipeline's call", "workspace", "results")
    for name in sys.argv[1:] or MODELS:
        with torch.no_grad():
            table.add_row(*row(name))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
