"""Views of complex numbers that torch.compile returns: elements, places in memory, conjugation, gradients, as in eager.

Code computes with their parts, of which no view is a view of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

#: Of x: [8, 6] and a number from 2 to 4.
VIEWS: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "first columns": lambda x, s: x[:, :s],
    "last columns": lambda x, s: x[:, s:],
    "row": lambda x, s: x[s],
    "every other": lambda x, s: x[:, ::s],
    "transposed": lambda x, s: x.t()[:s],
    "adjoint": lambda x, s: x[:s].mH,
    "expanded": lambda x, s: x[0].expand(s, -1),
    "windows": lambda x, s: x.unfold(0, s, 1),
    "diagonal": lambda x, s: x.diagonal(s),
    "one of several": lambda x, s: x.split(s, 1)[-1],
    "one of all": lambda x, s: x.unbind(1)[1][s:],
    "flat": lambda x, s: x.view(-1)[s:],
    "unflattened": lambda x, s: x[:, :4].unflatten(1, (2, 2))[:s],
    "strided": lambda x, s: x.as_strided((s, 2), (5, 2)),
    "conjugate": lambda x, s: x[:, :s].conj(),
    "real": lambda x, s: x[:, :s].real,
    "imaginary": lambda x, s: x[:, :s].imag,
    "imaginary of conjugate": lambda x, s: x.conj().imag[:, :s],
    "as real": lambda x, s: torch.view_as_real(x[:, :s]),
}


def of_argument(view: Any, x: torch.Tensor, s: int) -> tuple[torch.Tensor, ...]:
    return (view(x, s),)


def beside_another(view: Any, x: torch.Tensor, s: int) -> tuple[torch.Tensor, ...]:
    return view(x, s), x * 2


def of_result(view: Any, x: torch.Tensor, s: int) -> tuple[torch.Tensor, ...]:
    y = x * 2
    return view(y, s), y


def of_written_argument(view: Any, x: torch.Tensor, s: int) -> tuple[torch.Tensor, ...]:
    x.mul_(2)
    return view(x, s), x


FUNCTIONS = [of_argument, beside_another, of_result, of_written_argument]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_inference(function):
    """One compilation is for all numbers."""
    for name, view in VIEWS.items():
        _assert_same(name, lambda x, s, view=view: function(view, x, s), True, torch.complex64, with_gradients=False)


@pytest.mark.parametrize("function", [of_argument, beside_another, of_result])
def test_training(function):
    for name, view in VIEWS.items():
        _assert_same(name, lambda x, s, view=view: function(view, x, s), True, torch.complex128, with_gradients=True)


@pytest.mark.parametrize(("dynamic", "dtype"), [(None, torch.complex64), (False, torch.complex128)], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_views_of_a_tensor(function, dynamic, dtype):
    """Compiled for each number, or twice: all views in one program."""

    def all_views(x, s):
        return tuple(result for view in VIEWS.values() for result in function(view, x, s))

    _assert_same("all", all_views, dynamic, dtype, with_gradients=False)
    if function is not of_written_argument:
        _assert_same("all", all_views, dynamic, dtype, with_gradients=True)


@pytest.mark.parametrize("dynamic", [True, False])
def test_strides_of_results_that_carry_gradients(dynamic):
    """Of real numbers, too: the view is of a result that is returned beside it."""
    view = VIEWS["strided"]
    _assert_same("strided", lambda x, s: of_result(view, x, s), dynamic, torch.float64, with_gradients=True)


def _assert_same(name: str, function: Any, dynamic: bool | None, dtype: torch.dtype, with_gradients: bool) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="pipeline", dynamic=dynamic)
    for s in (2, 3, 4):
        given = torch.randn(8, 6, dtype=dtype)
        x, y = given.clone().requires_grad_(with_gradients), given.clone().requires_grad_(with_gradients)
        got, expected = compiled(x, s), function(y, s)
        assert [_facts(one, x) for one in got] == [_facts(one, y) for one in expected], (name, s)
        for one, other in zip(got, expected, strict=True):
            torch.testing.assert_close(one.resolve_conj().resolve_neg(), other.resolve_conj().resolve_neg())
        memory, right_memory = ({one.untyped_storage().data_ptr() for one in results} for results in (got, expected))
        assert len(memory) == len(right_memory), (name, s)
        if with_gradients:
            incoming = [torch.randn_like(one) for one in expected]
            (gradient,), (right,) = torch.autograd.grad(got, x, incoming), torch.autograd.grad(expected, y, incoming)
            torch.testing.assert_close(gradient, right)


def _facts(result: torch.Tensor, argument: torch.Tensor) -> tuple[Any, ...]:
    is_view = result.untyped_storage().data_ptr() == argument.untyped_storage().data_ptr()
    layout = (result.shape, result.stride(), result.storage_offset())
    return layout, is_view, result.requires_grad, result.is_conj(), result.is_neg()
