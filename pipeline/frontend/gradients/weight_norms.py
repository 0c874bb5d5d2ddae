"""Gradients of weights that are a direction of a length, v / |v| * g, with a norm along all dims but one."""

from __future__ import annotations

from torch import Tensor


def weight_norm_backward(
    gradient: Tensor, direction: Tensor, length: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """_weight_norm_interface_backward(w', v, g, |v|) → (w' - v (w' · v) / |v|^2) g / |v|, (w' · v) / |v|.

    As in eager mode's kernels, what is computed of 16 bits is computed in the norms' dtype.
    """
    dims = [axis for axis in range(direction.dim()) if axis != dim]
    by_weight, v = gradient.to(norms.dtype), direction.to(norms.dtype)
    along = (by_weight * v).sum(dims, keepdim=True) / norms
    by_direction = (by_weight - v * (along / norms)) * (length.to(norms.dtype) / norms)
    return by_direction.to(direction.dtype), along.to(length.dtype)
