"""The parts of docs/models.md: what stands above each table, and how a row of it is measured."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for folder in ("", "benchmarks", "examples", "tests", "tests/models", "tests/dynamo"):
    sys.path.insert(0, str(ROOT / folder))

#: So often both are timed, in turns.
ROUNDS = 30

#: The workloads of benchmarks/workloads.py that torch.compile is timed with.
_TIMED = ("W4_ffn", "W5_encoder", "W8a_resnet18", "W8b_mobilenetv2", "W8c_bert", "W8d_gpt2", "W8e_mlp", "W10c_lstm512")


@dataclass(frozen=True)
class Part:
    """A section of the page with a table.

    Attributes:
        title: its heading.
        text: what the columns say.
        columns: their headings; the first is the row's name.
        names: of its rows.
        row: measures one, the cells after its name. Raises AssertionError where a model is wrong.
        patience: how many seconds a row may take.
    """

    title: str
    text: str
    columns: Sequence[str]
    names: Callable[[], Sequence[str]]
    row: Callable[[str], Sequence[str]]
    patience: int = 600

    def header(self) -> str:
        """What stands above the rows."""
        rule = "|".join(["---", *["---:"] * (len(self.columns) - 1)])
        return f"## {self.title}\n\n{self.text}\n\n| {' | '.join(self.columns)} |\n|{rule}|\n"


def _zoo_names() -> Sequence[str]:
    from zoo import ZOO

    return list(ZOO)


def _zoo_row(name: str) -> Sequence[str]:
    """Compiled for its sizes, for any, and in 16 bits."""
    import torch
    from compare import TOLERANCE, relative_error
    from precisions import FORMS, errors
    from symbolic_sizes import symbolic_error
    from zoo import ZOO

    import pipeline

    entry = ZOO[name]
    model, args, kwargs = entry.create()
    reached = {"start": time.process_time()}
    executable = pipeline.compile(
        model,
        args,
        kwargs,
        dynamic_shapes=entry.dynamic_shapes,
        observer=lambda stage, text: reached.setdefault(stage, time.process_time()),
    )
    seconds = time.process_time() - reached["start"]
    error = 0.0
    for positional, keywords in [(args, kwargs), *(make() for make in entry.more_arguments)]:
        with torch.no_grad():
            want = model(*positional, **keywords)
        error = max(error, relative_error(executable(*positional, **keywords), want))
    sizes, symbolic = ("see its name", error) if entry.dynamic_shapes is not None else symbolic_error(entry)
    assert max(error, symbolic) <= TOLERANCE, f"an error of {max(error, symbolic):.1e}"
    calls = sum(kernel.calls for kernel in executable.kernels)
    return (
        f"{sum(parameter.numel() for parameter in model.parameters()):,}",
        str(len(re.findall(r"= linalg\.(?!index\b)", executable.ir("linalg")))),
        f"{len(executable.kernels)} ({calls})",
        f"{seconds:.1f} ({reached['torch'] - reached['start']:.1f})",
        f"{error:.1e}",
        f"{symbolic:.1e} ({sizes})",
        *("{:.1e} ({:.1e})".format(*errors(entry, form)) for form in FORMS.values()),
    )


def _times_row(name: str) -> Sequence[str]:
    """Time of a call of one and the other and of the one inside of a bare backend, each the best of many in turns."""
    import torch
    from torch._dynamo import config
    from workloads import WORKLOADS

    import pipeline

    model, args = WORKLOADS[name].make()
    with torch.no_grad(), config.patch(allow_rnn=True):
        ours = pipeline.compile(model, args)
        bare = torch.compile(model, backend=lambda graph, inputs: lambda *values: (ours(*args),))
        compiled = torch.compile(model, backend="pipeline")
        rounds = [_times((ours, bare, compiled), args) for _ in range(ROUNDS)]
        best = [min(times) for times in zip(*rounds, strict=True)]
    return *(f"{1e3 * time:.3f}" for time in best), f"{best[2] / best[0]:.2f}", f"{best[2] / best[1]:.2f}"


def _times(functions: Sequence[Callable[..., Any]], args: Any) -> Sequence[float]:
    found = []
    for function in functions:
        function(*args)
        start = time.perf_counter()
        function(*args)
        found.append(time.perf_counter() - start)
    return found


def _architecture_names() -> Sequence[str]:
    from architectures import LIBRARIES

    return [f"{library}/{name}" for library, table in LIBRARIES.items() for name in table]


def _architecture_row(name: str) -> Sequence[str]:
    """Called without and with gradients."""
    from architectures import LIBRARIES
    from compare import TOLERANCE
    from through_compile import through_compile

    library, _, model = name.partition("/")
    architecture = LIBRARIES[library][model]
    found = [through_compile(architecture, gradients, {"fallback": "torch"}) for gradients in (False, True)]
    error = max(outcome.error for outcome in found)
    graphs = [outcome.graphs[-1] for outcome in found]
    assert error <= TOLERANCE, f"an error of {error:.1e}"
    assert architecture.graphs is None or set(graphs) == {architecture.graphs}, f"{graphs} compilations"
    sizes = ", ".join(f"{rows} x {size}" for rows, size in architecture.sizes[1:])
    return sizes, *map(str, graphs), f"{error:.1e}"


PARTS = {
    "compiled": Part(
        "pipeline.compile",
        """The configurations, small and with random weights, are those of
