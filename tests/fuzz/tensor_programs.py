"""Random programs on tensors: drawn from a seed, as data, and as models.

A program is drawn step by step while it runs in eager PyTorch, so that every step is one that PyTorch accepts. Values
are small multiples of a quarter; a value that rounding has touched is not compared, sorted, rounded or cast, because
there a last bit would decide over the result.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from drawing import Draw
from numerics import ALL, FLOATS, name
from tensor_ops import OPS, Op

STEPS = 10


@dataclass(frozen=True)
class Input:
    """An argument: its dtype, its sizes, and how it lies in memory."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    layout: str
    seed: int

    def tensor(self) -> torch.Tensor:
        """The argument itself."""
        generator = torch.Generator().manual_seed(self.seed)
        shape = self.shape[::-1] if self.layout == "transposed" else self.shape
        if self.layout == "strided":
            shape = tuple(2 * size for size in shape)
        low = 0 if self.dtype in (torch.bool, torch.uint8) else -12
        numbers = torch.randint(low, 13, shape, generator=generator)
        value = (numbers / 4).to(self.dtype) if self.dtype in FLOATS else (numbers % 2 if low == 0 else numbers)
        value = value.to(self.dtype)
        if self.layout == "transposed":
            return value.permute(tuple(reversed(range(len(shape)))))
        return value[tuple(slice(None, None, 2) for _ in shape)] if self.layout == "strided" else value


@dataclass(frozen=True)
class Step:
    """`op` on earlier values, by number, with options."""

    op: str
    operands: tuple[int, ...]
    options: tuple[Any, ...] = ()

    def run(self, values: list[torch.Tensor]) -> list[torch.Tensor]:
        """The new values; what is in place changes the old ones."""
        result = OPS[self.op].run(*(values[number] for number in self.operands), *self.options)
        return [] if result is None else list(result) if isinstance(result, (tuple, list)) else [result]


