"""Programs that compute with sizes and with numbers of tensors, and those whose results have sizes found in data.

Each is compiled once, with a size that is not known, and run with several; it gives what eager gives, or both fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from function_model import Function
from item_programs import OF_ITEMS
from numerics import differences
from selection_programs import OF_SELECTIONS
from size_programs import OF_MATRIX, OF_TWO
from torch.export import Dim
from torch.utils import _pytree as pytree

import pipeline

EXAMPLE = 7
SIZES = (EXAMPLE, 0, 1, 2, 1000)

AUTO = {0: Dim.AUTO}


def _matrix(n: int) -> torch.Tensor:
    return torch.randn(n, 6, generator=torch.Generator().manual_seed(n))


def _selection_arguments(n: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(n + 1)
    return torch.randn(n, generator=generator), _matrix(n), torch.randint(0, 4, (n,), generator=generator)


@pytest.mark.parametrize("name", OF_MATRIX)
def test_numbers_of_a_size(name: str) -> None:
    """Arithmetic and functions of one size: floats, whole numbers and conditions, used and returned."""
    _check(OF_MATRIX[name], lambda n: (_matrix(n),), (AUTO,))


@pytest.mark.parametrize("name", OF_TWO)
def test_numbers_of_two_sizes(name: str) -> None:
    """Two sizes together, of which one may be the divisor 0."""
    _check(OF_TWO[name], lambda n: (_matrix(n), torch.arange(n + 3.0)), (AUTO, AUTO))


@pytest.mark.parametrize("name", OF_ITEMS)
def test_numbers_of_tensors(name: str) -> None:
    """Numbers that are read from tensors: as operands, as ends of slices, as indices, as results."""
    _check(OF_ITEMS[name], lambda n: (_matrix(n), torch.tensor([n // 2])), (AUTO, None))


@pytest.mark.parametrize("name", OF_SELECTIONS)
def test_sizes_found_in_data(name: str) -> None:
    """What is selected by values, and what is computed from that."""
    _check(OF_SELECTIONS[name], _selection_arguments, (AUTO, AUTO, AUTO))


def _check(program: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]], dynamic_shapes: Any) -> None:
    model = Function(program)
    executable = pipeline.compile(model, arguments(EXAMPLE), dynamic_shapes=(dynamic_shapes,))
    problems = []
    for n in SIZES:
        expected, got = _outcome(model, arguments(n)), _outcome(executable, arguments(n))
        if isinstance(expected, Exception) or isinstance(got, Exception):
            if not (isinstance(expected, Exception) and isinstance(got, pipeline.PipelineError)):
                problems.append(f"{n}: {got!r}, expected {expected!r}")
            continue
        problems += [f"{n}{path}: {text}" for path, text in differences(_comparable(got), _comparable(expected))]
    assert not problems, "\n".join(problems)


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        return error


def _comparable(tree: Any) -> Any:
    """The tree with tensors for floats, which are equal within a tolerance, and NaN to NaN."""
    return pytree.tree_map_only(float, lambda value: torch.tensor(value, dtype=torch.float32), tree)
