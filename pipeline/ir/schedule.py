"""Schedules: what is chosen for one kernel instead of what analysis would choose, as an attribute of its function."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from pipeline.ir.attributes import SCHEDULE
from pipeline.mlir import ir


@dataclass(frozen=True)
class Schedule:
    """Choices for a kernel; None for what analysis chooses.

    Attributes:
        rows: how many rows a register tile of a sum of products has.
        vectors: how many vectors side by side it has.
        columns: how many columns a panel of weights has.
        scratch: how many bytes the values between the ops of a group may take.
        winograd: how many results a tile of Winograd's algorithm has; 0 for a direct convolution.
    """

    rows: int | None = None
    vectors: int | None = None
    columns: int | None = None
    scratch: int | None = None
    winograd: int | None = None

    @property
    def choices(self) -> dict[str, int]:
        """What is chosen, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.choices.items()) or "the default"


DEFAULT = Schedule()


def schedule_of(function: ir.Operation) -> Schedule:
    """The schedule of a kernel's function; the default for any other function."""
    if SCHEDULE not in function.attributes:
        return DEFAULT
    given = ir.DictAttr(function.attributes[SCHEDULE])
    names = DEFAULT.__dataclass_fields__
    return Schedule(**{name: ir.IntegerAttr(given[name]).value for name in names if name in given})


def set_schedule(function: ir.Operation, schedule: Schedule) -> None:
    """Gives a kernel's function a schedule."""
    i64 = ir.IntegerType.get_signless(64, function.context)
    numbers = {name: ir.IntegerAttr.get(i64, value) for name, value in schedule.choices.items()}
    function.attributes[SCHEDULE] = ir.DictAttr.get(numbers, function.context)
