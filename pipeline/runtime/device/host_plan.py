"""The host's side of an executable for a device: a plan of allocations, launches and control flow, as data.

A plan is a list of steps over numbered registers that hold numbers and `View`s of device memory. A step is a list
whose first element is its kind, so that plans are JSON:

    ["compute", to, name, [arguments], type, first argument's type, predicate]
    ["alloc", to, dtype, [sizes]]                      new memory for a row-major tensor
    ["arena", to, dtype, [sizes], offset]              the same, at a place in the call's arena
    ["constant", to, number of the constant]
    ["subview", to, view, [offsets], [strides], [sizes], [kept dims]]
    ["collapse", to, view, [[dims]]]                   each group of neighbouring dims as one
    ["expand", to, view, [[dims]], [sizes]]            each dim as a group
    ["layout", to, view, offset, [sizes], [strides]]   any view of the same memory
    ["dim", to, view, number]
    ["load", to, view, [indices]]                      reads a number back from the device
    ["launch", kernel, threads, [arguments]]
    ["gemm", kernel, threads, [arguments], product]    a library's product of matrices; where it is missing, a launch
    ["if", condition, [steps], [steps], [to], [from in then], [from in else]]
    ["for", first, last, step, index, [steps], [carried], [initial], [next], [to]]
    ["while", [before], [carried], [initial], condition, [passed on], [after], [arguments of after], [next], [to]]

Sizes, offsets and the like are registers, or `["#", number]` where they are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pipeline.runtime.device.gemm_descriptor import Gemm
from pipeline.runtime.device.host_arithmetic import compute

PlanStep = list[Any]


@dataclass(frozen=True)
class View:
    """Elements in device memory.

    Attributes:
        buffer: what the device knows the memory by.
        dtype: how elements are stored.
        base, length: the tensor that was allocated: its first element in the buffer, and how many it has.
        offset: the view's first element, from there.
        sizes, strides: of the view, in elements.
    """

    buffer: Any
    dtype: str
    base: int
    length: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many there are."""
        return math.prod(self.sizes)


def row_major(buffer: Any, dtype: str, sizes: Sequence[int], base: int = 0) -> View:
    """A view of a whole tensor."""
    return View(buffer, dtype, base, math.prod(sizes), 0, tuple(sizes), _strides(sizes))


def _strides(sizes: Sequence[int]) -> tuple[int, ...]:
    strides: list[int] = []
    stride = 1
    for size in reversed(sizes):
        strides.insert(0, stride)
        stride *= size
    return tuple(strides)


