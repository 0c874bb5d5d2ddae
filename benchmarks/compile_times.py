"""Times compilations, cold and warm: with an empty disk cache, and in a new process that finds the first one's outcome.

Usage: python benchmarks/compile_times.py [--workloads FILE] [WORKLOAD ...]

FILE is a Python file with a dict WORKLOADS of objects whose `make()` gives a module and its arguments; by default the
workloads of against_eager.py and two transformers. Each row: seconds of torch.export, CPU and wall seconds of a
compilation after it, cold and warm, and the bytes of machine code.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

FOLDER = Path(__file__).parent
COLUMNS = ("workload", "export s", "cold CPU s", "cold s", "warm CPU s", "warm s", "code KB")


@dataclass(frozen=True)
class Transformer:
    """A model of transformers with random weights, on some tokens."""

    name: str
    tokens: int

    def make(self) -> tuple[Any, tuple[Any, ...]]:
        import torch
        import transformers

        config = getattr(transformers, f"{self.name}Config")(use_cache=False)
        return getattr(transformers, f"{self.name}Model")(config), (torch.randint(0, 1000, (1, self.tokens)),)


def workloads(file: str | None) -> dict[str, Any]:
    if file is None:
        sys.path.insert(0, str(FOLDER))
        from against_eager import WORKLOADS

        return {**WORKLOADS, "BERT-base": Transformer("Bert", 128), "GPT-2": Transformer("GPT2", 64)}
    spec = importlib.util.spec_from_file_location("workloads", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["workloads"] = module
    spec.loader.exec_module(module)
    return module.WORKLOADS


def measure(name: str, file: str | None) -> dict[str, float]:
    """One compilation in this process."""
    import torch

    import pipeline
    from pipeline import timing

    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    model, args = workloads(file)[name].make()
    model = model.eval().requires_grad_(False)
    start = time.perf_counter()
    exported = torch.export.export(model, args)
    export = time.perf_counter() - start
    with timing.collect() as times:
        executable = pipeline.compile(exported, args)
    return {"export": export, "cpu": times.cpu, "wall": times.wall, "code": sum(map(len, executable.objects)) / 1e3}


def row(name: str, file: str | None) -> list[str]:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PIPELINE_CACHE_DIR": cache}
        command = [sys.executable, __file__, "--one", name, *(["--workloads", file] if file else [])]
        cold, warm = (
            json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout) for _ in "12"
        )
    figures = (cold["export"], cold["cpu"], cold["wall"], warm["cpu"], warm["wall"])
    return [name, *(f"{figure:.2f}" for figure in figures), f"{cold['code']:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workloads", metavar="FILE")
    parser.add_argument("--one", metavar="WORKLOAD", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="WORKLOAD")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.workloads)))
        return
    console = Console(width=120)
    table = Table(*COLUMNS)
    for name in arguments.names or workloads(arguments.workloads):
        with console.status(name):
            table.add_row(*row(name, arguments.workloads))
    console.print(table)


if __name__ == "__main__":
    main()
