"""A module with symbolic sizes, written down in one line, and what it is run on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from function_model import Function
from torch import nn
from torch.export import Dim

import pipeline

#: What the symbols of a case are, in order of their names: at compile time, and in each run.
COMPILED = (3, 5, 7)
RUNS = ((3, 5, 7), (1, 1, 1), (2, 1, 4), (1, 6, 2), (7, 2, 3))


@dataclass(frozen=True)
class Case:
    """One compilation and its runs.

    Attributes:
        name: of the test.
        model: what is compiled.
        inputs: a shape for each argument: `b t 16`, with sizes as `2*h` or `t+1`; behind `int:`, `bool:`, `bytes:` or
            `f64:` where the dtype is not float32. Integers are below 7.
        runs: what the symbols are in each run, in the order of their names.
        compiled: what they are at compile time.
    """

    name: str
    model: nn.Module
    inputs: tuple[str, ...]
    runs: Sequence[tuple[int, ...]] = RUNS
    compiled: tuple[int, ...] = COMPILED

    @property
    def symbols(self) -> list[str]:
        """The names of the symbols, in order."""
        return sorted(set(re.findall(r"[a-z]\w*", " ".join(shape.rpartition(":")[2] for shape in self.inputs))))

    def arguments(self, values: Sequence[int]) -> tuple[torch.Tensor, ...]:
        """Random arguments for some values of the symbols."""
        known = dict(zip(self.symbols, values, strict=False))
        return tuple(_tensor(shape, known) for shape in self.inputs)

    def dynamic_shapes(self, names: bool) -> tuple[Any, ...]:
        """What torch.export is told: names for the symbols, or only which sizes are symbolic."""
        dims = {name: Dim(name, max=64) for name in self.symbols}
        sizes = [shape.rpartition(":")[2].split() for shape in self.inputs]
        shapes = tuple(
            {dim: eval(size, dict(dims)) if names else Dim.AUTO for dim, size in enumerate(shape) if not size.isdigit()}
            for shape in sizes
        )
        return (shapes,) if isinstance(self.model, Function) else shapes

    def compile(self) -> pipeline.Executable:
        """The executable; without names for sizes where torch.export wants a condition on them, as for most pools."""
        arguments = self.arguments(self.compiled)
        try:
            return pipeline.compile(
                self.model, arguments, dynamic_shapes=self.dynamic_shapes(names=True), fallback="error"
            )
        except pipeline.CaptureError:
            return pipeline.compile(
                self.model, arguments, dynamic_shapes=self.dynamic_shapes(names=False), fallback="error"
            )


def _tensor(shape: str, known: dict[str, int]) -> torch.Tensor:
    kind, _, sizes = shape.rpartition(":")
    size = [eval(one, dict(known)) for one in sizes.split()]
    if kind == "int":
        return torch.randint(0, 7, size)
    if kind == "bool":
        return torch.rand(size) > 0.5
    if kind == "bytes":
        return torch.randint(0, 256, size, dtype=torch.uint8)
    return torch.randn(size, dtype=torch.float64 if kind == "f64" else torch.float32)


def cases(table: dict[str, tuple[Any, ...]], **options: Any) -> Iterator[Case]:
    """A case for each entry `name: (module or function, shape, ..)`."""
    for name, (what, *inputs) in table.items():
        model = what if isinstance(what, nn.Module) else Function(what)
        yield Case(name, model.eval(), tuple(inputs), **options)
