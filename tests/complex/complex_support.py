"""What the tests of complex numbers share: compiling functions, and comparing with eager in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from function_model import Function
from torch.utils import _pytree as pytree

import pipeline

WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def compiled(function: Callable[..., Any], *args: Any, **options: Any) -> pipeline.Executable:
    """The function, compiled on these arguments."""
    return pipeline.compile(Function(function), args, cache=False, **options)


def wide(arguments: Any) -> Any:
    """The arguments in double precision."""
    return pytree.tree_map_only(torch.Tensor, lambda one: one.to(WIDE.get(one.dtype, one.dtype)), arguments)


def assert_as_good(got: Any, function: Callable[..., Any], args: tuple[Any, ...], factor: float = 4.0) -> None:
    """Results have eager's types, and errors against double precision of a few times eager's, or of rounding."""
    eager, exact = (pytree.tree_leaves(function(*given)) for given in (args, wide(args)))
    for number, (ours, theirs, truth) in enumerate(zip(pytree.tree_leaves(got), eager, exact, strict=True)):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), number
        if not (theirs.is_floating_point() or theirs.is_complex()):
            assert torch.equal(ours, theirs), number
            continue
        if not ours.numel():
            continue
        scale = truth.abs().max().item()
        allowed = factor * (theirs - truth).abs().max().item() + 4e-7 * scale + 1e-30
        assert (ours - truth).abs().max().item() <= allowed, number
