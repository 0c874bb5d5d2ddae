"""All cases of the sweep, by name."""

from __future__ import annotations

from shapes import attention, elementwise, models, places, products, recurrent, rows, windows
from shapes.case import Case

FAMILIES = (products, windows, rows, elementwise, attention, recurrent, places, models)

CASES: dict[str, Case] = {case.name: case for family in FAMILIES for case in family.cases()}


def kinds() -> list[str]:
    """The kinds that there are, in order."""
    return list(dict.fromkeys(case.kind for case in CASES.values()))
