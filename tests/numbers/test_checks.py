"""What a call is refused for: conditions on sizes and on numbers that the model, or torch.export, relies on."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from function_model import Function
from torch.export import Dim

import pipeline

AUTO = {0: Dim.AUTO}


def _compile(function: Any, *arguments: torch.Tensor, shapes: Any) -> pipeline.Executable:
    return pipeline.compile(Function(function), arguments, dynamic_shapes=(shapes,))


def _first(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    number = count.item()
    torch._check(number >= 0)
    torch._check(number <= x.shape[0])
    return x[:number] + 1


@pytest.mark.parametrize("count", [-1, 8, 2**40])
def test_a_number_beyond_what_the_model_allows_is_an_error(count: int) -> None:
    x = torch.randn(7, 2)
    executable = _compile(_first, x, torch.tensor([3]), shapes=(AUTO, None))
    assert executable(x, torch.tensor([7])).equal(x + 1)
    with pytest.raises(pipeline.PipelineError, match="the model's check .* failed"):
        executable(x, torch.tensor([count]))


def test_a_division_of_sizes_by_zero_is_an_error_with_its_line() -> None:
    x, y = torch.randn(7, 2), torch.randn(9)
    executable = _compile(lambda x, y: y + y.shape[0] // x.shape[0], x, y, shapes=(AUTO, AUTO))
    with pytest.raises(pipeline.PipelineError, match="integer division by zero"):
        executable(x[:0], y)
    assert executable(x, y).equal(y + 1)


@pytest.mark.parametrize(
    ("function", "good", "bad"),
    [
        (lambda x: x + int(x.shape[0] * 0.7), 6, 8),
        (lambda x: x * 2 if x.shape[0] % 3 == 0 else x * 3, 9, 8),
        (lambda x: x * 2 if x.shape[0] ** 0.5 < 2.5 else x * 3, 5, 7),
    ],
)
def test_sizes_for_which_python_would_go_another_way_are_refused(function: Any, good: int, bad: int) -> None:
    """torch.export follows the branch of the example's size, 6, and leaves a guard."""
    executable = _compile(function, torch.randn(6, 2), shapes=(AUTO,))
    x = torch.randn(good, 2)
    assert executable(x).equal(function(x))
    with pytest.raises(pipeline.ArgumentError, match=f"dimension 0 is {bad}.*{re.escape(__file__)}"):
        executable(torch.randn(bad, 2))


def test_guards_are_part_of_an_artifact(tmp_path: Any) -> None:
    executable = _compile(lambda x: x + int(x.shape[0] * 0.7), torch.randn(6, 2), shapes=(AUTO,))
    executable.save(tmp_path / "guarded.pipeline")
    with pytest.raises(pipeline.ArgumentError, match="compile it for such sizes"):
        pipeline.load(tmp_path / "guarded.pipeline")(torch.randn(9, 2))


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_an_index_into_no_rows_is_an_error(rows: int) -> None:
    """No memory lies at an empty tensor's address; the row at index 0 is read after the check has failed."""
    executable = _compile(lambda x, i: x[i.item()], torch.randn(7, 5000), torch.tensor(3), shapes=(AUTO, None))
    x = torch.randn(rows, 5000)
    with pytest.raises(pipeline.PipelineError, match="out of range"):
        executable(x, torch.tensor(rows))
    if rows:
        assert executable(x, torch.tensor(rows - 1)).equal(x[-1])


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda x, c: x.repeat_interleave(c, 0), (torch.ones(2, 3), torch.tensor([1, -1]))),
        (lambda x, c: torch.bincount(c), (torch.ones(2, 3), torch.tensor([1, -1]))),
        (lambda x, c: torch.zeros(4).masked_scatter(torch.ones(4).bool(), x), (torch.ones(2, 1), torch.tensor([0, 0]))),
    ],
)
def test_what_eager_refuses_is_an_error(function: Any, arguments: tuple[torch.Tensor, ...]) -> None:
    executable = _compile(function, torch.ones(5, arguments[0].shape[1]), torch.ones(5).long(), shapes=(AUTO, AUTO))
    with pytest.raises(RuntimeError):
        function(*arguments)
    with pytest.raises(pipeline.PipelineError):
        executable(*arguments)


def test_as_many_values_as_a_mask_selects() -> None:
    def put(x: torch.Tensor, mask: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x[mask] = values
        return x

    x, mask = torch.randn(7, 2), torch.tensor([True, False, True, True, False, False, True])
    executable = _compile(put, x, mask, torch.randn(4, 2), shapes=(AUTO, AUTO, AUTO))
    values = torch.randn(4, 2)
    assert executable(x, mask, values).equal(put(x, mask, values))
    with pytest.raises(pipeline.PipelineError, match="shape mismatch"):
        executable(x, mask, torch.randn(3, 2))


def test_a_model_that_makes_numbers_of_tensors_is_captured_by_its_bytecode() -> None:
    executable = _compile(lambda x, i: x * int(i), torch.randn(7, 2), torch.tensor(3), shapes=(AUTO, None))
    x = torch.randn(2, 2)
    assert executable(x, torch.tensor(5)).equal(x * 5)
    assert any("bytecode" in remark.reason for remark in executable.remarks)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * float(x.shape[0]),
        lambda x: x + int(x.shape[0]),
        lambda x: x / torch.tensor(float(x.shape[0])),
        lambda x: x + round(float(x.shape[0]) / 3, 2),
        lambda x: torch.full((2,), float(x.shape[0] + 1) ** 0.5),
    ],
)
@pytest.mark.parametrize("dim", [Dim.AUTO, Dim.DYNAMIC, Dim("n", max=2000)], ids=["auto", "dynamic", "named"])
def test_numbers_that_python_makes_of_sizes_stay_symbolic(function: Any, dim: Any) -> None:
    """float(s) has to give Python a float; the model is captured by its bytecode then."""
    executable = _compile(function, torch.randn(7, 2), shapes=({0: dim},))
    assert any("bytecode" in remark.reason for remark in executable.remarks)
    for rows in (7, 1, 2, 1000):
        x = torch.randn(rows, 2)
        torch.testing.assert_close(executable(x), function(x))


@pytest.mark.parametrize(
    ("function", "bad"),
    [
        (lambda x: x * 2 if x.shape[0] > 1 else x * 3, 1),
        (lambda x: x * 2 if x.shape[0] else x + 3, 0),
        (lambda x: x.squeeze(0) * 2 if x.shape[0] == 1 else x, 1),
    ],
)
def test_sizes_of_0_and_1_for_which_python_would_go_another_way_are_refused(function: Any, bad: int) -> None:
    """torch.export takes for granted that no symbolic size is one of these, without a guard."""
    executable = _compile(function, torch.randn(6, 2), shapes=(AUTO,))
    for rows in {0, 1, 2, 9} - {bad}:
        x = torch.randn(rows, 2)
        assert executable(x).equal(function(x))
    with pytest.raises(pipeline.ArgumentError, match=f"dimension 0 is {bad}.*{re.escape(__file__)}"):
        executable(torch.randn(bad, 2))
