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


FROM_ZERO = {
    "index_add": lambda i: TABLE.index_add(0, i, torch.ones(2, 3), alpha=2),
    "index_add along the last dim": lambda i: TABLE.index_add(-1, i, torch.ones(4, 2)),
    "index_copy": lambda i: TABLE.index_copy(0, i, torch.ones(2, 3)),
    "scatter": lambda i: TABLE.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda i: TABLE.scatter_add(0, i[:, None], torch.ones(2, 1)),
    "gather": lambda i: TABLE.gather(0, i[:, None]),
    **{
        f"scatter_reduce {name}": lambda i, name=name: TABLE.scatter_reduce(0, i[:, None], torch.ones(2, 1), name)
        for name in ("sum", "prod", "mean", "amax", "amin")
    },
    "scatter_reduce of integers": lambda i: TABLE.int().scatter_reduce(
        0, i[:, None], torch.ones(2, 1).int(), "mean", include_self=False
    ),
    "scatter_reduce of truths": lambda i: (TABLE > 3).scatter_reduce(0, i[:, None], TABLE[:2, :1] > 3, "amax"),
}


@pytest.mark.parametrize("bad", [-1, -3, -4, 4])
@pytest.mark.parametrize("function", FROM_ZERO.values(), ids=FROM_ZERO)
def test_ops_that_do_not_count_from_the_end(function, bad):
    executable = pipeline.compile(Function(function), (INDICES,))
    with pytest.raises((IndexError, RuntimeError)):
        function(torch.tensor([0, bad]))
    with pytest.raises(pipeline.PipelineError, match="out of range"):
        executable(torch.tensor([0, bad]))
    assert torch.equal(executable(INDICES), function(INDICES))


FROM_THE_END = {
    "index": lambda i: TABLE[i],
    "index_put": lambda i: TABLE.index_put((i,), torch.ones(2, 3)),
    "index_fill": lambda i: TABLE.index_fill(0, i, 2),
    "index_fill of a tensor": lambda i: TABLE.int().index_fill(1, i, torch.tensor(7)),
    "take": lambda i: TABLE.take(i),
}


@pytest.mark.parametrize("function", FROM_THE_END.values(), ids=FROM_THE_END)
def test_ops_that_count_from_the_end(function):
    executable = pipeline.compile(Function(function), (INDICES,))
    for places in (INDICES, torch.tensor([-1, 1]), torch.tensor([-3, 2])):
        assert torch.equal(executable(places), function(places))


NUMBERS = {
    "index_add": lambda x, i: x.index_add(0, i, x * 3),
    "index_copy": lambda x, i: x.index_copy(0, i, x * 3),
    "index_fill": lambda x, i: x.index_fill(0, i, 3),
}


@pytest.mark.parametrize("function", NUMBERS.values(), ids=NUMBERS)
def test_places_in_a_number(function):
    x, i = torch.tensor(2.5), torch.tensor([0])
    executable = pipeline.compile(Function(function), (x, i))
    assert torch.equal(executable(x, i), function(x, i))


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
