"""Many small modules with symbolic sizes: one compilation each, which runs on five sizes, 1 and 2 among them."""

from __future__ import annotations

import attentions
import images
import pytest
import reshapes
import sequences
import tensors
import torch
from case import Case
from numerics import differences

CASES = [*attentions.CASES, *reshapes.CASES, *images.CASES, *sequences.CASES, *tensors.CASES]

#: What has a loop over steps: what it carries is checked as it runs, not proved.
LOOPS = ("rnn", "lstm")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@torch.no_grad()
def test_equals_eager(case: Case):
    """The executable gives what eager gives, for all sizes; all views are factored and all casts proved."""
    torch.manual_seed(0)
    executable = case.compile()
    for values in case.runs:
        arguments = case.arguments(values)
        expected = case.model(*arguments)
        problems = differences(executable(*arguments), expected)
        assert not problems, f"{dict(zip(case.symbols, values, strict=False))}: {problems}"
    unproved = [remark for remark in executable.remarks if remark.pass_name in ("views", "shapes")]
    assert not unproved or case.name in LOOPS
