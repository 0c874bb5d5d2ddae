"""What ops require of the sizes of their operands: at compile time, or of each call where sizes are symbolic.

Eager raises where an extreme of nothing is asked for, or a part is larger than what it is written to. torch.export asks
such questions of sizes that it takes for 2 or more, or not at all: what it captures would read and write elsewhere.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import torch
from torch import SymInt, Tensor

from pipeline.frontend.decompositions.replacements.slices import counts_from_the_end
from pipeline.frontend.numbers.assumed_sizes import nothing_is_required, require

aten = torch.ops.aten

Size: TypeAlias = "int | SymInt"

#: Pairs (a, b) of sizes with a ≤ b, from the operands of an op.
Rule = Callable[..., Iterable[tuple[Size, Size]]]


def require_sizes(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The table of decompositions, with the sizes of operands required, and otherwise what the table did."""
    requiring = {op: _requiring(op, rule, table.get(op)) for rule, ops in _RULES.items() for op in ops}
    return table | requiring | {op: nothing_is_required(table[op]) for op in _OF_ANY_SIZE if op in table}


def _requiring(op: Any, rule: Rule, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    parameters = inspect.signature(rule).parameters
    takes_all = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())

    def decomposed(*args: Any, **kwargs: Any) -> Any:
        given = {name: value for name, value in kwargs.items() if name in parameters}
        for least, most in rule(*(args if takes_all else args[: len(parameters)]), **given):
            require(least, most, str(op.overloadpacket))
        return NotImplemented if otherwise is None else otherwise(*args, **kwargs)

    return decomposed


def _one_at_least(x: Tensor, dim: int | Sequence[int] | None = None) -> Iterator[tuple[Size, Size]]:
    """Each dim that is reduced or transformed, or all of the tensor, has an element."""
    dims = [dim] if isinstance(dim, int) else dim
    if x.dim():
        yield from ((1, x.shape[axis]) for axis in dims or range(x.dim()))


def _one_at_least_for_an_extreme(
    x: Tensor, order: Any = 2, dim: int | Sequence[int] | None = None
) -> Iterator[tuple[Size, Size]]:
    if order in (float("inf"), float("-inf")):
        yield from _one_at_least(x, dim)


