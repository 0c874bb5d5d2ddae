"""Panels of weights: how a weight lies in them, and the kernels of @prepare that put it there; for pack-weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.mlir import arith, func, ir, linalg, tensor
from pipeline.passes.rewriting import build_generic


class PanelLayout:
    """How a weight is packed: its columns cut into panels, then its dims put in another order.

    Attributes:
        kind: the type of the weight.
        panels: how many panels there are; 1 where the columns are not cut.
        columns: how many columns one has.
        missing: how many columns of the last panel the weight does not have; they are 0.
        order: the dims of the weight with its columns cut, as they follow each other in the packed one.
    """

    def __init__(self, kind: ir.RankedTensorType, sums: list[bool], columns: int):
        """`sums` says of each dim of the weight whether the product sums over it; `columns` is a panel's number."""
        self.kind = kind
        given = kind.shape[-1]
        cut = given > columns
        self.panels = -(-given // columns) if cut else 1
        self.columns = columns if cut else given
        self.missing = self.panels * self.columns - given
        sums = [*sums[:-1], False, False] if cut else sums
        inner = len(sums) - 1
        self.order = (
            [dim for dim in range(inner) if not sums[dim]] + [dim for dim in range(inner) if sums[dim]] + [inner]
        )

    @property
    def cut(self) -> list[int]:
        """The sizes of the weight with its columns cut."""
        *outer, last = self.kind.shape
        return [*outer, self.panels, self.columns] if self.panels > 1 else [*outer, last]

    @property
    def packed(self) -> ir.RankedTensorType:
        """The type of the packed weight."""
        return ir.RankedTensorType.get([self.cut[dim] for dim in self.order], self.kind.element_type)

    def places(self, indices: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
        """Where the element of the weight with some indices is in the packed one."""
        *outer, column = indices
        if self.panels > 1:
            panel, rest = ir.AffineExpr.get_floor_div(column, self.columns), ir.AffineExpr.get_mod(column, self.columns)
            indices = [*outer, panel, rest]
        return [indices[dim] for dim in self.order]


class Packing:
    """The kernels of @prepare that pack: one for each type and layout."""

    def __init__(self, module: ir.Operation, taken: set[str]):
        self._module = module
        self._taken = taken
        self._known: dict[tuple[str, str, tuple[int, ...]], str] = {}

    def kernel(self, layout: PanelLayout) -> str:
        """The name of the kernel(weight, destination) that packs."""
        key = (str(layout.kind), str(layout.packed), tuple(layout.order))
        if key not in self._known:
            self._known[key] = self._create(layout)
        return self._known[key]

    def _create(self, layout: PanelLayout) -> str:
        name = next(name for count in range(len(self._taken) + 1) if (name := f"pack_{count}") not in self._taken)
        self._taken.add(name)
        kind = ir.FunctionType.get([layout.kind, layout.packed], [layout.packed])
        words = {
            "kernel": ir.StringAttr.get("elementwise"),
            "ops": _strings("linalg.generic"),
            "words": _strings("pack"),
        }
        with self._module.location, ir.InsertionPoint.at_block_begin(self._module.regions[0].blocks[0]):
            made = func.FuncOp(name, kind, visibility="private")
            for key, value in words.items():
                made.attributes[f"pipeline.{key}"] = value
            with ir.InsertionPoint(made.add_entry_block()):
                func.ReturnOp([_packed(made.arguments[0], made.arguments[1], layout)])
        return name


def _strings(word: str) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(word)])


def _packed(source: ir.Value, out: ir.Value, layout: PanelLayout) -> ir.Value:
    """The packed weight in the memory of `out`: whole panels, then the one that the last columns do not fill."""
    if not layout.missing:
        return _panels(source, out, layout)
    whole = layout.panels - 1
    first = Slice(list(layout.kind.shape), -1, 0, whole * layout.columns)
    rest = Slice(list(layout.kind.shape), -1, whole * layout.columns, layout.columns - layout.missing)
    panel = layout.order.index(len(layout.order) - 2)
    sizes = list(layout.packed.shape)
    out = Slice(sizes, panel, 0, whole).update(out, lambda part: _panels(first.of(source), part, layout))
    zero = arith.ConstantOp(layout.kind.element_type, _zero(layout.kind.element_type)).result
    filled, last = Slice(sizes, panel, whole, 1), list(sizes)
    last[panel] = 1
    columns = Slice(last, -1, 0, layout.columns - layout.missing)
    out = filled.update(out, lambda part: linalg.fill(zero, outs=[part]))
    return filled.update(out, lambda part: columns.update(part, lambda inner: _panels(rest.of(source), inner, layout)))


def _panels(source: ir.Value, out: ir.Value, layout: PanelLayout) -> ir.Value:
    """Some columns of the weight, as panels in `out`."""
    shape, sizes = list(ir.RankedTensorType(source.type).shape), list(ir.RankedTensorType(out.type).shape)
    if layout.panels > 1:
        rank = len(shape)
        cut = [*shape[:-1], sizes[layout.order.index(rank - 1)], sizes[-1]]
        groups = [[dim] for dim in range(rank - 1)] + [[rank - 1, rank]]
        source = tensor.ExpandShapeOp(
            ir.RankedTensorType.get(cut, layout.kind.element_type), source, groups, [], cut
        ).result
    rank = len(layout.order)
    indices = [ir.AffineDimExpr.get(layout.order.index(dim)) for dim in range(rank)]
    maps = [ir.AffineMap.get(rank, 0, indices), ir.AffineMap.get_identity(rank)]
    loops = [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank
    return build_generic([source], [out], maps, loops, lambda elements: [elements[0]]).results[0]


def _zero(kind: ir.Type) -> ir.Attribute:
    return ir.IntegerAttr.get(kind, 0) if isinstance(kind, ir.IntegerType) else ir.FloatAttr.get(kind, 0.0)


@dataclass(frozen=True)
class Slice:
    """A part of tensors of shape `sizes`: along `dim`, from `offset` on, so many elements."""

    sizes: list[int]
    dim: int
    offset: int
    count: int

    def of(self, value: ir.Value) -> ir.Value:
        """The part of a tensor."""
        kind = ir.RankedTensorType.get(self._shape, ir.RankedTensorType(value.type).element_type)
        ones = [1] * len(self.sizes)
        return tensor.ExtractSliceOp(kind, value, [], [], [], self._offsets, self._shape, ones).result

    def update(self, value: ir.Value, change: Callable[[ir.Value], ir.Value]) -> ir.Value:
        """A tensor whose part has changed."""
        part, ones = change(self.of(value)), [1] * len(self.sizes)
        return tensor.InsertSliceOp(part, value, [], [], [], self._offsets, self._shape, ones).result

    @property
    def _shape(self) -> list[int]:
        shape = list(self.sizes)
        shape[self.dim] = self.count
        return shape

    @property
    def _offsets(self) -> list[int]:
        offsets = [0] * len(self.sizes)
        offsets[self.dim] = self.offset
        return offsets
