"""How the runtime calls compiled code: one function per entry that takes an array of 64-bit slots.

For every parameter the slots hold, in order: a tensor's address and then its sizes that are not known in advance; a
number itself. For every result that the code allocates: a memref descriptor, that is the allocation's address, the
data's address, an offset, the sizes and the strides; a number itself. Results of known size are parameters; the new
value of an argument may be written to the argument.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

DYNAMIC = -1

#: At multiples of how many bytes memory of the runtime's and the code's starts: a cache line, and the widest vector.
ALIGNMENT = 64

#: Where a result goes: to a `parameter`, out as a `result` of the code, to an `argument` that it is the new value of.
Where = Literal["parameter", "result", "argument"]


@dataclass(frozen=True)
class Value:
    """A parameter or result: a tensor of `shape` (`DYNAMIC` where a size is not known), or a number (no shape)."""

    shape: tuple[int, ...] | None

    @property
    def dynamic_dims(self) -> list[int]:
        """The dimensions whose sizes are passed along."""
        return [dim for dim, size in enumerate(self.shape or ()) if size == DYNAMIC]


@dataclass(frozen=True)
class EntryPoint:
    """The shape of an entry's slots.

    Attributes:
        symbol: the function's symbol, `void(int64_t *slots)`.
        parameters: what the code takes: first the entry's own arguments, then a place for each result of known size.
        results: what the code allocates and hands out.
        where: for each result of the program, where it goes.
    """

    symbol: str
    parameters: tuple[Value, ...]
    results: tuple[Value, ...]
    where: tuple[Where, ...]

    def parameter_slots(self) -> list[int]:
        """The first slot of each parameter."""
        return _offsets([1 + len(value.dynamic_dims) for value in self.parameters])

    def result_slots(self) -> list[int]:
        """The first slot of each result."""
        first = sum(1 + len(value.dynamic_dims) for value in self.parameters)
        return [first + offset for offset in _offsets([_width(value) for value in self.results])]

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return sum(1 + len(value.dynamic_dims) for value in self.parameters) + sum(map(_width, self.results))

    def to_json(self) -> dict[str, Any]:
        """The entry point as JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> EntryPoint:
        """The inverse of `to_json`."""
        parameters, results = (
            tuple(Value(None if value["shape"] is None else tuple(value["shape"])) for value in data[key])
            for key in ("parameters", "results")
        )
        return EntryPoint(data["symbol"], parameters, results, tuple(data["where"]))


def _width(value: Value) -> int:
    return 1 if value.shape is None else 3 + 2 * len(value.shape)


def _offsets(widths: list[int]) -> list[int]:
    return [sum(widths[:index]) for index in range(len(widths))]