[tests/models/zoo.py](../tests/models/zoo.py).

- **linalg ops**: linalg operations as imported.
- **kernels**: different kernels that are compiled, and in brackets how often a call of the model runs one.
- **compile**: CPU seconds from the module to the executable, of which **torch** are capture and decomposition.
- **error**: the largest difference from eager in any output, in parts of that output's largest magnitude; for models
  with dynamic sizes, the worst of several sizes.
- **symbolic**: the same for the model compiled with `Dim.AUTO` for all sizes of its argument, the worst of three sizes;
  in brackets those that stay symbolic. The others are numbers to torch.export, since the model's own code compares them
  with those that it was made for.
- the others: the error against the model in float64 in 16 bits, and in brackets eager's: with `precision="bf16"` (eager
  is in f32), of `model.bfloat16()`, compiled under `torch.autocast("cpu")`, of `model.half()`.""",
        (
            *("model", "parameters", "linalg ops", "kernels", "compile (torch), s", "error", "symbolic"),
            *("precision", "bfloat16", "autocast", "half"),
        ),
        _zoo_names,
        _zoo_row,
        1200,
    ),
    "times": Part(
        "torch.compile's time",
        """Milliseconds of a call under `torch.no_grad()`, one thread, the best of many in turns in one process; the
workloads are those of [benchmarks/workloads.py](../benchmarks/workloads.py).

- **bare backend**: torch.compile with a backend that does nothing but call what `pipeline.compile` gave: what a call of
  torch.compile takes in any case, for it checks its guards, some for each weight of the model.
- **torch.compile**: with `backend="pipeline"`, and `torch._dynamo.config.allow_rnn` set, without which it leaves
  recurrent layers to eager mode.
- **to the executable**, **to the bare backend**: its time divided by theirs.""",
        (
            *("workload", "pipeline.compile", "bare backend", "torch.compile"),
            *("to the executable", "to the bare backend"),
        ),
        lambda: _TIMED,
        _times_row,
    ),
    "architectures": Part(
        "Architectures through torch.compile",
        """Configurations of [tests/dynamo/architectures](../tests/dynamo/architectures), small and with random
weights, called as their documentation does: twice with the first size, then with the others.

- **sizes**: rows, and the length of text or the side of images.
- **compilations**, without and with gradients: one for the first sizes and one for any others, unless the model's own
  code branches on sizes or breaks the graph.
- **error**: the largest difference from eager in any output, in parts of that output's largest magnitude.""",
        ("model", "sizes", "compilations, no_grad", "compilations", "error"),
        _architecture_names,
        _architecture_row,
    ),
}
