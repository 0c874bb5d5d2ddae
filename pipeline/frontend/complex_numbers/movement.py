"""What moves elements, and what is linear in them: the same op on the real and on the imaginary parts."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

from pipeline.frontend.complex_numbers.casts import cast
from pipeline.frontend.complex_numbers.table import (
    RULES,
    Rule,
    aten,
    common_dtype,
    join,
    prims,
    real_dtype,
    rule,
    split,
)

#: A complex operand becomes one of its parts, the other operands (indices, masks, sizes) stay.
_BY_PARTS = (
    aten.alias.default,
    aten.col2im.default,
    aten.detach.default,
    aten.diag_embed.default,
    aten.diagonal.default,
    aten.diagonal_backward.default,
    aten.diagonal_scatter.default,
    aten.embedding.default,
    aten.expand.default,
    aten.flip.default,
    aten.gather.default,
    aten.im2col.default,
    aten.index.Tensor,
    aten.index_add.default,
    aten.index_copy.default,
    aten.index_put.default,
    aten.index_select.default,
    aten.masked_scatter.default,
    aten.masked_scatter_backward.default,
    aten.permute.default,
    aten.put.default,
    aten.reflection_pad1d.default,
    aten.reflection_pad1d_backward.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad2d_backward.default,
    aten.reflection_pad3d_backward.default,
    aten.repeat.default,
    aten.replication_pad1d.default,
    aten.replication_pad1d_backward.default,
    aten.replication_pad2d.default,
    aten.replication_pad2d_backward.default,
    aten.replication_pad3d_backward.default,
    aten.roll.default,
    aten.rot90.default,
    aten.scatter.src,
    aten.scatter_add.default,
    aten.select.int,
    aten.select_backward.default,
    aten.select_scatter.default,
    aten.slice.Tensor,
    aten.slice_backward.default,
    aten.slice_scatter.default,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.t.default,
    aten.take.default,
    aten.trace.default,
    aten.transpose.int,
    aten.tril.default,
    aten.triu.default,
    aten.unbind.int,
    aten.unfold.default,
    aten.unfold_backward.default,
    aten.unsqueeze.default,
    prims.collapse.default,
    prims.split_dim.default,
    prims.view_of.default,
)

#: Likewise, by another op that takes any strides: those of the parts need not be those that the model sees.
_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.view_copy.default)


#: What the arguments are called whose numbers go into the first one; they are cast to its dtype, as torch does.
_VALUES = {"src", "source", "values"}


def _by_parts(op: Any) -> Rule:
    def decomposed(first: Any, *others: Any, **kwargs: Any) -> Any:
        args = (first, *_cast_values(op, first, others))
        if isinstance(first, Tensor) and not first.is_complex():
            return op(*args, **kwargs)
        results = [op(*_part(number, args), **_part(number, kwargs)) for number in (0, 1)]
        if isinstance(results[0], (list, tuple)):
            return type(results[0])(join(re, im) for re, im in zip(*results, strict=True))
        return join(*results)

    decomposed.__doc__ = f"{op}(z) -> of the parts."
    return decomposed


def _cast_values(op: Any, first: Any, others: tuple[Any, ...]) -> list[Any]:
    names = [argument.name for argument in op._schema.arguments[1:]] if isinstance(op, torch._ops.OpOverload) else []
    return [
        cast(operand, first.dtype) if name in _VALUES and operand.dtype != first.dtype else operand
        for operand, name in zip(others, [*names, *[""] * len(others)], strict=False)
    ]


def _part(number: int, arguments: Any) -> Any:
    return tree_map(
        lambda leaf: split(leaf)[number] if isinstance(leaf, Tensor) and leaf.is_complex() else leaf, arguments
    )


RULES.update({op: _by_parts(op) for op in _BY_PARTS})
for _name in (
    "alias",
    "detach",
    "diagonal",
    "expand",
    "permute",
    "select",
    "slice",
    "squeeze",
    "t",
    "transpose",
    "unsqueeze",
):
    for _overload in getattr(aten, f"{_name}_copy").overloads():
        if "out" not in _overload:
            _copy = getattr(getattr(aten, f"{_name}_copy"), _overload)
            RULES[_copy] = _by_parts(_copy)
RULES.update(dict.fromkeys(_VIEWS, _by_parts(lambda part, shape: part.reshape(shape))))


@rule(aten.lift_fresh_copy.default)
def lift_fresh_copy(z: Tensor) -> Tensor:
    """lift_fresh_copy(z) -> of the parts of a tensor that is made of numbers in the model's text.

    That may be no fake tensor yet, which a trace of fake tensors takes apart nowhere else.
    """
    with contextlib.nullcontext() if isinstance(z, FakeTensor) else _disable_current_modes():
        parts = [part.contiguous() for part in split(z)]
    return join(*map(aten.lift_fresh_copy.default, parts))


@rule(aten.clone.default)
def clone(z: Tensor, *, memory_format: torch.memory_format | None = None) -> Any:
    """clone(z) -> of the parts; see `split` for conjugated views."""
    if z.is_conj():
        return NotImplemented
    kept = torch.preserve_format if memory_format is None else memory_format
    return join(*(part.clone(memory_format=kept) for part in split(z)))


@rule(aten.narrow_copy.default)
def narrow_copy(z: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    """narrow_copy(z) -> narrow(z)."""
    return z.narrow(dim, start, length).clone()


@rule(aten.as_strided.default)
def as_strided(z: Tensor, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """as_strided(z) of row-major z -> of the parts."""
    if not z.is_contiguous() or z.storage_offset():
        return NotImplemented
    parts = (part.clone(memory_format=torch.contiguous_format) for part in split(z))
    return join(*(aten.as_strided.default(part, size, stride, storage_offset) for part in parts))


@rule(aten.cat.default)
def cat(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """cat(tensors) -> of the parts, real tensors among them."""
    return _of_many(torch.cat, tensors, dim)


@rule(aten.stack.default)
def stack(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """stack(tensors) -> of the parts, real tensors among them."""
    return _of_many(torch.stack, tensors, dim)


def _of_many(op: Any, tensors: list[Tensor], dim: int) -> Tensor:
    dtype = real_dtype(common_dtype(tensors))
    parts = [split(tensor) for tensor in tensors]
    return join(*(op([part[number].to(dtype) for part in parts], dim) for number in (0, 1)))


@rule(aten.constant_pad_nd.default)
def constant_pad_nd(z: Tensor, pad: list[int], value: Any = 0) -> Tensor:
    """constant_pad_nd(z, pad, value) -> of the parts, with those of the value."""
    return join(
        *(aten.constant_pad_nd.default(part, pad, number) for part, number in zip(split(z), split(value), strict=True))
    )


@rule(aten.scatter.value)
def scatter_value(z: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """scatter(z, dim, index, value) -> of the parts, with those of the value."""
    parts = zip(split(z), split(value), strict=True)
    return join(*(aten.scatter.value(part, dim, index, number) for part, number in parts))


@rule(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(z: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """index_fill(z, dim, index, value) -> of the parts, with those of the value."""
    parts = zip(split(z), split(value), strict=True)
    return join(*(torch.index_fill(part, dim, index, number) for part, number in parts))