@dataclass(frozen=True)
class HostPlan:
    """What the host does for one entry.

    Attributes:
        registers: how many there are.
        initial: (register, number) of each constant.
        parameters: the register of each parameter: the entry's own, then the places for results of known size.
        dtypes: how the elements of each parameter are stored; None for a number.
        shapes: the sizes of each parameter, -1 where one is not known in advance.
        steps: see the module's docstring.
        results: the registers of what the plan allocated and hands out.
        arena: how many bytes the temporaries of known size take.
    """

    registers: int
    initial: tuple[tuple[int, Any], ...]
    parameters: tuple[int, ...]
    dtypes: tuple[str | None, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    steps: tuple[PlanStep, ...]
    results: tuple[int, ...]
    arena: int = 0

    @property
    def only_launches(self) -> bool:
        """Whether it is always the same launches, and all memory that they need is that of the arena."""
        return not self.results and all(step[0] in _OF_LAUNCHES for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> HostPlan:
        """The inverse of `to_json`."""
        return HostPlan(
            registers=data["registers"],
            initial=tuple((register, value) for register, value in data["initial"]),
            parameters=tuple(data["parameters"]),
            dtypes=tuple(data["dtypes"]),
            shapes=tuple(None if shape is None else tuple(shape) for shape in data["shapes"]),
            steps=tuple(data["steps"]),
            results=tuple(data["results"]),
            arena=data["arena"],
        )


#: Steps that neither read from the device nor allocate.
_OF_LAUNCHES = ("compute", "arena", "constant", "subview", "collapse", "expand", "layout", "dim", "launch", "gemm")


class PlanRun:
    """One run of a plan on a device; see `pipeline.runtime.device.device.Device` for what that can do."""

    def __init__(self, plan: HostPlan, device: Any, constants: Sequence[View]):
        self._plan = plan
        self._device = device
        self._constants = constants
        self._values: list[Any] = [None] * plan.registers
        self.arena = device.arena(plan.arena) if plan.arena else None

    def __call__(self, parameters: Sequence[Any]) -> list[Any]:
        """Runs the plan; returns the values of its results."""
        values = self._values
        for register, value in self._plan.initial:
            values[register] = value
        for register, value in zip(self._plan.parameters, parameters, strict=True):
            values[register] = value
        self._steps(self._plan.steps)
        return [values[register] for register in self._plan.results]

    def _steps(self, steps: Sequence[PlanStep]) -> None:
        for step in steps:
            _KINDS[step[0]](self, *step[1:])

    def _known(self, value: Any) -> int:
        return value[1] if isinstance(value, (list, tuple)) else self._values[value]

    def _all(self, values: Sequence[Any]) -> list[int]:
        return [self._known(value) for value in values]

    def _set(self, registers: Sequence[int], sources: Sequence[int]) -> None:
        moved = [self._values[source] for source in sources]
        for register, value in zip(registers, moved, strict=True):
            self._values[register] = value

    def _compute(self, to: int, name: str, arguments: list[int], kind: str, source: str, predicate: int) -> None:
        self._values[to] = compute(name, [self._values[a] for a in arguments], kind, source, predicate)

    def _alloc(self, to: int, dtype: str, sizes: list[Any]) -> None:
        known = self._all(sizes)
        self._values[to] = row_major(self._device.allocate(dtype, math.prod(known)), dtype, known)

    def _in_arena(self, to: int, dtype: str, sizes: list[Any], offset: int) -> None:
        self._values[to] = row_major(self.arena, dtype, self._all(sizes), offset)

    def _constant(self, to: int, number: int) -> None:
        self._values[to] = self._constants[number]

    def _subview(
        self, to: int, view: int, offsets: list[Any], strides: list[Any], sizes: list[Any], kept: list
    ) -> None:
        source: View = self._values[view]
        offset = source.offset + sum(
            place * stride for place, stride in zip(self._all(offsets), source.strides, strict=True)
        )
        steps = [step * stride for step, stride in zip(self._all(strides), source.strides, strict=True)]
        known = self._all(sizes)
        shape = tuple(known[dim] for dim in kept), tuple(steps[dim] for dim in kept)
        self._values[to] = replace(source, offset=offset, sizes=shape[0], strides=shape[1])

    def _collapse(self, to: int, view: int, groups: list[list[int]]) -> None:
        source: View = self._values[view]
        sizes = tuple(math.prod(source.sizes[dim] for dim in group) for group in groups)
        steps = []
        for group in groups:
            walked = [dim for dim in group if source.sizes[dim] != 1] or group
            steps.append(source.strides[walked[-1]])
        self._values[to] = replace(source, sizes=sizes, strides=tuple(steps))

    def _expand(self, to: int, view: int, groups: list[list[int]], sizes: list[Any]) -> None:
        source: View = self._values[view]
        known = self._all(sizes)
        steps = [1] * len(known)
        for group, stride in zip(groups, source.strides, strict=True):
            for dim in reversed(group):
                steps[dim] = stride
                stride *= known[dim]
        self._values[to] = replace(source, sizes=tuple(known), strides=tuple(steps))

    def _layout(self, to: int, view: int, offset: Any, sizes: list[Any], strides: list[Any]) -> None:
        source: View = self._values[view]
        known = tuple(self._all(sizes)), tuple(self._all(strides))
        self._values[to] = replace(source, offset=self._known(offset), sizes=known[0], strides=known[1])

    def _dim(self, to: int, view: int, number: Any) -> None:
        self._values[to] = self._values[view].sizes[self._known(number)]

    def _load(self, to: int, view: int, indices: list[Any]) -> None:
        source: View = self._values[view]
        places = zip(self._all(indices), source.strides, strict=True)
        place = source.base + source.offset + sum(index * stride for index, stride in places)
        self._values[to] = self._device.read_number(source.buffer, source.dtype, place)

    def _launch(self, kernel: int, threads: Any, arguments: list[int]) -> None:
        count = self._known(threads)
        if count:
            self._device.launch(kernel, count, [self._values[argument] for argument in arguments])

    def _gemm(self, kernel: int, threads: Any, arguments: list[int], product: dict[str, Any]) -> None:
        values = [self._values[argument] for argument in arguments]
        multiply = getattr(self._device, "multiply", None)
        if multiply is None or not multiply(Gemm.from_json(product), values):
            self._device.launch(kernel, self._known(threads), values)

    def _if(self, condition: int, then: list, other: list, to: list, from_then: list, from_other: list) -> None:
        taken = bool(self._values[condition])
        self._steps(then if taken else other)
        self._set(to, from_then if taken else from_other)

    def _for(
        self,
        first: int,
        last: int,
        step: int,
        index: int,
        steps: list,
        carried: list,
        initial: list,
        following: list,
        to: list,
    ) -> None:
        self._set(carried, initial)
        for number in range(self._values[first], self._values[last], self._values[step]):
            self._values[index] = number
            self._steps(steps)
            self._set(carried, following)
        self._set(to, carried)

    def _while(
        self,
        steps: list,
        carried: list,
        initial: list,
        condition: int,
        passed: list,
        body: list,
        arguments: list,
        following: list,
        to: list,
    ) -> None:
        self._set(carried, initial)
        self._steps(steps)
        while self._values[condition]:
            self._set(arguments, passed)
            self._steps(body)
            self._set(carried, following)
            self._steps(steps)
        self._set(to, passed)


#: What does a step, by its kind. Not in the run itself: a cycle of references would keep its memory alive.
_KINDS: dict[str, Callable[..., None]] = {
    "compute": PlanRun._compute,
    "alloc": PlanRun._alloc,
    "arena": PlanRun._in_arena,
    "constant": PlanRun._constant,
    "subview": PlanRun._subview,
    "collapse": PlanRun._collapse,
    "expand": PlanRun._expand,
    "layout": PlanRun._layout,
    "dim": PlanRun._dim,
    "load": PlanRun._load,
    "launch": PlanRun._launch,
    "gemm": PlanRun._gemm,
    "if": PlanRun._if,
    "for": PlanRun._for,
    "while": PlanRun._while,
}
