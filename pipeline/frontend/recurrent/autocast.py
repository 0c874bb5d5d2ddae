"""Recurrent nets under autocast: results of the dtypes that eager gives.

Which dtypes these are depends on the kind of net, on its operands, and on whether oneDNN runs it on this machine. So
eager is asked, for one step of one sequence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

_NAMES = ("lstm", "gru", "rnn_tanh", "rnn_relu")


@contextlib.contextmanager
def in_dtypes_of_eager() -> Iterator[None]:
    """Has recurrent nets in the `with` block cast their results under autocast; one thread at a time."""
    has_onednn = torch.backends.mkldnn.enabled  # torch.export turns it off
    for name in _NAMES:
        setattr(torch._VF, name, _casting(getattr(torch._VF, name), has_onednn))
    try:
        yield
    finally:
        for name in _NAMES:
            delattr(torch._VF, name)


def _casting(function: Callable[..., Any], has_onednn: bool) -> Callable[..., Any]:
    def cast(*args: Any) -> Any:
        results = function(*args)
        if not torch.is_autocast_enabled("cpu"):
            return results
        with torch.backends.mkldnn.flags(enabled=has_onednn):
            dtypes = _in_eager(function, args, torch.get_autocast_dtype("cpu"))
        return tuple(result.to(dtype) for result, dtype in zip(results, dtypes, strict=True))

    return cast


def _in_eager(function: Callable[..., Any], args: tuple[Any, ...], dtype: torch.dtype) -> list[torch.dtype]:
    """The dtypes of what eager gives for such arguments, in a thread, where nobody traces."""

    def run() -> list[torch.dtype]:
        with torch.no_grad(), torch.autocast("cpu", dtype=dtype):
            return [result.dtype for result in function(*_of_one_step(args))]

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


def _of_one_step(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Zeros in the place of the tensors, for one step of one sequence."""
    count = 4 if isinstance(args[1], Tensor) and args[1].dtype is torch.int64 else 3
    inputs, *batch_sizes, states, parameters = args[:count]
    step = torch.zeros([1] * (inputs.dim() - 1) + [inputs.shape[-1]], dtype=inputs.dtype)
    first = tree_map(lambda state: torch.zeros([state.shape[0], 1, state.shape[2]], dtype=state.dtype), states)
    zeros = [torch.zeros(parameter.shape, dtype=parameter.dtype) for parameter in parameters]
    return step, *(torch.ones(1, dtype=torch.int64) for _ in batch_sizes), first, zeros, *args[count:]
