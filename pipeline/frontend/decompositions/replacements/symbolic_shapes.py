"""Repeats and splits of sizes that are known as the program runs only, as views and slices."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten.repeat.default)
def repeat(x: Tensor, repeats: list[Any]) -> Tensor:
    """repeat(x: [a, b], (m, n)) → view(expand(x as [1, a, 1, b], [m, a, n, b])), which is a view of symbolic sizes."""
    if all(isinstance(size, int) for size in (*x.shape, *repeats)):
        return NotImplemented
    x = x.reshape([*[1] * (len(repeats) - x.dim()), *x.shape])
    pairs = [size for repeated, size in zip(repeats, x.shape, strict=True) for size in (repeated, size)]
    single = [size for extent in x.shape for size in (1, extent)]
    whole = [repeated * size for repeated, size in zip(repeats, x.shape, strict=True)]
    return x.reshape(single).expand(pairs).reshape(whole)


@replaces(aten.split_with_sizes.default)
def split_with_sizes(x: Tensor, split_sizes: list[Any], dim: int = 0) -> Any:
    """split_with_sizes(x, (m, n)) → x[:m], x[m:m + n], where a size is symbolic; torch-mlir wants them as numbers."""
    if all(isinstance(size, int) for size in split_sizes):
        return NotImplemented
    parts, start = [], 0
    for size in split_sizes:
        parts.append(aten.slice.Tensor(x, dim, start, start + size))
        start = start + size
    return parts
