"""Comparing an executable with PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from gpu_models import Case

import pipeline


def check(case: Case, target: str, compile: Any = pipeline.compile) -> Any:
    """Compiles and runs a case for its arguments and the other ones; returns the executable."""
    torch.manual_seed(0)
    executable = compile(case.model, case.args, target=target, dynamic_shapes=case.dynamic)
    for args in [case.args, *case.others]:
        compare(executable(*args), case.model(*args), case.tolerance)
    return executable


def compare(got: Any, wanted: Any, tolerance: float) -> None:
    """Asserts that two structures of tensors agree."""
    leaves = zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(wanted), strict=True)
    for one, other in leaves:
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
