"""A model through torch.compile beside eager: how far off its outputs are, and how often it was compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from architectures import Architecture, call
from torch._dynamo.utils import counters


@dataclass(frozen=True)
class Outcome:
    """What a few calls of a compiled model showed.

    Attributes:
        graphs: how many graphs had been compiled after each call.
        direct: how many of them are called without aot_autograd's runtime.
        error: the largest difference from eager in any output, in parts of that output's largest magnitude.
    """

    graphs: tuple[int, ...]
    direct: int
    error: float


def through_compile(architecture: Architecture, gradients: bool, options: dict[str, Any] | None = None) -> Outcome:
    """Calls a model with all of its sizes; raises AssertionError where outputs differ in more than their values."""
    model = architecture.create()
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(model, backend="pipeline", options=options)
    graphs, error = [], 0.0
    with torch.set_grad_enabled(gradients):
        for size in architecture.sizes:
            given = architecture.inputs(*size)
            error = max(error, difference(call(compiled, given), call(model, given)))
            graphs.append(counters["pipeline"]["graphs"])
    return Outcome(tuple(graphs), counters["pipeline"]["direct"], error)


def difference(ours: Any, theirs: Any) -> float:
    """The largest relative difference of any tensor in nested outputs, whose kinds, dtypes and shapes are the same."""
    assert type(ours) is type(theirs)
    found, expected = list(_leaves(ours)), list(_leaves(theirs))
    assert [_kind(one) for one in found] == [_kind(one) for one in expected]
    return max((_relative(one, other) for one, other in zip(found, expected, strict=True)), default=0.0)


def _leaves(value: Any, seen: tuple[int, ...] = ()) -> Iterator[Any]:
    """Tensors and numbers in containers, caches of transformers among them."""
    if isinstance(value, Mapping):
        value = list(value.values())
    elif hasattr(value, "__dict__") and not isinstance(value, (torch.Tensor, type)) and id(value) not in seen:
        seen, value = (*seen, id(value)), list(vars(value).values())
    if not isinstance(value, (list, tuple)):
        yield value
        return
    for part in value:
        yield from _leaves(part, seen)


def _kind(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.requires_grad
    return value if isinstance(value, (bool, int, float, str)) else type(value)


def _relative(ours: Any, theirs: Any) -> float:
    if not isinstance(theirs, torch.Tensor) or not theirs.numel():
        return 0.0
    ours, theirs = ours.detach().double(), theirs.detach().double()
    torch.testing.assert_close(ours.isfinite(), theirs.isfinite())
    finite = theirs.isfinite()
    return float(((ours - theirs)[finite].abs().amax() if finite.any() else 0) / (theirs[finite].abs().max() or 1))
