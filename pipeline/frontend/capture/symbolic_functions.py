"""Functions that PyTorch writes with numbers where sizes are meant, in ops that keep these symbolic.

With the numbers of the example the compiled model would take no other sizes.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import SymInt, Tensor

from pipeline.frontend.numbers.pairs import pairs

_one_hot, _kron, _take_along_dim = torch.nn.functional.one_hot, torch.kron, torch.take_along_dim
_combinations = torch.combinations


def _are_numbers(*tensors: Tensor) -> bool:
    """Whether all sizes are numbers, so that PyTorch's own function does."""
    return all(isinstance(size, int) for tensor in tensors for size in tensor.shape)


def one_hot(tensor: Tensor, num_classes: int | SymInt = -1) -> Tensor:
    """one_hot(x, n) → x == (0 .. n - 1), along a new last dim, after a check of x; torch traces numbers without it."""
    if isinstance(num_classes, int) and num_classes <= 0:
        return _one_hot(tensor, num_classes)
    torch._assert_async((tensor >= 0).all(), "one_hot: Class values must be non-negative.")
    torch._assert_async((tensor < num_classes).all(), "one_hot: Class values must be smaller than num_classes.")
    if isinstance(num_classes, int):
        return _one_hot(tensor, num_classes)
    return (tensor.unsqueeze(-1) == torch.arange(num_classes)).to(torch.int64)


def kron(input: Tensor, other: Tensor) -> Tensor:
    """kron(x, y) → x[a, 1, b, 1] * y[1, c, 1, d] as [a * c, b * d]."""
    if _are_numbers(input, other):
        return _kron(input, other)
    rank = max(input.dim(), other.dim())
    x, y = (tensor[(None,) * (rank - tensor.dim())] for tensor in (input, other))
    for dim in range(rank):
        x, y = x.unsqueeze(2 * dim + 1), y.unsqueeze(2 * dim)
    product = x * y
    for dim in range(rank):
        product = product.flatten(dim, dim + 1)
    return product


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """take_along_dim(x, i, dim) → gather(x, dim, i), both broadcast along the other dims; of all of x without a dim."""
    if _are_numbers(input, indices) or (dim is not None and input.dim() != indices.dim()):
        return _take_along_dim(input, indices, dim)
    if dim is None:
        return input.flatten().gather(0, indices.flatten())
    along = dim % input.dim()
    sizes = [torch.broadcast_shapes((one,), (two,))[0] for one, two in zip(input.shape, indices.shape, strict=True)]
    x, places = (_expanded(tensor, sizes, along) for tensor in (input, indices))
    return x.gather(along, places)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """combinations(x: [n], r) → x[all ways to take r of 0 .. n - 1]; torch selects by a mask how many nobody knows."""
    if input.dim() != 1 or r < 1:
        return _combinations(input, r, with_replacement)
    count = input.shape[0]
    if isinstance(count, int):
        ways = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        return input[torch.tensor(list(ways(range(count), r)), dtype=torch.int64).reshape(-1, r)]
    if r == 1:
        return input.unsqueeze(1)
    if r > 2:
        return _combinations(input, r, with_replacement)
    return torch.stack([input[places] for places in pairs(count, with_replacement)], 1)


def pooled_size(
    size: Any, kernel: int, pad_before: int, pad_behind: int, stride: int, dilation: int, ceil_mode: bool
) -> Any:
    """How many windows there are; with `ceil_mode` none that begins behind the data, which torch asks of the example.

    Stands for `torch._meta_registrations.pooling_output_shape_pad_lr`.
    """
    room = size + pad_before + pad_behind - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return room // stride + 1
    whole = (room + stride - 1) // stride + 1
    if stride <= dilation * (kernel - 1) + 1 - pad_behind:  # the last one begins where it has data
        return whole
    return torch.sym_min(whole, (size + pad_before + stride - 1) // stride)


def _expanded(tensor: Tensor, sizes: list[Any], but: int) -> Tensor:
    return tensor.expand(*sizes[:but], tensor.shape[but], *sizes[but + 1 :])