def _less_padding_than_data(x: Tensor, padding: Sequence[int]) -> Iterator[tuple[Size, Size]]:
    for number, amount in enumerate(padding):
        yield amount + 1, x.shape[-1 - number // 2]


def _as_much_data_as_padding(x: Tensor, padding: Sequence[int]) -> Iterator[tuple[Size, Size]]:
    for number, amount in enumerate(padding):
        yield amount, x.shape[-1 - number // 2]


def _window_fits(x: Tensor, dim: int, size: int) -> Iterator[tuple[Size, Size]]:
    if x.dim():
        yield size, x.shape[dim]


def _kernel_fits(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
) -> Iterator[tuple[Size, Size]]:
    """The padded data have a place for the kernel; what a transposed convolution gives has an element."""
    for dim, size in enumerate(weight.shape[2:]):
        window, length = _of_dim(dilation, dim) * (size - 1) + 1, x.shape[2 + dim]
        if transposed:
            whole = (length - 1) * _of_dim(stride, dim) + window + _of_dim(output_padding, dim)
            yield 2 * _of_dim(padding, dim) + 1, whole
        else:
            yield window, length + 2 * _of_dim(padding, dim)


def _pool_fits(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Iterator[tuple[Size, Size]]:
    for number in range(rank := len(kernel)):
        size = x.shape[number - rank]
        pad, step = _of_dim(padding, number), _of_dim(stride or kernel, number)
        window = _of_dim(dilation, number) * (kernel[number] - 1) + 1
        yield 1, size
        yield window, size + 2 * pad + (step - 1 if ceil_mode else 0)


def _mean_fits(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
) -> Iterator[tuple[Size, Size]]:
    return _pool_fits(x, kernel, stride, padding, (1,), ceil_mode)


def _of_dim(amounts: Sequence[int], dim: int) -> int:
    """One amount stands for all dims."""
    return amounts[dim] if dim < len(amounts) else amounts[-1]


def _planes_have_pixels(x: Tensor, output_size: Sequence[Size]) -> Iterator[tuple[Size, Size]]:
    yield from ((1, size) for size in x.shape[x.dim() - len(output_size) :])


def _pixels_of_size(x: Tensor, output_size: Sequence[Size]) -> Iterator[tuple[Size, Size]]:
    yield from ((1, size) for size in (*x.shape[2:], *output_size))


def _pixels_of_size_or_scale(
    x: Tensor, output_size: Sequence[Size] | None, *options: Any
) -> Iterator[tuple[Size, Size]]:
    """Of the `vec` overloads, whose last operand has the scales."""
    if output_size is not None:
        yield from _pixels_of_size(x, output_size)
        return
    for size, scale in zip(x.shape[2:], options[-1], strict=True):
        yield math.ceil(1 / scale), size  # floor(size * scale) is 1 or more


def _numbers_of_half(x: Tensor, dim: Sequence[int], normalization: int, last: Size) -> Iterator[tuple[Size, Size]]:
    yield 1, last
    yield from _one_at_least(x, dim)


def _added_as_it_is(x: Tensor, a: Tensor, b: Tensor) -> Iterator[tuple[Size, Size]]:
    """What a product is added to has its sizes, or 1, or fewer dims; torch repeats the product, too."""
    sizes = [*a.shape[:-1], *b.shape[a.dim() - 1 :]]
    yield x.dim(), len(sizes)
    for size, wanted in zip(reversed(x.shape), reversed(sizes), strict=False):
        if isinstance(size, int) and size != 1 and isinstance(wanted, int):
            yield size, wanted
            yield wanted, size


def _part_fits(
    x: Tensor, part: Tensor, dim: int = 0, start: Size | None = None, end: Size | None = None, step: Size = 1
) -> Iterator[tuple[Size, Size]]:
    """A slice that is written to is as long as what is written; sizes count from that end which they count from now."""
    size = x.shape[dim]
    for index in (start, end):
        if isinstance(index, SymInt):
            yield (1, -index) if counts_from_the_end(index) else (0, index)
    first, last = _place(0 if start is None else start, size), _place(size if end is None else end, size)
    length = (torch.sym_max(last - first, 0) + step - 1) // step
    yield length, part.shape[dim]
    yield part.shape[dim], length


def _place(index: Size, size: Size) -> Size:
    """An index of a slice, from the front and inside."""
    return torch.sym_max(index + size, 0) if counts_from_the_end(index) else torch.sym_min(index, size)


def _place_exists(x: Tensor, part: Tensor, dim: int, index: Size) -> Iterator[tuple[Size, Size]]:
    size = x.shape[dim]
    yield (index + 1, size) if not isinstance(index, int) or index >= 0 else (-index, size)


_RULES: dict[Rule, tuple[Any, ...]] = {
    _one_at_least: (
        *(aten.amax.default, aten.amin.default, aten.aminmax.default, aten.argmax.default, aten.argmin.default),
        *(aten.max.default, aten.max.dim, aten.min.default, aten.min.dim),
        *(aten._fft_c2c.default, aten._fft_r2c.default),
    ),
    _one_at_least_for_an_extreme: (aten.linalg_vector_norm.default,),
    _less_padding_than_data: (
        *(aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default),
    ),
    _as_much_data_as_padding: (aten._pad_circular.default,),
    _window_fits: (aten.unfold.default,),
    _kernel_fits: (aten.convolution.default,),
    _pool_fits: (aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default),
    _mean_fits: (aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default),
    _planes_have_pixels: (
        *(aten.adaptive_avg_pool1d.default, aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default),
        *(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default),
    ),
    _pixels_of_size: (
        *(aten.upsample_nearest1d.default, aten.upsample_nearest2d.default, aten.upsample_nearest3d.default),
        *(aten._upsample_nearest_exact1d.default, aten._upsample_nearest_exact2d.default),
        *(aten._upsample_nearest_exact3d.default, aten.upsample_linear1d.default, aten.upsample_bilinear2d.default),
        *(aten.upsample_bicubic2d.default, aten.upsample_trilinear3d.default),
    ),
    _pixels_of_size_or_scale: (
        *(aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec),
        *(aten._upsample_nearest_exact1d.vec, aten._upsample_nearest_exact2d.vec, aten._upsample_nearest_exact3d.vec),
        *(aten.upsample_linear1d.vec, aten.upsample_bilinear2d.vec, aten.upsample_bicubic2d.vec),
        *(aten.upsample_trilinear3d.vec,),
    ),
    _numbers_of_half: (aten._fft_c2r.default,),
    _added_as_it_is: (aten.addmm.default, aten.addmv.default, aten.baddbmm.default),
    _part_fits: (aten.slice_scatter.default,),
    _place_exists: (aten.select_scatter.default,),
}

#: What is taken apart to ops that have rules here, and takes what they do not.
_OF_ANY_SIZE = (aten.logsumexp.default, aten._log_softmax.default, aten._softmax.default)
