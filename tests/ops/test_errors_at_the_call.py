"""Where eager raises, the executable raises a PipelineError, and goes on working after that."""

import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline

TABLE = torch.arange(12.0).reshape(4, 3)
INDICES = torch.tensor([0, 1])

OUT_OF_RANGE = {
    "embedding": lambda i: F.embedding(i, TABLE),
    "index": lambda i: TABLE[i],
    "index_select": lambda i: TABLE.index_select(0, i),
    "gather": lambda i: TABLE.gather(0, i[:, None]),
    "index_put": lambda i: TABLE.index_put((i,), torch.ones(2, 3)),
    "scatter": lambda i: TABLE.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda i: TABLE.scatter_add(0, i[:, None], torch.ones(2, 1)),
}


@pytest.mark.parametrize("bad", [4, -5, 2**40, -(2**63)])
@pytest.mark.parametrize("function", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_index_out_of_range(function, bad):
    executable = pipeline.compile(Function(function), (INDICES,))
    with pytest.raises(pipeline.PipelineError, match="out of range"):
        executable(torch.tensor([0, bad]))
    assert torch.equal(executable(INDICES), function(INDICES))


DIVISIONS = {
    "floor": lambda a, b: a // b,
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "remainder": lambda a, b: a % b,
    "fmod": torch.fmod,
}


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("function", DIVISIONS.values(), ids=DIVISIONS)
def test_integer_division_by_zero(function, dtype):
    a, b = torch.tensor([7, 8], dtype=dtype), torch.tensor([2, 3], dtype=dtype)
    executable = pipeline.compile(Function(function), (a, b))
    with pytest.raises(pipeline.PipelineError, match="division by zero"):
        executable(a, torch.tensor([1, 0], dtype=dtype))
    assert torch.equal(executable(a, b), function(a, b))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_the_least_integer_by_minus_one_wraps_around(dtype):
    """Eager crashes the process here for 32 and 64 bits."""
    least = torch.tensor([torch.iinfo(dtype).min], dtype=dtype)
    by = torch.tensor([-1], dtype=dtype)
    executable = pipeline.compile(
        Function(lambda a, b: (torch.div(a, b, rounding_mode="trunc"), torch.fmod(a, b))), (by, by)
    )
    quotient, rest = executable(least, by)
    assert torch.equal(quotient, least)
    assert torch.equal(rest, torch.zeros_like(least))
