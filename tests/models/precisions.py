"""The ways in which a model of the zoo runs in 16 bits, each with its error against the model in float64."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from compare import relative_error
from torch import nn
from torch.utils import _pytree as pytree
from zoo import Arguments, Entry

import pipeline


@dataclass(frozen=True)
class Form:
    """A way to run a model in 16 bits.

    Attributes:
        dtype: that of the model's weights and of its arguments; None where they stay in f32.
        autocast: whether eager and the capture run under torch.autocast.
        options: of the compilation.
    """

    dtype: torch.dtype | None = None
    autocast: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """What eager and the capture run under."""
        return torch.autocast("cpu", dtype=torch.bfloat16) if self.autocast else contextlib.nullcontext()


#: The forms by the names that tests and docs/models.md call them by.
FORMS = {
    'precision="bf16"': Form(options=(("precision", "bf16"),)),
    ".bfloat16()": Form(dtype=torch.bfloat16),
    "autocast": Form(autocast=True),
    ".half()": Form(dtype=torch.float16),
}


def errors(entry: Entry, form: Form, shorten: Callable[[nn.Module], None] | None = None) -> tuple[float, float]:
    """The errors of the compiled model and of eager in a form, as `relative_error` has them, against float64.

    For a model with dynamic sizes the worst of several sizes. `shorten` takes layers out of the model first.
    """
    model, *first = entry.create()
    if shorten is not None:
        shorten(model)
    exact = copy.deepcopy(model).double()
    if form.dtype is not None:
        model = model.to(form.dtype)
    args, kwargs = _in_dtype(tuple(first), form.dtype)
    with form.context():
        compiled = pipeline.compile(model, args, kwargs, dynamic_shapes=entry.dynamic_shapes, **dict(form.options))
    found = [
        _errors(exact, model, compiled, given, form) for given in (first, *(make() for make in entry.more_arguments))
    ]
    return max(ours for ours, _ in found), max(eagers for _, eagers in found)


def _errors(exact: nn.Module, model: nn.Module, compiled: Any, given: Any, form: Form) -> tuple[float, float]:
    args, kwargs = _in_dtype(tuple(given), torch.float64)
    with torch.no_grad():
        want = exact(*args, **kwargs)
    args, kwargs = _in_dtype(tuple(given), form.dtype)
    with torch.no_grad(), form.context():
        eager = model(*args, **kwargs)
    got = compiled(*args, **kwargs)
    assert [leaf.dtype for leaf in _tensors(got)] == [leaf.dtype for leaf in _tensors(eager)]
    want, eager, got = (_tensors(_in_dtype(one, torch.float64)) for one in (want, eager, got))
    return relative_error(got, want), relative_error(eager, want)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _in_dtype(values: Arguments | Any, dtype: torch.dtype | None) -> Any:
    """Values whose floats are in a dtype; as they are if it is None."""
    if dtype is None:
        return values
    return pytree.tree_map_only(torch.Tensor, lambda x: x.to(dtype) if x.is_floating_point() else x, values)
