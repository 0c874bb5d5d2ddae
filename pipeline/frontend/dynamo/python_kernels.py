"""Has our decompositions come before those that torch registers as kernels in Python.

Gets round two defects of torch. While a graph is traced, a kernel that is registered for gradients with `py_impl` runs
whatever table of decompositions was given, and that of multilabel_margin_loss is wrong. Remove when tables come first.
And ops that torch computes by others may refuse symbolic sizes (`_COMPOSITES`). Remove when they take them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C import DispatchKey

from pipeline.frontend.decompositions import affine
from pipeline.frontend.decompositions.replacements import REPLACEMENTS
from pipeline.frontend.gradients.affine_grids import affine_grid_generator_backward

#: Ops whose kernels in C++ want sizes that are known.
_COMPOSITES = {torch.ops.aten.affine_grid_generator_backward.default: affine_grid_generator_backward}

_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


@contextlib.contextmanager
def replacements_first() -> Iterator[None]:
    """Within, torch's kernels in Python of ops that `REPLACEMENTS` has are ours, and those of a few other ops."""
    replaced: list[tuple[torch._ops.OpOverload, DispatchKey, Callable[..., Any] | None]] = []
    for op, function in {**affine.decompositions(), **_COMPOSITES}.items():
        replaced.append((op, DispatchKey.CompositeImplicitAutograd, None))
        _set(op, DispatchKey.CompositeImplicitAutograd, function)
    for op, function in REPLACEMENTS.items():
        for key in _KEYS:
            kernel = getattr(op, "py_kernels", {}).get(key)
            if kernel is not None:
                replaced.append((op, key, kernel))
                _set(op, key, _first(function, kernel))
    try:
        yield
    finally:
        for op, key, kernel in replaced:
            _set(op, key, kernel)


def _set(op: torch._ops.OpOverload, key: DispatchKey, kernel: Callable[..., Any] | None) -> None:
    if kernel is None:
        del op.py_kernels[key]
    else:
        op.py_kernels[key] = kernel
    op._dispatch_cache.clear()


def _first(function: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, or what is there otherwise where that declines."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return otherwise(*args, **kwargs) if result is NotImplemented else result

    return kernel
