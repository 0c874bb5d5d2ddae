"""Temporaries of known size share the memory of one arena: each has a place while it is needed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pipeline.runtime.device.host_plan import PlanStep
from pipeline.runtime.interface.signature import DTYPE_BYTES

#: Where a buffer may start in another one: the most that a Vulkan device may ask for.
ALIGNMENT = 256

_VIEWS = ("subview", "collapse", "expand", "layout")


def place_in_arena(steps: list[PlanStep], results: list[int]) -> tuple[list[PlanStep], int]:
    """Gives the allocations among `steps` places in an arena; returns the steps and the arena's size in bytes.

    Planned are those of known size in the outermost list whose memory nothing hands on: no result, no branch, no loop.
    """
    roots = {step[1]: step[1] for step in steps if step[0] == "alloc" and all(map(_is_known, step[3]))}
    for step in _all_steps(steps):
        if step[0] in _VIEWS and step[2] in roots:
            roots[step[1]] = roots[step[2]]
    kept_out = {roots[register] for register in (*results, *_handed_on(steps)) if register in roots}
    lifetimes: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        for register in _registers(step):
            if register in roots and roots[register] not in kept_out:
                lifetimes.setdefault(roots[register], [number, number])[1] = number
    sizes = {step[1]: _bytes(step) for step in steps if step[0] == "alloc" and step[1] in lifetimes}
    places, total = _places(lifetimes, sizes)
    placed = []
    for step in steps:
        if step[0] == "alloc" and step[1] in places:
            step = ["arena", step[1], step[2], step[3], places[step[1]] // DTYPE_BYTES[step[2]]]
        placed.append(step)
    return placed, total


def _is_known(size: Any) -> bool:
    return isinstance(size, list)


def _bytes(step: PlanStep) -> int:
    size = math.prod(dim[1] for dim in step[3]) * DTYPE_BYTES[step[2]]
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT


#: Where steps have steps inside.
_INNER = {"if": (2, 3), "for": (5,), "while": (1, 6)}


def _all_steps(steps: list[PlanStep]) -> Iterator[PlanStep]:
    for step in steps:
        yield step
        for place in _INNER.get(step[0], ()):
            yield from _all_steps(step[place])


def _handed_on(steps: list[PlanStep]) -> Iterator[int]:
    """Registers whose values branches and loops give to others."""
    for step in _all_steps(steps):
        if step[0] == "if":
            yield from (*step[5], *step[6])
        elif step[0] == "for":
            yield from (*step[7], *step[8])
        elif step[0] == "while":
            yield from (*step[3], *step[5], *step[8])


def _registers(step: PlanStep) -> Iterator[int]:
    """Every register that a step or a step inside of it names; small numbers that are none do no harm but for time."""
    if step[0] in ("launch", "gemm"):
        yield from step[3]
        return
    for part in step[1:]:
        yield from _numbers(part)


def _numbers(part: Any) -> Iterator[int]:
    if isinstance(part, int):
        yield part
    elif isinstance(part, list) and part and part[0] != "#":
        if part[0] in ("launch", "gemm"):
            yield from part[3]
            return
        for inner in part:
            yield from _numbers(inner)


def _places(lifetimes: dict[int, list[int]], sizes: dict[int, int]) -> tuple[dict[int, int], int]:
    """Largest first, each at the lowest offset that is free while it is needed."""
    places: dict[int, int] = {}
    for buffer in sorted(lifetimes, key=lambda register: -sizes[register]):
        first, last = lifetimes[buffer]
        offset = 0
        for other in sorted(places, key=lambda register: places[register]):
            begins, ends = lifetimes[other]
            if begins > last or ends < first:
                continue
            if offset + sizes[buffer] <= places[other]:
                break
            offset = max(offset, places[other] + sizes[other])
        places[buffer] = offset
    return places, max((places[register] + sizes[register] for register in places), default=0)
