"""Indices that tell the groups of rows, and of which some come more often than others."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any


def uneven_indices(tensors: Mapping[str, Any]) -> list[str]:
    """The names of lines of integers among a torch model's tensors that have some number more often than another one.

    None where there is no matrix of integers, as quantized weights are, whose rows they might tell the groups of.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    kinds = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
    integers = {name: tensor for name, tensor in tensors.items() if getattr(tensor, "dtype", None) in kinds}
    if not any(tensor.dim() > 1 for tensor in integers.values()):
        return []
    lines = {name: tensor for name, tensor in integers.items() if tensor.dim() == 1 and _is_there(torch, tensor)}
    return sorted(name for name, tensor in lines.items() if _is_uneven(torch, tensor))


def _is_there(torch: Any, tensor: Any) -> bool:
    """Whether a tensor's elements lie in memory that was not freed."""
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    return plain and tensor.device.type == "cpu" and tensor.data_ptr() != 0


def _is_uneven(torch: Any, numbers: Any) -> bool:
    counts = torch.unique(numbers.detach(), return_counts=True)[1]
    return len(counts) > 0 and bool((counts != counts[0]).any())
