"""torch.roll by any number of places: within a size, further, and back."""

from __future__ import annotations

import pytest
import torch
from dynamo_state import fresh_dynamo
from function_model import Function
from numerics import check

__all__ = ["fresh_dynamo"]

PLACES = range(-9, 10)


def rolls(x):
    along = [torch.roll(x, places, 0) for places in PLACES]
    both = [torch.roll(x, [places, 3 - places], [0, 1]) for places in PLACES]
    one_by_one = [torch.roll(torch.roll(x, places, 1), 5, 0) for places in PLACES]
    return along, both, one_by_one, [torch.roll(x, places) for places in PLACES]


@pytest.mark.parametrize("rows", [0, 1, 2, 4])
def test_they_are_eagers(rows):
    x = torch.arange(3.0 * rows).reshape(rows, 3)
    check(Function(rolls), x)
    torch.testing.assert_close(torch.compile(rolls, backend="pipeline", dynamic=True)(x), rolls(x))


def test_places_of_the_call():
    compiled, x = torch.compile(torch.roll, backend="pipeline", dynamic=True), torch.arange(5)
    for places in (1, 3, 5, 7, -9, 0):
        assert torch.equal(compiled(x, places, 0), torch.roll(x, places, 0))
