"""Sequences, which are Python's lists here, and optional values, which are None or what they have."""

from __future__ import annotations

from typing import Any

import torch

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.known import Known
from pipeline.frontend.onnx.ops.table import op


@op("SequenceConstruct")
def construct(call: NodeCall, *tensors: torch.Tensor) -> list[torch.Tensor]:
    """A list of tensors."""
    return list(tensors)


@op("SequenceEmpty")
def empty(call: NodeCall) -> list[torch.Tensor]:
    """A list of none."""
    return []


@op("SequenceAt", as_given=(1,))
def at(call: NodeCall, sequence: list[Any], place: Any) -> Any:
    """One of a list."""
    return sequence[call.number(place)]


@op("SequenceLength")
def length(call: NodeCall, sequence: list[Any]) -> Known:
    """How many there are."""
    return Known.of(len(sequence))


@op("SequenceInsert", as_given=(2,))
def insert(call: NodeCall, sequence: list[Any], tensor: Any, place: Any = None) -> list[Any]:
    """A list with one more."""
    at_place = len(sequence) if place is None else call.number(place)
    at_place = at_place + len(sequence) if at_place < 0 else at_place
    return [*sequence[:at_place], tensor, *sequence[at_place:]]


@op("SequenceErase", as_given=(1,))
def erase(call: NodeCall, sequence: list[Any], place: Any = None) -> list[Any]:
    """A list with one less."""
    at_place = (-1 if place is None else call.number(place)) % len(sequence)
    return [*sequence[:at_place], *sequence[at_place + 1 :]]


@op("ConcatFromSequence")
def concat(call: NodeCall, sequence: list[torch.Tensor]) -> torch.Tensor:
    """The tensors of a list as one."""
    return (torch.stack if call.get("new_axis") else torch.cat)(sequence, call.get("axis"))


@op("SplitToSequence", as_given=(1,))
def split(call: NodeCall, x: torch.Tensor, sizes: Any = None) -> list[torch.Tensor]:
    """A tensor as a list of its parts."""
    axis = call.get("axis", 0)
    if sizes is None:
        parts = list(x.split(1, axis))
        return parts if call.get("keepdims", 1) else [part.squeeze(axis) for part in parts]
    numbers = call.numbers(sizes) or []
    is_number = isinstance(sizes, Known) and sizes.values.ndim == 0
    return list(x.split(numbers[0] if is_number else numbers, axis))


@op("SequenceMap")
def sequence_map(call: NodeCall, *values: Any) -> tuple[Any, ...]:
    """A graph on each element."""
    graph, count = call.get("body"), len(values[0])
    rows = [
        call.run.region(graph, call.env, [value[number] if isinstance(value, list) else value for value in values])
        for number in range(count)
    ]
    return tuple(list(column) for column in zip(*rows, strict=True)) or tuple([] for _ in graph.output)


@op("Optional", as_given=None)
def optional(call: NodeCall, value: Any = None) -> Any:
    """A value that may be missing."""
    return value


@op("OptionalGetElement", as_given=None)
def optional_get(call: NodeCall, value: Any) -> Any:
    """What there is."""
    return value


@op("OptionalHasElement", as_given=None)
def optional_has(call: NodeCall, value: Any = None) -> Known:
    """Whether there is something."""
    return Known.of(value is not None, torch.bool)
