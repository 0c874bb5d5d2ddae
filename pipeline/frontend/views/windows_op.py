"""`pipeline.windows`: sliding windows along one dim, as `Tensor.unfold` gives them, in memory of their own.

pipeline.windows(x, dim, size, step): [.., n, ..] → [.., (n - size) // step + 1, .., size], where element k of window w
is x[.., w * step + k, ..].
"""

from __future__ import annotations

import torch
from torch import Tensor

_SCHEMA = "(Tensor x, int dim, int size, int step) -> Tensor"


@torch.library.custom_op("pipeline::windows", mutates_args=(), schema=_SCHEMA)
def windows(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """See the module's docstring."""
    return x.unfold(dim, size, step).clone()


@windows.register_fake
def _(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    count = (x.shape[dim] - size) // step + 1
    return x.new_empty([*x.shape[:dim], count, *x.shape[dim + 1 :], size])
