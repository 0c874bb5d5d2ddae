"""Casts to known sizes and shapes of results: proved, asked for at the call, or checked by the code."""

from __future__ import annotations

import pytest
import sympy
import torch
from function_model import Function
from torch.export import Dim

import pipeline
from pipeline.frontend.shapes.held_casts import hold_casts
from pipeline.frontend.shapes.promises import Promises
from pipeline.mlir import context, parse

S, T = (sympy.Symbol(name, integer=True, positive=True) for name in "st")

CAST = """
func.func @main(%x: tensor<?x?xf32> {pipeline.argument = 0 : i64}) -> tensor<?x4xf32> {
  %0 = tensor.cast %x : tensor<?x?xf32> to tensor<?x4xf32>
  %1 = tensor.empty(%n) : tensor<?x4xf32>
  %2 = linalg.add ins(%0, %0 : tensor<?x4xf32>, tensor<?x4xf32>) outs(%1 : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}""".replace("  %1 =", "  %c0 = arith.constant 0 : index\n  %n = tensor.dim %x, %c0 : tensor<?x?xf32>\n  %1 =")


def kept(text: str, argument, result, ranges=None):
    """The module after its casts and its result have been compared with what is promised, and the sizes raised."""
    module = parse(text, context())
    with module.context:
        hold_casts(module)
        raised = Promises([argument], [result], ranges or {}).keep(module)
    return module, raised


def test_proved_cast_stays() -> None:
    """A size that is 4 by its symbols needs no check."""
    module, raised = kept(CAST, [S, sympy.Integer(4)], [S, sympy.Integer(4)])
    assert "cf.assert" not in str(module)
    assert "held_cast" not in str(module)
    assert raised == {}


def test_unproved_cast_is_checked() -> None:
    """A size that may be another one fails a check, and nothing is read from outside of the data."""
    module, _ = kept(CAST, [S, T], [S, sympy.Integer(4)])
    assert "cf.assert" in str(module)
    executable = pipeline.compile(str(module))
    x = torch.randn(3, 4)
    torch.testing.assert_close(executable(x), x + x)
    for width in (1, 3, 5):
        with pytest.raises(pipeline.PipelineError, match="a size is none that the model was exported for"):
            executable(torch.randn(1000, width))


def test_other_result_is_refused() -> None:
    """A result that is never as promised is found when the model is compiled."""
    with pytest.raises(pipeline.CompileError, match="dimension 0 is computed as s, and is to be s \\+ 1"):
        kept(CAST, [S, sympy.Integer(4)], [S + 1, sympy.Integer(4)])


def test_unproved_result_is_checked() -> None:
    """A result that may be as promised is compared when the program runs."""
    module, _ = kept(CAST, [S, sympy.Integer(4)], [T * S, sympy.Integer(4)])
    assert str(module).count("cf.assert") == 0  # nothing says what t is
    module, _ = kept(CAST, [S, sympy.Integer(4)], [S * S, sympy.Integer(4)])
    executable = pipeline.compile(str(module))
    executable(torch.randn(1, 4))
    with pytest.raises(pipeline.PipelineError, match="a size is none that the model was exported for"):
        executable(torch.randn(3, 4))


@pytest.mark.parametrize(
    ("function", "least"),
    [
        (lambda x: x[:, :2] * 2, 2),
        (lambda x: x[:, -2:].sum(1), 2),
        (lambda x: x[:, :1] + x, 1),
    ],
)
def test_sizes_that_torch_took_for_granted(function, least: int) -> None:
    """torch.export takes no symbolic size for 0 or 1, so a slice of two has two: calls with fewer are refused."""
    model = Function(function)
    executable = pipeline.compile(
        model, (torch.randn(3, 9),), dynamic_shapes=(({0: Dim("b", max=9), 1: Dim.AUTO(max=99)},),)
    )
    for length in (least, least + 1, 20):
        x = torch.randn(4, length)
        torch.testing.assert_close(executable(x), model(x))
    with pytest.raises(pipeline.ArgumentError, match=f"dimension 1 is {least - 1}, expected {least} to 99"):
        executable(torch.randn(4, least - 1))
    assert not [remark for remark in executable.remarks if remark.pass_name == "shapes"]
