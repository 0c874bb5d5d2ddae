"""Every model of the zoo, compiled, gives PyTorch's results.

Measured as `compare.relative_error` says: for each output tensor the largest difference from eager in parts of the
output's largest magnitude, at most 1e-4; the outputs' structure, classes, dtypes and shapes are eager's.
"""

from __future__ import annotations

import pytest
import torch
from compare import TOLERANCE, relative_error
from zoo import ZOO, Entry

import pipeline


@pytest.mark.parametrize("entry", ZOO.values(), ids=ZOO)
def test_gives_eagers_results(entry: Entry) -> None:
    model, args, kwargs = entry.create()
    executable = pipeline.compile(model, args, kwargs, dynamic_shapes=entry.dynamic_shapes)
    for positional, keywords in [(args, kwargs), *(make() for make in entry.more_arguments)]:
        with torch.no_grad():
            want = model(*positional, **keywords)
        assert relative_error(executable(*positional, **keywords), want) <= TOLERANCE


@pytest.mark.parametrize("entry", ZOO.values(), ids=ZOO)
def test_outputs_are_neither_tiny_nor_huge(entry: Entry) -> None:
    """Otherwise a relative error would say little."""
    model, args, kwargs = entry.create()
    with torch.no_grad():
        leaves = torch.utils._pytree.tree_leaves(model(*args, **kwargs))
    for leaf in leaves:
        assert 0.05 <= leaf.abs().max() <= 20
