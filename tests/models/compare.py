"""How results are compared with PyTorch's."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

#: The largest relative error that counts as PyTorch's numbers.
TOLERANCE = 1e-4


def relative_error(got: Any, want: Any) -> float:
    """The largest error of any output, in parts of that output's largest magnitude.

    For each tensor among the leaves: max |got - want| / max |want|, in float64; where `want` is all zeros, max |got|;
    where it has no elements, 0. The largest of these is returned.

    Raises AssertionError unless both have the same structure (the same classes, None in the same places), the same
    Python values, and tensors of the same dtypes and shapes, with non-finite elements in the same places.
    """
    got_leaves, got_structure = pytree.tree_flatten(got)
    want_leaves, want_structure = pytree.tree_flatten(want)
    assert type(got) is type(want)
    assert got_structure == want_structure
    return max((_leaf_error(a, b) for a, b in zip(got_leaves, want_leaves, strict=True)), default=0.0)


def _leaf_error(got: Any, want: Any) -> float:
    if not isinstance(want, torch.Tensor):
        assert type(got) is type(want)
        assert got == want
        return 0.0
    assert isinstance(got, torch.Tensor)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    finite = want.isfinite()
    assert torch.equal(got.isfinite(), finite)
    assert torch.equal(got[~finite].nan_to_num(), want[~finite].nan_to_num())
    if not finite.any():
        return 0.0
    got, want = got.detach()[finite].double(), want.detach()[finite].double()
    return float((got - want).abs().max() / (want.abs().max() or 1))
