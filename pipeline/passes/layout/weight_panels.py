"""Panels of weights: how a weight lies in them, and the kernels of @prepare that put it there; for pack-weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from pipeline.analysis.dot_product import in_groups
from pipeline.ir.attributes import MOVE
from pipeline.ir.constants import zero
from pipeline.ir.rewriting import build_generic, iterator_types
from pipeline.mlir import func, ir, linalg, tensor


class PanelLayout:
    """How a weight is packed: its columns cut into panels, its rows into groups, then its dims put in another order.

    Attributes:
        kind: the type of the weight.
        panels: how many panels there are; 1 where the columns are not cut.
        columns: how many columns one has.
        missing: how many columns of the last panel the weight does not have; they are 0, and rows are not in groups.
        steps: how many steps of the innermost sum make a group; 1 for none.
        parts: for each dim of the weight the sizes of those that it becomes.
        order: these dims, as they follow each other in the packed weight; with groups, the two last ones are one.
        memory: the dims of the weight in the order in which they lie in the memory that is packed.
    """

    def __init__(
        self,
        kind: ir.RankedTensorType,
        sums: Sequence[bool],
        columns: int,
        row: int | None = None,
        steps: int = 1,
        memory: Sequence[int] | None = None,
    ):
        """`sums`: whether the product sums over each dim; rows along dim `row` go in groups, if panels are full."""
        self.kind = kind
        self.memory = list(range(kind.rank)) if memory is None else list(memory)
        given = kind.shape[-1]
        cut = given > columns
        self.panels = -(-given // columns) if cut else 1
        self.columns = columns if cut else given
        self.missing = self.panels * self.columns - given
        self.steps = 1 if row is None else steps
        self.parts = [[size // steps, steps] if dim == row else [size] for dim, size in enumerate(kind.shape)]
        if cut:
            self.parts[-1] = [self.panels, self.columns]
        first = [dims[0] for dims in self.groups]
        outer = [first[dim] for dim in range(len(sums) - 1) if not sums[dim]]
        outer += [first[-1]] * cut
        inner = [first[dim] for dim in range(len(sums) - 1) if sums[dim]]
        self.order = [*outer, *inner, self.groups[-1][-1]]
        if row is not None:
            self.order.append(first[row] + 1)

    @property
    def cut(self) -> list[int]:
        """The sizes of the weight with its dims cut, and the last panel full."""
        return [size for sizes in self.parts for size in sizes]

    @property
    def groups(self) -> list[list[int]]:
        """For each dim of the weight those that it becomes."""
        starts = [sum(map(len, self.parts[:dim])) for dim in range(len(self.parts))]
        return [[start + part for part in range(len(sizes))] for start, sizes in zip(starts, self.parts, strict=True)]

    @property
    def moved(self) -> list[int | None]:
        """Where each dim of the weight lies in the packed one; None for those that are cut."""
        return [self.order.index(dims[0]) if len(dims) == 1 else None for dims in self.groups]

    @property
    def is_plain(self) -> bool:
        """Whether the elements stay where they are."""
        return self.order == self.dims_in_memory

    @property
    def source(self) -> ir.RankedTensorType:
        """The type of the memory that is packed."""
        return ir.RankedTensorType.get([self.kind.shape[dim] for dim in self.memory], self.kind.element_type)

    @property
    def dims_in_memory(self) -> list[int]:
        """The dims of the weight, cut, in the order in which they lie in the memory that is packed."""
        return [part for dim in self.memory for part in self.groups[dim]]

    @property
    def ordered(self) -> list[int]:
        """The sizes of the dims in their order."""
        return [self.cut[dim] for dim in self.order]

    @property
    def packed(self) -> ir.RankedTensorType:
        """The type of the packed weight."""
        *outer, last = self.ordered
        shape = [*outer[:-1], outer[-1] * last] if self.steps > 1 else [*outer, last]
        return ir.RankedTensorType.get(shape, self.kind.element_type)

    @property
    def described(self) -> str:
        """The panels in words."""
        groups = {1: "", 2: " of pairs", 4: " of quads", 8: " of eights"}[self.steps]
        return f"panels of {self.columns} columns{groups}"

    @property
    def move(self) -> str:
        """Which element of the weight's memory each of the packed one's is, whatever dims the two are seen as."""
        strides: dict[int, int] = {}
        step = 1
        for dim in reversed(self.memory):
            parts = self.parts[dim]
            strides |= {part: step * prod(parts[number + 1 :]) for number, part in enumerate(self.groups[dim])}
            step *= self.kind.shape[dim]
        loops: list[tuple[int, int]] = []
        for size, stride in ((self.cut[dim], strides[dim]) for dim in self.order if self.cut[dim] != 1):
            if loops and loops[-1][1] == stride * size:
                size *= loops.pop()[0]
            loops.append((size, stride))
        return f"{self.kind.element_type} {loops} without {self.missing}"

    def places(self, indices: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
        """Where an element of the weight is in the packed one.

        `indices` are those of the weight with its columns cut; of the weight as it is, where columns are missing.
        """
        if self.missing:
            *outer, column = indices
            panel, rest = ir.AffineExpr.get_floor_div(column, self.columns), ir.AffineExpr.get_mod(column, self.columns)
            indices = [*outer, panel, rest]
        row = next((dim for dim, sizes in enumerate(self.parts[:-1]) if len(sizes) > 1), None)
        if row is None:
            return [indices[dim] for dim in self.order]
        group, place = in_groups(indices[-1], indices[row], self.steps)
        cut = [*indices[:row], group, indices[row], *indices[row + 1 :]]
        return [*(cut[dim] for dim in self.order[:-2]), place]


class Packing:
    """The kernels of @prepare that pack: one for each type and layout."""

    def __init__(self, module: ir.Operation, taken: set[str]):
        self._module = module
        self._taken = taken
        self._known: dict[tuple[str, str, str], str] = {}

    def kernel(self, layout: PanelLayout, whole: ir.Type | None = None) -> str:
        """The name of the kernel(weight, destination) that packs.

        With the type of a `whole` the weight is what lies in one place of the first dim of that, and the kernel is
        one(whole, place, destination).
        """
        key = (str(whole or layout.source), str(layout.packed), layout.move)
        if key not in self._known:
            self._known[key] = self._create(layout, whole)
        return self._known[key]

    def _create(self, layout: PanelLayout, whole: ir.Type | None) -> str:
        name = next(name for count in range(len(self._taken) + 1) if (name := f"pack_{count}") not in self._taken)
        self._taken.add(name)
        given = [layout.source] if whole is None else [whole, ir.IndexType.get(self._module.context)]
        kind = ir.FunctionType.get([*given, layout.packed], [layout.packed])
        words = {
            "kernel": ir.StringAttr.get("elementwise"),
            "ops": _strings("linalg.generic"),
            "words": _strings("pack"),
        }
        with self._module.location, ir.InsertionPoint.at_block_begin(self._module.regions[0].blocks[0]):
            made = func.FuncOp(name, kind, visibility="private")
            for key, value in words.items():
                made.attributes[f"pipeline.{key}"] = value
            if whole is None:
                made.attributes[MOVE] = ir.StringAttr.get(layout.move)
            with ir.InsertionPoint(made.add_entry_block()):
                source, *place, out = made.arguments
                source = _part(source, place[0], layout.source) if place else source
                func.ReturnOp([_packed(source, out, layout)])
        return name


def _part(whole: ir.Value, place: ir.Value, kind: ir.RankedTensorType) -> ir.Value:
    """What lies in one place of the first dim."""
    places = [ir.ShapedType.get_dynamic_stride_or_offset(), *[0] * kind.rank]
    return tensor.ExtractSliceOp(kind, whole, [place], [], [], places, [1, *kind.shape], [1] * (kind.rank + 1)).result


def _strings(word: str) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(word)])


def _packed(source: ir.Value, out: ir.Value, layout: PanelLayout) -> ir.Value:
    """The packed weight in the memory of `out`: whole panels, then the one that the last columns do not fill."""
    if layout.steps > 1:
        return _groups(source, out, layout)
    if not layout.missing:
        return _panels(source, out, layout)
    whole, given = layout.panels - 1, list(layout.source.shape)
    column = layout.memory.index(layout.kind.rank - 1)
    first = Slice(given, column, 0, whole * layout.columns)
    rest = Slice(given, column, whole * layout.columns, layout.columns - layout.missing)
    panel = layout.order.index(len(layout.order) - 2)
    sizes = list(layout.packed.shape)
    out = Slice(sizes, panel, 0, whole).update(out, lambda part: _panels(first.of(source), part, layout))
    border = zero(layout.kind.element_type)
    filled, last = Slice(sizes, panel, whole, 1), list(sizes)
    last[panel] = 1
    columns = Slice(last, len(last) - 1, 0, layout.columns - layout.missing)
    out = filled.update(out, lambda part: linalg.fill(border, outs=[part]))
    return filled.update(out, lambda part: columns.update(part, lambda inner: _panels(rest.of(source), inner, layout)))


def _groups(source: ir.Value, out: ir.Value, layout: PanelLayout) -> ir.Value:
    """The weight with its rows in groups."""
    count = len(layout.order)
    groups = [*([dim] for dim in range(count - 2)), [count - 2, count - 1]]
    cut = _expanded(source, [layout.parts[dim] for dim in layout.memory])
    result = _transposed(cut, _expanded(out, [*([size] for size in layout.ordered[:-2]), layout.ordered[-2:]]), layout)
    return tensor.CollapseShapeOp(layout.packed, result, groups).result


def _panels(source: ir.Value, out: ir.Value, layout: PanelLayout) -> ir.Value:
    """Some columns of the weight, as panels in `out`."""
    if layout.panels > 1:
        sizes = list(ir.RankedTensorType(out.type).shape)
        cut = [sizes[layout.order.index(len(sizes) - 2)], sizes[-1]]
        shape = zip(layout.memory, ir.RankedTensorType(source.type).shape, strict=True)
        source = _expanded(source, [cut if dim == layout.kind.rank - 1 else [size] for dim, size in shape])
    return _transposed(source, out, layout)


def _expanded(value: ir.Value, parts: list[list[int]]) -> ir.Value:
    """A tensor each of whose dims is cut into parts of these sizes."""
    starts = [sum(map(len, parts[:dim])) for dim in range(len(parts))]
    groups = [[start + part for part in range(len(sizes))] for start, sizes in zip(starts, parts, strict=True)]
    cut = [size for sizes in parts for size in sizes]
    kind = ir.RankedTensorType.get(cut, ir.RankedTensorType(value.type).element_type)
    return tensor.ExpandShapeOp(kind, value, groups, [], cut).result


def _transposed(source: ir.Value, out: ir.Value, layout: PanelLayout) -> ir.Value:
    """The weight, cut, as it lies in memory, with its dims in the order of the packed one."""
    rank = len(layout.order)
    indices = [ir.AffineDimExpr.get(layout.order.index(dim)) for dim in layout.dims_in_memory]
    maps = [ir.AffineMap.get(rank, 0, indices), ir.AffineMap.get_identity(rank)]
    loops = iterator_types([False] * rank)
    return build_generic([source], [out], maps, loops, lambda elements: [elements[0]]).results[0]


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
