"""Random programs with branches, loops and writes in place, as the source of a forward method.

The source is TorchScript and plain Python at once, so that eager runs the same lines. All values are small multiples of
a quarter, and all arithmetic on them is exact: a condition never depends on rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from drawing import Draw
from torch import nn


@dataclass(frozen=True)
class Size:
    """How deep branches and loops are nested, how many there are in a program, and how many statements a block has.

    Torch takes three times as long for one depth more.
    """

    depths: tuple[int, ...]
    regions: int
    statements: int


LARGE, SMALL = Size((1, 1, 1, 2), 2, 2), Size((1,), 1, 1)

_NAMES = ("a", "b", "c")


@dataclass(frozen=True)
class ScriptProgram:
    """The source of `forward(self, x, y, n)`, and the sizes of x, y and the buffer that it writes to."""

    source: str
    shape: tuple[int, ...]
    seed: int

    def arguments(self) -> tuple[torch.Tensor, ...]:
        """x, y and n, another n and other signs every time that the seed is another."""
        generator = torch.Generator().manual_seed(self.seed)
        x, y = (torch.randint(-8, 9, self.shape, generator=generator) / 4 for _ in range(2))
        return x, y, torch.randint(0, 4, (), generator=generator)

    def python(self) -> nn.Module:
        """The program as a module that Python runs."""
        space: dict[str, Any] = {"torch": torch, "Tensor": torch.Tensor}
        exec(self.source, space)
        return _Buffers(self.shape, space["forward"])

    def method(self, number: int) -> str:
        """The program as a method `program0`, ... of a module that has several, and for each a buffer `total0`, ..."""
        method = self.source.replace("forward", f"program{number}", 1)
        return method.replace("self.total", f"self.total{number}")


def script(programs: Sequence[ScriptProgram]) -> torch.jit.ScriptModule:
    """TorchScript that takes the arguments of all programs, one after the other, and returns a tuple for each."""
    kind = type("ScriptPrograms", (_Totals,), {})  # a class of its own: TorchScript defines a class's methods once
    module = torch.jit.script(kind(programs))
    numbers = range(len(programs))
    for number in numbers:
        module.define(programs[number].method(number))
    names = ", ".join(f"x{number}, y{number}, n{number}" for number in numbers)
    calls = ", ".join(f"self.program{number}(x{number}, y{number}, n{number})" for number in numbers)
    module.define(f"def forward(self, {names}):\n    return ({calls},)\n")
    return module


class _Buffers(nn.Module):
    def __init__(self, shape: tuple[int, ...], function: Callable[..., Any]):
        super().__init__()
        self.register_buffer("total", torch.zeros(shape))
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(self, *args)


class _Totals(nn.Module):
    def __init__(self, programs: Sequence[ScriptProgram]):
        super().__init__()
        for number, program in enumerate(programs):
            self.register_buffer(f"total{number}", torch.zeros(program.shape))


def script_program(draw: Draw, size: Size) -> ScriptProgram:
    """A program on tensors of one shape, of one or two dims."""
    shape = draw.choice([(3,), (2, 3), (4, 1), (1,)])
    source = "\n    ".join(_Writer(draw, size).lines())
    return ScriptProgram(f"def forward(self, x, y, n):\n    {source}\n", shape, draw.integer(0, 99))


class _Writer:
    """Writes the lines of a program."""

    def __init__(self, draw: Draw, size: Size):
        self._draw = draw
        self._size = size
        self._counters = 0
        self._regions = 0
        self._depth = self._choice(size.depths)

    def lines(self) -> list[str]:
        first = self._choice(["a = x * 1", "a = x * 1", "a = x * 1", "a = x"])
        body = [first, "b = y + 1", "c = x - y", *self._region(0, False), *self._block(0, False)]
        return [*body, "return a, b, c + self.total"]

    def _block(self, depth: int, in_loop: bool) -> list[str]:
        count = self._draw.integer(1, self._size.statements)
        return [line for _ in range(count) for line in self._statement(depth, in_loop)]

    def _region(self, depth: int, in_loop: bool) -> list[str]:
        self._regions += 1
        return self._choice([self._branch, self._loop, self._while])(depth, in_loop)

    def _statement(self, depth: int, in_loop: bool) -> list[str]:
        kinds: list[Callable[[int, bool], list[str]]] = [self._assignment, self._write] * 2
        if in_loop and depth < self._depth + 1:
            kinds += [self._break]
        if depth < self._depth and self._regions < self._size.regions:
            kinds += [self._region] * 6
        return self._choice(kinds)(depth, in_loop)

    def _assignment(self, depth: int, in_loop: bool) -> list[str]:
        a, b, name = self._name(), self._name(), self._name()
        forms = [
            f"{a} + {b}",
            f"{a} - {b}",
            f"{a} * 2",
            f"{a} + 1.25",
            f"torch.floor({a} * {b} * 0.25)",
            f"torch.where({a} > {b}, {a}, {b} * 0.5).floor()",
            f"{a}.abs() - {b}.sum()",
            f"{a}.flip(0)",
            f"torch.maximum({a}, {b} + 0.5)",
        ]
        if self._draw.integer(0, 15) == 15:
            return [f"{name} = {a}"]
        return [f"{name} = ({self._choice(forms)}).clamp(-8, 8)"]

    def _write(self, depth: int, in_loop: bool) -> list[str]:
        a, b = self._choice([*_NAMES, "self.total"]), self._name()
        forms = [
            f"{a}.add_({b}).clamp_(-8, 8)",
            f"{a}.copy_({b})",
            f"{a}[0] = {b}[0] * 0.5",
            f"{a}[-1:].neg_()",
            f"{a}.view(-1)[0] += 1",
            f"{a}.mul_(0.5).floor_()",
            f"{a}.clamp_(-2, 2)",
            f"{a}.fill_(0.75)",
        ]
        return [self._choice(forms)]

    def _branch(self, depth: int, in_loop: bool) -> list[str]:
        lines = [f"if {self._condition()}:", *_indented(self._block(depth + 1, in_loop))]
        if self._draw.boolean():
            lines += ["else:", *_indented(self._block(depth + 1, in_loop))]
        return lines

    def _loop(self, depth: int, in_loop: bool) -> list[str]:
        self._counters += 1
        index = f"i{self._counters}"
        count = self._choice(["int(n)", "int(n)", "2", "20", f"int({self._name()}.max()) % 4"])
        block = [*self._block(depth + 1, True), f"{self._name()}.add_({index} % 3)", *self._bounds()]
        return [f"for {index} in range({count}):", *_indented(block)]

    def _while(self, depth: int, in_loop: bool) -> list[str]:
        self._counters += 1
        counter = f"k{self._counters}"
        start, more = self._choice([("0", "+= 1"), ("torch.zeros(())", "= {0} + 1")])
        lines = [f"{counter} = {start}", f"while {self._condition()} and bool({counter} < 3):"]
        block = [*self._block(depth + 1, True), f"{counter} {more.format(counter)}", *self._bounds()]
        return [*lines, *_indented(block)]

    def _break(self, depth: int, in_loop: bool) -> list[str]:
        return [f"if {self._condition()}:", "    break"]

    def _bounds(self) -> list[str]:
        """Keeps numbers small where the rounds of several loops add up."""
        return [f"{name} = {name}.clamp(-8, 8)" for name in _NAMES] if self._size.regions > 1 else []

    def _condition(self) -> str:
        number = self._choice(["-2", "0", "1", "3"])
        return self._choice(
            [
                f"bool({self._name()}.sum() > {number})",
                f"bool(({self._name()} < {number}).any())",
                f"bool({self._name()}.max() > {self._name()}.min() + {number})",
                f"int(n) > {number}",
            ]
        )

    def _name(self) -> str:
        return self._choice(_NAMES)

    def _choice(self, options: Any) -> Any:
        return self._draw.choice(options)


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
