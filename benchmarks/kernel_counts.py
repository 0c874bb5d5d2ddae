"""Counts the kernels that one call of a model runs, here and as Inductor compiles it for the CPU.

Usage: python benchmarks/kernel_counts.py [--names] [--write] [MODEL ...]

The models are small configurations with random weights (tests/models/zoo.py); their layers are those of the real ones.
Here a kernel is a call of a kernel's function in @main. Of Inductor, a kernel is a call of a generated C++ function or
of a library (a matrix product, a convolution, an attention) in the Python code that it generates. Inductor puts loops
that do not depend on each other into one C++ function, so its loop nests are counted as well. `--names` lists the
kernels of both, `--write` puts the table into docs/fusion.md. Inductor needs a C++ compiler.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch._inductor import metrics
from torch._inductor.utils import run_and_get_code

import pipeline

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "models"))  # tests are no package

from zoo import ZOO, Entry

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "fusion.md"
START, END = "<!-- kernel counts: benchmarks/kernel_counts.py --write -->", "<!-- end of kernel counts -->"

MODELS = ("bert", "gpt2", "llama", "vit", "resnet18")
HEADER = ("model", "pipeline", "different", "Inductor", "generated", "libraries", "loop nests")


def our_kernels(entry: Entry) -> Counter[str]:
    """How often one call runs each kernel, by name."""
    model, args, kwargs = entry.create()
    text = pipeline.compile(model, args, kwargs).ir("kernels")
    main = text[text.index("func.func @main") :]
    main = main[: main.find("func.func", 1)]
    return Counter(re.findall(r"call @([\w$.-]+)\(", main))


def inductor_kernels(entry: Entry) -> tuple[Counter[str], int]:
    """How often one call runs each C++ function or library function, by name, and the number of loop nests."""
    model, args, kwargs = entry.create()
    torch._dynamo.reset()
    metrics.reset()
    with torch.no_grad():
        _, codes = run_and_get_code(torch.compile(model), *args, **kwargs)
    return sum(map(_called, codes), Counter()), metrics.generated_kernel_count


def _called(code: str) -> Counter[str]:
    body = code[code.index("def call(") :]
    body = body[: body.find("\ndef ", 1)]
    return Counter(re.findall(r"\b(cpp_fused\w*|extern_kernels\.\w+|torch\.ops\.[\w.]+)\(", body))


def row(name: str) -> tuple[tuple[Any, ...], Counter[str], Counter[str]]:
    """A row of the table, and the kernels of both."""
    ours = our_kernels(ZOO[name])
    theirs, nests = inductor_kernels(ZOO[name])
    generated = sum(count for kernel, count in theirs.items() if kernel.startswith("cpp_fused"))
    libraries = theirs.total() - generated
    cells = (name, ours.total(), len(ours), theirs.total(), generated, libraries, nests)
    return cells, ours, theirs


def markdown(rows: list[tuple[Any, ...]]) -> str:
    """The table as Markdown."""
    lines = [HEADER, ("---", *["---:"] * (len(HEADER) - 1)), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def write(table: str) -> None:
    """Puts the table between its marks in docs/fusion.md."""
    page = PAGE.read_text()
    before, rest = page.split(START)
    PAGE.write_text(f"{before}{START}\n{table}\n{END}{rest.split(END)[1]}")


def main(arguments: list[str]) -> None:
    """Prints the table of the models that the arguments name, or of all."""
    console = Console()
    found = [row(name) for name in [one for one in arguments if not one.startswith("--")] or MODELS]
    table = Table(*HEADER)
    for cells, ours, theirs in found:
        table.add_row(*map(str, cells))
        if "--names" in arguments:
            console.print(cells[0], dict(ours), dict(theirs))
    console.print(table)
    if "--write" in arguments:
        write(markdown([cells for cells, _, _ in found]))


if __name__ == "__main__":
    main(sys.argv[1:])