@dataclass(frozen=True)
class Program:
    """Arguments, steps, and the numbers of the values that are returned."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def arguments(self) -> tuple[torch.Tensor, ...]:
        """Fresh arguments."""
        return tuple(one.tensor() for one in self.inputs)

    def model(self) -> torch.nn.Module:
        """The program as a model."""
        return ProgramModel(self)

    def __str__(self) -> str:
        lines = [f"v{n} = {name(i.dtype)}{list(i.shape)} {i.layout}" for n, i in enumerate(self.inputs)]
        for step in self.steps:
            operands = [f"v{number}" for number in step.operands]
            lines.append(f"{step.op}({', '.join([*operands, *map(str, step.options)])})")
        return "; ".join([*lines, f"return {', '.join(f'v{number}' for number in self.results)}"])


class ProgramModel(torch.nn.Module):
    """A program as a model."""

    def __init__(self, program: Program):
        super().__init__()
        self.program = program

    def forward(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = list(arguments)
        for step in self.program.steps:
            values += step.run(values)
        return tuple(values[number] for number in self.program.results)


class Run:
    """A program as it runs in eager PyTorch, step by step, with which values rounding has not touched."""

    def __init__(self, values: Sequence[torch.Tensor], most_elements: int):
        self.values = list(values)
        self._exact = [True] * len(values)
        self._most_elements = most_elements

    def makes_sense(self, op: Op, operands: tuple[int, ...]) -> bool:
        """Whether the op is defined on these values, and no last bit decides over its results."""
        if op.needs_exact and not self._known(operands):
            return False
        return op.when(*(self.values[number] for number in operands))

    def take(self, step: Step) -> bool:
        """Runs a step; False, and nothing has happened, if PyTorch refuses it or values become too large."""
        op, trial = OPS[step.op], copy.deepcopy(self.values)  # keeps aliases
        try:
            new = step.run(trial)
        except (RuntimeError, IndexError, TypeError, ValueError):
            return False
        if not all(map(self._is_small, trial + new)):
            return False
        if not new and _depends_on_order(*(self.values[number] for number in step.operands)):
            return False
        known = self._known(step.operands)
        self.values = trial + new
        half = any(value.dtype in (torch.float16, torch.bfloat16) for value in new)
        kept = op.exact == "made" or (known and op.exact == "kept" and not half)
        self._exact += [kept or not value.dtype.is_floating_point for value in new]
        if not new and not known:
            floats = [value.dtype.is_floating_point for value in self.values]
            self._exact = [was and not is_float for was, is_float in zip(self._exact, floats, strict=True)]
        return True

    def _known(self, operands: tuple[int, ...]) -> bool:
        return all(self._exact[number] for number in operands)

    def _is_small(self, value: torch.Tensor) -> bool:
        """Few elements, and numbers small enough that float32 holds them exactly."""
        if value.numel() > self._most_elements:
            return False
        return not value.dtype.is_floating_point or value.numel() == 0 or bool((value.abs() < 1000).all())


@dataclass(frozen=True)
class Profile:
    """What programs are drawn from: sizes of arguments, and the most elements of a value."""

    sizes: tuple[int, ...]
    most_elements: int


SMALL = Profile((0, 1, 1, 2, 3, 4, 5), 2_000)

#: Where kernels have full tiles, edges and chunks for threads.
LARGE = Profile((1, 3, 17, 33, 64, 100), 200_000)

#: Sizes that stand for one symbol each, and the 1 of broadcasts.
SYMBOLIC = Profile((1, 2, 3, 4, 5), 2_000)


def draw_program(draw: Draw, profile: Profile = SMALL) -> Program:
    """A program of one to three arguments and up to `STEPS` steps."""
    inputs = tuple(_input(draw, profile) for _ in range(draw.integer(1, 3)))
    run = Run([one.tensor() for one in inputs], profile.most_elements)
    steps: list[Step] = []
    for _ in range(draw.integer(3, STEPS)):
        key = draw.choice(sorted(OPS))
        operands = tuple(draw.integer(0, len(run.values) - 1) for _ in range(OPS[key].operands))
        if not run.makes_sense(OPS[key], operands):
            continue
        step = Step(key, operands, OPS[key].options(draw, *(run.values[number] for number in operands)))
        if run.take(step):
            steps.append(step)
    last = len(run.values) - 1
    return Program(inputs, tuple(steps), (last, *draw.several(lambda: draw.integer(0, last), 2)))


def _input(draw: Draw, profile: Profile) -> Input:
    shape = tuple(draw.several(lambda: draw.choice(profile.sizes), 3))
    layout = draw.choice(["contiguous", "contiguous", "transposed", "strided"])
    return Input(draw.choice(ALL), shape, layout, draw.integer(0, 99))


def _depends_on_order(written: torch.Tensor, *read: torch.Tensor) -> bool:
    """Whether an op in place reads elements that it writes at another place; eager sees that of dense tensors alone."""
    return any(
        _places(written) & _places(other) and _view_of_memory(written) != _view_of_memory(other) for other in read
    )


def _places(x: torch.Tensor) -> set[tuple[int, int]]:
    """Where in which memory the elements lie."""
    memory = x.untyped_storage()
    numbers = torch.arange(memory.nbytes() // x.element_size()) * x.element_size()
    return {(memory._cdata, place) for place in numbers.as_strided(*_view_of_memory(x)).flatten().tolist()}


def _view_of_memory(x: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    return tuple(x.shape), x.stride(), int(x.storage_offset())


def is_valid(program: Program, most_elements: int) -> bool:
    """Whether every step makes sense, and PyTorch accepts it: a shortened or resized program may have others."""
    run = Run(program.arguments(), most_elements)
    try:
        senses = (run.makes_sense(OPS[step.op], step.operands) and run.take(step) for step in program.steps)
        return all(senses) and max(program.results) < len(run.values)
    except (RuntimeError, IndexError, TypeError, ValueError):
        return False


def aliases(program: Program) -> list[int]:
    """For each value of a program the number of the first one whose memory it lies in."""
    values = list(program.arguments())
    for step in program.steps:
        values += step.run(values)
    memory = [value.untyped_storage()._cdata for value in values]
    return [memory.index(one) for one in memory]
