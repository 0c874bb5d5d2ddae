"""Views of a buffer as places in a row of elements: sizes, offset and strides as values, and those of views of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pipeline.ir.constants import as_index
from pipeline.ir.reshapes import reassociation
from pipeline.mlir import arith, constant_integer, ir

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


@dataclass(frozen=True)
class StridedView:
    """Element [i, j, ..] is element offset + i * strides[0] + j * strides[1] + .. of the row.

    Attributes:
        row: the buffer, one-dimensional.
        sizes, offset, strides: values of type index.
    """

    row: ir.Value
    sizes: tuple[ir.Value, ...]
    offset: ir.Value
    strides: tuple[ir.Value, ...]

    def place(self, indices: Sequence[ir.Value]) -> ir.Value:
        """The place of an element in the row."""
        terms = (arith.MulIOp(*pair).result for pair in zip(indices, self.strides, strict=True))
        return reduce(lambda place, term: arith.AddIOp(place, term).result, terms, self.offset)


def row_major(sizes: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
    """The strides of elements that lie one behind the other."""
    strides: list[ir.Value] = []
    stride = as_index(1)
    for size in reversed(sizes):
        strides.insert(0, stride)
        stride = arith.MulIOp(stride, size).result
    return tuple(strides)


def _cast(view: StridedView, op: ir.Operation) -> StridedView:
    return view


def _subview(view: StridedView, op: ir.Operation) -> StridedView:
    """Dims of size 1 may be left out of the result."""
    dynamic = iter(list(op.operands)[1:])
    offsets, sizes, steps = (list(_mixed(op, f"static_{name}", dynamic)) for name in ("offsets", "sizes", "strides"))
    known = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    kept = _kept(known, list(ir.MemRefType(op.results[0].type).shape))
    return StridedView(
        view.row,
        tuple(sizes[dim] for dim in kept),
        view.place(offsets),
        tuple(arith.MulIOp(view.strides[dim], steps[dim]).result for dim in kept),
    )


def _expand(view: StridedView, op: ir.Operation) -> StridedView:
    sizes = tuple(_mixed(op, "static_output_shape", iter(list(op.operands)[1:])))
    strides: list[ir.Value] = []
    for stride, group in zip(view.strides, reassociation(op), strict=True):
        inner = row_major([sizes[dim] for dim in group])
        strides += [arith.MulIOp(stride, step).result for step in inner]
    return replace(view, sizes=sizes, strides=tuple(strides))


def _collapse(view: StridedView, op: ir.Operation) -> StridedView:
    """Elements of merged dims lie as far apart as those of the innermost dim that has several."""
    sizes, strides = [], []
    for group in reassociation(op):
        sizes.append(reduce(lambda a, b: arith.MulIOp(a, b).result, [view.sizes[dim] for dim in group]))
        strides.append(
            view.strides[next((dim for dim in reversed(group) if constant_integer(view.sizes[dim]) != 1), group[-1])]
        )
    return replace(view, sizes=tuple(sizes), strides=tuple(strides))


def _reinterpret(view: StridedView, op: ir.Operation) -> StridedView:
    """Places are those of the row, whatever the view is that is taken."""
    dynamic = iter(list(op.operands)[1:])
    (offset,), sizes, strides = (
        tuple(_mixed(op, f"static_{name}", dynamic)) for name in ("offsets", "sizes", "strides")
    )
    return StridedView(view.row, sizes, offset, strides)


#: What a view of a view is, by the op that makes it.
VIEWS: Mapping[str, Callable[[StridedView, ir.Operation], StridedView]] = {
    "memref.cast": _cast,
    "memref.subview": _subview,
    "memref.expand_shape": _expand,
    "memref.collapse_shape": _collapse,
    "memref.reinterpret_cast": _reinterpret,
}


def _mixed(op: ir.Operation, name: str, dynamic: Iterator[ir.Value]) -> Iterator[ir.Value]:
    """The numbers of an attribute as values, those that are not known from the operands."""
    for number in ir.DenseI64ArrayAttr(op.attributes[name]):
        yield next(dynamic) if number in (_DYNAMIC, _DYNAMIC_STRIDE) else as_index(number)


def _kept(sizes: Sequence[int], shape: Sequence[int]) -> list[int]:
    """The dims of a part that are dims of the result; the others are of size 1."""
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        if len(kept) < len(shape) and size == shape[len(kept)]:
            kept.append(dim)
    return kept
