"""torch.compile with numbers and sizes that are symbols of its graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from item_programs import OF_ITEMS
from numerics import differences
from selection_programs import OF_SELECTIONS
from size_programs import OF_MATRIX

import pipeline

Program = Callable[..., Any]


@pytest.fixture(autouse=True)
def _graphs_with_numbers() -> Iterator[None]:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def _check(program: Program, arguments: Callable[[int], tuple[Any, ...]]) -> None:
    compiled = torch.compile(program, backend="pipeline", dynamic=True)
    with torch.no_grad():
        for n in (7, 1000, 2, 1):
            assert not differences(compiled(*arguments(n)), program(*arguments(n)))


@pytest.mark.parametrize("name", ["div_sqrt", "ceil", "std", "bf16"])
def test_numbers_of_sizes(name: str) -> None:
    _check(OF_MATRIX[name], lambda n: (torch.arange(n * 6.0).reshape(n, 6) / 7,))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * (1 / math.sqrt(x.shape[0])),
        lambda x: torch.exp(torch.arange(x.shape[0]) * (-math.log(10000.0) / x.shape[0])),
        lambda x: x * (float(x.shape[0]) / 2),
    ],
)
def test_quotients_of_sizes_are_compiled(program: Program, dynamic: bool | None) -> None:
    """torch.compile makes tensors of them, and divides by true_divide."""
    compiled = torch.compile(program, backend="pipeline", dynamic=dynamic)
    with torch.no_grad():
        for n in (7, 5, 40):
            x = torch.randn(n, 6)
            torch.testing.assert_close(compiled(x), program(x))
    executables = pipeline.executables(compiled)
    assert len(executables) == (1 if dynamic else 2)
    assert not [remark for one in executables for remark in one.remarks if remark.pass_name == "fallback"]


@pytest.mark.parametrize("name", ["int_of_tensor", "full_value", "slice_end", "select"])
def test_numbers_of_tensors(name: str) -> None:
    _check(OF_ITEMS[name], lambda n: (torch.arange(n * 6.0).reshape(n, 6), torch.tensor([n // 2])))


@pytest.mark.parametrize("name", ["mask_2d", "put_selected", "unique_counts", "repeat_interleave_rows"])
def test_sizes_found_in_data(name: str) -> None:
    def arguments(n: int) -> tuple[torch.Tensor, ...]:
        return torch.arange(n) % 3 - 1.0, torch.arange(n * 6.0).reshape(n, 6) - n, torch.arange(n) % 4

    _check(OF_SELECTIONS[name], arguments)


@pytest.mark.parametrize(
    "program", [lambda x: x[x.shape[0] // 2 :], lambda x: x[:, : x.shape[0] // 2], lambda x: x[1:].t()]
)
def test_results_that_are_views_at_computed_places(program: Program) -> None:
    """They lie in the argument's memory, as in eager."""
    x = torch.randn(7, 6)
    with torch.no_grad():
        result = torch.compile(program, backend="pipeline", dynamic=True)(x)
    assert result.equal(program(x))
    assert result.data_ptr() == program(x).data_ptr()
