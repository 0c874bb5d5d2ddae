"""Python's implementations of ATen's ops, replaced for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch._C import DispatchKey

#: Where torch finds Python's implementations of composite ops while it traces.
_KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


@contextlib.contextmanager
def implemented(functions: Mapping[Any, Callable[..., Any]]) -> Iterator[None]:
    """Has torch trace these ops by these functions in the `with` block; one thread at a time."""
    before = {op: dict(op.py_kernels) for op in functions}
    for op, function in functions.items():
        _install(op, {**before[op], **dict.fromkeys(_KEYS, function)})
    try:
        yield
    finally:
        for op, kernels in before.items():
            _install(op, kernels)


def _install(op: Any, kernels: dict[Any, Any]) -> None:
    op.py_kernels.clear()
    op.py_kernels.update(kernels)
    op._dispatch_cache.clear()
