"""Recurrent nets under autocast: results of the dtypes that eager gives.

Which dtypes these are depends on the kind of net, on its operands, and on whether oneDNN runs it on this machine. So
eager is asked, for one step of one sequence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch._dispatch.python import no_python_dispatcher
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

_NAMES = ("lstm", "gru", "rnn_tanh", "rnn_relu")


@contextlib.contextmanager
def in_dtypes_of_eager() -> Iterator[None]:
    """Has recurrent nets in the `with` block cast their results under autocast; one thread at a time."""
    for name in _NAMES:
        setattr(torch._VF, name, _casting(getattr(torch._VF, name)))
    try:
        yield
    finally:
        for name in _NAMES:
            delattr(torch._VF, name)


def _casting(function: Callable[..., Any]) -> Callable[..., Any]:
    def cast(*args: Any) -> Any:
        results = function(*args)
        if not torch.is_autocast_enabled("cpu"):
            return results
        return tuple(one.to(like.dtype) for one, like in zip(results, _of_one_step(function, args), strict=True))

    return cast


def _of_one_step(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """What eager gives for one step of one sequence of zeros, by parameters of zeros."""
    is_packed = isinstance(args[1], Tensor) and args[1].dtype is torch.int64
    inputs, *batch_sizes, states, parameters = args[: 4 if is_packed else 3]
    with _disable_current_modes(), no_python_dispatcher(), torch.no_grad():
        one = torch.zeros([1] * (inputs.dim() - 1) + [inputs.shape[-1]], dtype=inputs.dtype)
        first = tree_map(lambda state: torch.zeros([state.shape[0], 1, state.shape[2]], dtype=state.dtype), states)
        zeros = [torch.zeros(parameter.shape, dtype=parameter.dtype) for parameter in parameters]
        rows = [torch.ones(1, dtype=torch.int64) for _ in batch_sizes]
        return function(one, *rows, first, zeros, *args[4 if is_packed else 3 :])
