"""The schedules of kernels, each with programs of drawn sizes that it is chosen for, and how exact it is.

What tests/kernels/test_schedules.py goes through, for each CPU. The tables are in the modules schedules_of_*.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from torch import nn

from pipeline.targets.cpu.isa import Isa

#: Sizes around those of vectors and tiles, 1 among them; with 0, too.
_EDGES = st.sampled_from((15, 16, 17, 31, 33, 48, 64, 65, 100, 130))
SIZES = st.one_of(st.integers(1, 9), st.integers(1, 40), _EDGES)
WITH_NONE = st.one_of(st.integers(0, 9), st.integers(1, 40), _EDGES)
FLAGS = st.booleans()


@dataclass(frozen=True)
class Program:
    """A model and what it is called with: tensors, with sizes that were drawn."""

    model: nn.Module
    inputs: tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Schedule:
    """A way to compute a kernel.

    Attributes:
        name: for test ids.
        draw: what is drawn for a program, by name.
        typical: what else is taken, by name, where few of the programs that are drawn have the schedule.
        make: the program of what was drawn.
        proof: patterns that are found in what was decided about programs that have the schedule.
        units: how many units in the last place of `magnitude` a floating-point result may err; 0 for eager's own bits.
        linear: whether the magnitude is what the model gives for absolute values, not the result's and 1.
        exists: whether there is the schedule on a CPU.
        options: of the compilation.
        layouts: passes that choose layouts, in the place of the target's.
        count: how many programs are drawn.
    """

    name: str
    draw: Mapping[str, st.SearchStrategy[Any]]
    make: Callable[..., Program]
    proof: tuple[str, ...]
    units: float = 16
    linear: bool = False
    exists: Callable[[Isa], bool] = lambda isa: True
    options: Mapping[str, Any] = field(default_factory=dict)
    layouts: str | None = None
    count: int = 3
    typical: Mapping[str, Any] | None = None

    def programs(self, number: int, count: int) -> list[tuple[Any, Program]]:
        """The typical program, then so many of what was drawn, one of least sizes first; a number says which."""
        drawn: list[dict[str, Any]] = [dict(self.typical)] if self.typical else []

        @seed(number)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.fixed_dictionaries(dict(self.draw)))
        def collect(one: dict[str, Any]) -> None:
            drawn.append(one)

        collect()
        made = []
        for place, one in enumerate(drawn):
            torch.manual_seed(number + place)
            made.append((one, self.make(**one)))
        return made


class Several(nn.Module):
    """Models of several programs as one, which is compiled at once; gives a list of their results."""

    def __init__(self, programs: Sequence[Program]):
        super().__init__()
        self.models = nn.ModuleList(program.model for program in programs)
        self.counts = [len(program.inputs) for program in programs]

    def forward(self, *inputs: torch.Tensor) -> list[Any]:
        results, first = [], 0
        for model, count in zip(self.models, self.counts, strict=True):
            result = model(*inputs[first : first + count])
            results.append(list(result) if isinstance(result, (list, tuple)) else [result])
            first += count
        return results


def exact(model: nn.Module, inputs: Sequence[torch.Tensor]) -> Any:
    """What a model gives in float64."""
    with torch.no_grad():
        return copy.deepcopy(model).double()(*map(wide, inputs))


def magnitude(model: nn.Module, inputs: Sequence[torch.Tensor]) -> Any:
    """What a model gives in float64 for absolute values of weights and inputs: the sum of what a linear one adds up."""
    absolute = copy.deepcopy(model).double()
    with torch.no_grad():
        for weight in absolute.parameters():
            weight.abs_()
        return absolute(*(wide(x).abs() if x.is_floating_point() else x for x in inputs))


def wide(x: torch.Tensor) -> torch.Tensor:
    """A tensor in float64, if it has floating-point elements."""
    return x.double() if x.is_floating_point() else x


def values(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random elements of any dtype; integers are small, so that what is added up fits."""
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(0 if dtype == torch.uint8 else -9, 10, shape, dtype=dtype)


def strided(x: torch.Tensor) -> torch.Tensor:
    """The same elements, every second one of a larger tensor: not contiguous where there are several."""
    larger = torch.zeros((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype)
    part = larger[..., ::2]
    part.copy_(x)
    return part
