"""torchao's `dequantize_affine`, with what it says of the range of integers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch

#: The module that registers the op, if anybody has asked for it.
_MODULE = "torchao.quantization.quant_primitives"

#: Its function that is the arithmetic on tensors alone.
_ARITHMETIC = "_dequantize_affine_no_dtype_check"

#: Ranges of four bits, with a sign and without.
_FOUR_BITS = ((-8, 7), (0, 15))


def is_loaded() -> bool:
    """Whether the op is there, as we know it: importing what registers it is left to those who use it."""
    return _ARITHMETIC in vars(sys.modules.get(_MODULE, sys))


def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """The decomposition of the op, if it is there."""
    return {torch.ops.torchao.dequantize_affine.default: dequantize_affine} if is_loaded() else {}


def dequantize_affine(
    q: torch.Tensor,
    block_size: list[int],
    scale: torch.Tensor,
    zero_point: torch.Tensor | None,
    input_dtype: torch.dtype,
    quant_min: float | None = None,
    quant_max: float | None = None,
    output_dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """The arithmetic of the op. Numbers of four bits that are held in bytes are checked, and then masked.

    The bounds are the only sign that bytes hold numbers of four bits, and torchao does not look at them. Graphs with
    gradients lose the check where they are parted, so that nothing is masked there.
    """
    least, most = quant_min, quant_max
    bytes_ = q.dtype in (torch.int8, torch.uint8)
    if bytes_ and least is not None and most is not None and not torch.is_grad_enabled():
        q = _checked(q, least, most)
    result: torch.Tensor = vars(sys.modules[_MODULE])[_ARITHMETIC](
        q, block_size, scale, zero_point, least, most, output_dtype
    )
    return result


def _checked(q: torch.Tensor, least: float, most: float) -> torch.Tensor:
    """Bytes that are known to be in a range of four bits; as they are, if the range is larger."""
    offset = next((-first for first, last in _FOUR_BITS if first <= least and most <= last), None)
    if offset is None:
        return q
    message = f"an integer that is dequantized is not in its range, {least} to {most}"
    torch.ops.aten._assert_async.msg(((q >= least) & (q <= most)).all(), message)
    return ((q + offset) & 15) - offset
