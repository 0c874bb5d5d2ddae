"""`pipeline.random`, the one source of random numbers: what torch's random ops are taken apart to, see `replacements`.

pipeline.random(like) → independent elements in the shape of `like`, by its dtype: float32 and float64 in [0, 1) with
all bits of the mantissa, int64 with 64 random bits. What `like` contains does not matter.
"""

from __future__ import annotations

from typing import Any

import torch

#: torch tags these as random for the dropout that they may have on other devices.
_ATTENTION = "aten::_scaled_dot_product"


def draws_numbers(op: Any) -> bool:
    """Whether an op draws random numbers, be it torch's or `pipeline.random`."""
    if not isinstance(op, torch._ops.OpOverload) or op._schema.name.startswith(_ATTENTION):
        return False
    return torch.Tag.nondeterministic_seeded in op.tags


@torch.library.custom_op("pipeline::random", mutates_args=(), tags=torch.Tag.nondeterministic_seeded)
def random(like: torch.Tensor) -> torch.Tensor:
    """See the module's docstring; in eager mode it draws from torch's generator."""
    if like.is_floating_point():
        return torch.rand_like(like)
    return torch.empty_like(like).random_(-(2**63), None)


@random.register_fake
def _(like: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(like, memory_format=torch.contiguous_format)
