"""Results of while loops are tensors of their own while torch traces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils._pytree as torch_pytree
from torch._higher_order_ops.while_loop import while_loop_op
from torch._subclasses.fake_tensor import FakeTensorMode


@contextlib.contextmanager
def results_are_new() -> Iterator[None]:
    """While a model is traced: no result of a loop is the tensor object that its body captures, or another result.

    while_loop(c, {a = b}, (a,), (b,)); f(b)  →  f(b), not f(the loop's result, which is a after no round)

    Gets round a defect of torch: it takes what the body returns on fake tensors for the loop's results, and these
    objects stand for the results from then on. torch.while_loop refuses such bodies; loops of scripts have them.
    """
    original = while_loop_op.python_key_table[FakeTensorMode]

    def with_new_results(mode: FakeTensorMode, *args: Any, **kwargs: Any) -> Any:
        results = original(mode, *args, **kwargs)
        with mode:
            return torch_pytree.tree_map_only(torch.Tensor, _renewed, results)

    while_loop_op.python_key_table[FakeTensorMode] = with_new_results
    try:
        yield
    finally:
        while_loop_op.python_key_table[FakeTensorMode] = original


def _renewed(fake: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(fake.size(), fake.stride(), dtype=fake.dtype, device=fake.device)
