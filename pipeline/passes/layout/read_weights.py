"""Weights that products read as a whole, or one part in each round of a loop, as layers of experts do: w[i, :, :]."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.const_expr import ConstExprs
from pipeline.ir.element_types import element_type
from pipeline.ir.indexing_maps import is_permutation, loop_of
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.ir.rewriting import build_elementwise
from pipeline.mlir import arith, defining_op, ir, tensor
from pipeline.passes.layout.dequantization import Source


@dataclass(frozen=True)
class ReadWeight:
    """A weight that an op reads.

    Attributes:
        source: what is computed from weights alone, and where it is read: along a loop more than the op has, which is
            the last one, if it is read in one place of a dim.
        index: that place; None if all of it is read.
        is_moved: whether the part is extended, transposed or copied on the way.
    """

    source: Source
    index: ir.Value | None = None
    is_moved: bool = False

    def widened(self) -> Source:
        """The source in f32, at the insertion point."""
        value, wide = self.source.value, ir.F32Type.get()
        if element_type(value) == wide:
            return self.source
        made = build_elementwise(value, wide, lambda element: arith.ExtFOp(wide, element).result)
        return Source(made, self.source.places)

    def part(self, whole: Source, loops: int) -> Source:
        """What the op reads of a tensor that lies along the same loops, at the insertion point."""
        dims = [dim for dim, place in enumerate(whole.places) if loop_of(place) == loops]
        if not dims:
            return whole
        (dim,) = dims
        kind = ir.RankedTensorType(whole.value.type)
        offsets, sizes = [0] * kind.rank, list(kind.shape)
        offsets[dim], sizes[dim] = ir.ShapedType.get_dynamic_stride_or_offset(), 1
        cut = ir.RankedTensorType.get([*kind.shape[:dim], *kind.shape[dim + 1 :]], kind.element_type)
        taken = tensor.ExtractSliceOp(cut, whole.value, [self.index], [], [], offsets, sizes, [1] * kind.rank)
        return Source(taken.result, (*whole.places[:dim], *whole.places[dim + 1 :]))


def read_weight(op: LinalgOp, number: int, weights: ConstExprs) -> ReadWeight | None:
    """The weight that an op reads as an operand, which may be extended and transposed on the way; None for data."""
    value, places = op.operands[number], list(op.maps[number].results)
    if value in weights:
        return ReadWeight(Source(value, tuple(places)))
    producer = defining_op(value)
    while producer is not None and producer.name != "tensor.extract_slice":
        dims = _moved_dims(producer)
        if dims is None:
            return None
        places, producer = [places[dim] for dim in dims], defining_op(producer.operands[0])
    dim = _only_dim(producer) if producer is not None and producer.operands[0] in weights else None
    if producer is None or dim is None:
        return None
    whole, index = list(producer.operands)
    places.insert(dim, ir.AffineDimExpr.get(op.loops))
    return ReadWeight(Source(whole, tuple(places)), index, is_moved=producer != defining_op(value))


def _moved_dims(op: ir.Operation) -> list[int] | None:
    """For each dim of what an op extends, transposes or copies, which one of its result it is; None for other ops."""
    view = any_structured(op)
    if view is None or len(op.results) != 1 or view.inputs != 1 or not view.is_elementwise:
        return None
    value, cast = view.yielded[0], defining_op(view.yielded[0])
    if cast is not None and cast.name == "arith.extf":
        value = cast.operands[0]
    if value != view.body.arguments[0] or not all(map(is_permutation, view.maps)):
        return None
    loops = [loop_of(place) for place in view.maps[1].results]
    return [loops.index(loop_of(place)) for place in view.maps[0].results]


def _only_dim(cut: ir.Operation) -> int | None:
    """The dim of which a tensor.extract_slice takes one place, that is computed; None if it takes another part."""
    whole, part = (ir.RankedTensorType(value.type) for value in (cut.operands[0], cut.results[0]))
    names = ("static_offsets", "static_sizes", "static_strides")
    offsets, sizes, strides = (list(ir.DenseI64ArrayAttr(cut.attributes[name])) for name in names)
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    dims = [dim for dim, offset in enumerate(offsets) if offset == unknown]
    if len(dims) != 1 or any(offset not in (0, unknown) for offset in offsets) or len(cut.operands) != 2:
        return None
    (dim,) = dims
    wanted = [*whole.shape[:dim], 1, *whole.shape[dim + 1 :]]
    is_one_place = sizes == wanted and set(strides) == {1} and whole.has_static_shape
    return dim if is_one_place and list(part.shape) == [*wanted[:dim], *wanted[dim + 1 :]] else None
