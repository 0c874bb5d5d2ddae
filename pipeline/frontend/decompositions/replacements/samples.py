"""Random choices: places by probabilities, and permutations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.random_op import random
from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten.randperm.default, aten.randperm.generator)
def randperm(n: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """randperm(n) → the places of n random numbers when they are sorted."""
    return torch.sort(random(torch.empty(n, dtype=torch.int64)))[1].to(dtype or torch.int64)


@replaces(aten.multinomial.default)
def multinomial(weights: Tensor, num_samples: Any, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """multinomial(w: [.., n], k) → [.., k] places: the k greatest of w / exponential; with replacement by inversion.

    The same numbers as torch's are not drawn, but the same distribution is.
    """
    wide = weights.double()
    is_valid = ((wide >= 0) & (wide < torch.inf)).all()
    aten._assert_async.msg(is_valid, "probability tensor contains either `inf`, `nan` or element < 0")
    is_empty = (wide == 0).all(-1).any()
    aten._assert_async.msg(is_empty.logical_not(), "invalid multinomial distribution (sum of probabilities <= 0)")
    if replacement:
        return _by_inversion(wide, num_samples)
    keys = wide / -(1 - random(torch.empty_like(wide))).log().clamp(max=-(2.0**-60))
    return keys.argmax(-1, keepdim=True) if num_samples == 1 else keys.topk(num_samples)[1]


def _by_inversion(weights: Tensor, num_samples: Any) -> Tensor:
    """How many of the running sums are not above uniform numbers below the whole sum; at most as many as that takes."""
    sums = torch.cumsum(weights, -1)
    uniform = random(torch.empty([*weights.shape[:-1], num_samples], dtype=torch.float64))
    points = uniform * sums.select(-1, -1).unsqueeze(-1)
    passed = sums.unsqueeze(-2) <= points.unsqueeze(-1)
    most = (sums < sums.select(-1, -1).unsqueeze(-1)).sum(-1, keepdim=True)
    return torch.minimum(passed.sum(-1), most)
