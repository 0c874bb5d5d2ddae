"""Results that go where the caller says: out=."""

from __future__ import annotations

import pytest
import torch
from api_models import Calls

import pipeline
from pipeline import PipelineError


def test_out_that_is_not_row_major():
    exe = pipeline.compile(Calls(lambda x: x + 1), (torch.ones(2, 3),))
    out = torch.empty(3, 2).t()
    assert exe(torch.ones(2, 3), out=out) is out
    torch.testing.assert_close(out, torch.full((2, 3), 2.0))


def test_out_that_is_an_argument():
    exe = pipeline.compile(Calls(lambda x: x + x.flip(0)), (torch.ones(3),))
    x = torch.arange(3.0)
    exe(x, out=x)
    torch.testing.assert_close(x, torch.full((3,), 2.0))


def test_out_of_dynamic_size():
    exe = pipeline.compile(Calls(lambda x: x + 1), (torch.ones(3),), dynamic_shapes=(({0: torch.export.Dim("n")},),))
    out = torch.empty(5)
    exe(torch.ones(5), out=out)
    torch.testing.assert_close(out, torch.full((5,), 2.0))
    with pytest.raises(PipelineError, match="out"):
        exe(torch.ones(5), out=torch.empty(4))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (torch.empty(3), r"argument out: expected float32\[4\], got float32\[3\]"),
        (torch.empty(4, dtype=torch.float64), r"argument out: expected float32\[4\], got float64\[4\]"),
        (torch.empty(4, device="meta"), "argument out: expected a dense tensor on cpu, got meta"),
        ((torch.empty(4),), "argument out: expected a tensor float32.4., got tuple"),
        (torch.empty(1).expand(4), "argument out: .* share memory"),
        ([1.0] * 4, "argument out: expected a tensor"),
    ],
)
def test_wrong_out(out, message):
    exe = pipeline.compile(Calls(lambda x: x + 1), (torch.ones(4),))
    with pytest.raises(pipeline.ArgumentError, match=message):
        exe(torch.ones(4), out=out)


def test_out_names_the_leaf():
    exe = pipeline.compile(Calls(lambda x: {"a": x + 1, "b": [x * 2]}), (torch.ones(4),))
    with pytest.raises(
        pipeline.ArgumentError, match=r"argument out\['b'\]\[0\]: expected float32\[4\], got float32\[5\]"
    ):
        exe(torch.ones(4), out={"a": torch.empty(4), "b": [torch.empty(5)]})


def test_two_results_to_one_out_are_refused():
    exe = pipeline.compile(Calls(lambda x: (x + 1, x * 2)), (torch.ones(4),))
    one = torch.empty(4)
    with pytest.raises(pipeline.ArgumentError, match=r"argument out\[1\]: shares memory with out\[0\]"):
        exe(torch.ones(4), out=(one, one))
