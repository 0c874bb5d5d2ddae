"""Parts of tensors: where a tile of an op's loops lies in its operands, and slices of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.ir.constants import as_index
from pipeline.mlir import ir, tensor

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class Span:
    """A part of a loop: where it starts, and how long it is; None for the whole of a loop of unknown length."""

    offset: ir.Value | int
    size: int


@dataclass(frozen=True)
class TileSlice:
    """A part of a tensor: for each dim an offset and a size; None for the whole of a dim of unknown size."""

    spans: tuple[Span | None, ...]

    @property
    def key(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(-1 if span is None else span.size for span in self.spans)


#: The part of a tensor at a place.
TakePart = Callable[[ir.Value, TileSlice], ir.Value]


def place_in(kind: ir.Type, indexing: ir.AffineMap, spans: dict[int, Span]) -> TileSlice:
    """The part of an operand that an op reads or writes for a tile."""
    shaped = ir.ShapedType(kind)
    found: list[Span | None] = []
    for dim, expression in enumerate(indexing.results):
        loop = ir.AffineDimExpr(expression).position if isinstance(expression, ir.AffineDimExpr) else None
        if loop in spans:
            found.append(spans[loop])
        else:
            found.append(None if shaped.is_dynamic_dim(dim) else Span(0, shaped.get_dim_size(dim)))
    return TileSlice(tuple(found))


def sizes_of(whole: ir.Value, place: TileSlice) -> list[ir.Value | int]:
    """The sizes of a scratch tensor for a part of a tensor."""
    return [
        tensor.DimOp(whole, as_index(dim)).result if span is None else span.size for dim, span in enumerate(place.spans)
    ]


def _slice_operands(source: ir.Value, place: TileSlice) -> tuple[list[ir.Value], list[ir.Value], list[int], list[int]]:
    """(dynamic offsets, dynamic sizes, static offsets, static sizes) of a slice."""
    offsets, sizes, fixed_offsets, fixed_sizes = [], [], [], []
    for dim, span in enumerate(place.spans):
        if span is None:
            sizes.append(tensor.DimOp(source, as_index(dim)).result)
            fixed_sizes.append(_DYNAMIC)
            fixed_offsets.append(0)
            continue
        fixed_sizes.append(span.size)
        if isinstance(span.offset, int):
            fixed_offsets.append(span.offset)
        else:
            offsets.append(span.offset)
            fixed_offsets.append(_DYNAMIC)
    return offsets, sizes, fixed_offsets, fixed_sizes


def _is_whole(source: ir.Value, place: TileSlice) -> bool:
    kind = ir.ShapedType(source.type)
    return all(
        span is None or (span.offset == 0 and not kind.is_dynamic_dim(dim) and kind.get_dim_size(dim) == span.size)
        for dim, span in enumerate(place.spans)
    )


def extract(source: ir.Value, place: TileSlice) -> ir.Value:
    """A part of a tensor; the tensor itself where that is all of it."""
    if _is_whole(source, place):
        return source
    offsets, sizes, fixed_offsets, fixed_sizes = _slice_operands(source, place)
    kind = ir.RankedTensorType(source.type)
    return tensor.ExtractSliceOp(
        ir.RankedTensorType.get(fixed_sizes, kind.element_type),
        source,
        offsets,
        sizes,
        [],
        fixed_offsets,
        fixed_sizes,
        [1] * kind.rank,
    ).result


def insert(tile: ir.Value, target: ir.Value, place: TileSlice) -> ir.Value:
    """A tensor with a part of it replaced."""
    if _is_whole(target, place):
        return tile
    offsets, sizes, fixed_offsets, fixed_sizes = _slice_operands(target, place)
    return tensor.InsertSliceOp(
        tile, target, offsets, sizes, [], fixed_offsets, fixed_sizes, [1] * len(fixed_sizes)
    ).result
