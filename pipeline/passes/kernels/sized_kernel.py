"""A kernel as what it computes for tensors of any sizes: which of its sizes are the same, and which may change."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property

from pipeline.analysis.disjoint_sets import DisjointSets
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, captured_values, defining_op, ir, symbol_name, tensor, terminator

#: A dim of a tensor.
Dim = tuple[ir.Value, int]

#: The sizes in the types of tensors, but those of 1, along which nothing moves.
_SIZES = re.compile(r"(?<=[<x])(?!1x)\d+(?=x)")

_OF_NUMBERS = ("arith.", "math.")


class SizedKernel:
    """A kernel whose ops are linalg's, over tensors of known sizes."""

    def __init__(self, function: ir.Operation):
        self.function = function
        self._block = function.regions[0].blocks[0]
        self._ops = [op.operation for op in self._block.operations]
        values = [*self._block.arguments, *(result for op in self._ops for result in op.results)]
        self._tensors = [value for value in values if isinstance(value.type, ir.RankedTensorType)]

    @cached_property
    def is_readable(self) -> bool:
        """Whether all its sizes are known, and nothing depends on them but how often loops run."""
        known = all(ir.RankedTensorType(value.type).has_static_shape for value in self._tensors)
        return known and all(map(_is_plain, self._ops))

    @cached_property
    def key(self) -> tuple[str, ...]:
        """What kernels that differ in sizes that may change have in common: the text, and the sizes that may not."""
        text = self.function.get_asm(enable_debug_info=False, use_local_scope=True)
        text = text.replace(f"@{symbol_name(self.function)}(", "@kernel(", 1)
        return _SIZES.sub("?", text), *(str(_size(dims[0])) for dims in self._classes if not self._may_change(dims))

    @cached_property
    def sizes(self) -> list[int]:
        """The sizes of its dims; of dims that have to be of the same size, once."""
        return [_size(dims[0]) for dims in self._classes]

    def forget_sizes(self, numbers: Collection[int]) -> None:
        """Makes sizes symbolic, by their numbers in `sizes`."""
        measured = {dim: self._argument(self._classes[number]) for number in numbers for dim in self._classes[number]}
        for value in self._tensors:
            op = defining_op(value)
            if op is not None and op.name == "tensor.empty":
                with before(op):
                    sizes = [_at_run_time(measured[dim]) if dim in measured else _size(dim) for dim in _dims(value)]
                    replace(op, [tensor.EmptyOp(sizes, value.type.element_type).result])
                continue
            unknown = ir.ShapedType.get_dynamic_size()
            shape = [unknown if dim in measured else _size(dim) for dim in _dims(value)]
            value.set_type(ir.RankedTensorType.get(shape, value.type.element_type))
        results = [value.type for value in terminator(self._block).operands]
        kind = ir.FunctionType.get([argument.type for argument in self._block.arguments], results)
        self.function.attributes["function_type"] = ir.TypeAttr.get(kind)

    @cached_property
    def _classes(self) -> list[list[Dim]]:
        """The dims; those that have to be of the same size, together."""
        same = DisjointSets[Dim]()
        for value in self._tensors:
            for dim in _dims(value):
                same.find(dim)
        for view in self._views:
            first: dict[int, Dim] = {}
            for dim, index in _accesses(view):
                loop = loop_of(index)
                if loop is not None:
                    same.join(first.setdefault(loop, dim), dim)
        return same.classes()

    @cached_property
    def _views(self) -> list[LinalgOp]:
        return [view for view in map(structured, self._ops) if view is not None]

    @cached_property
    def _fixed(self) -> set[Dim]:
        """Dims that are read by computed indices, so that their sizes say more than how often a loop runs."""
        return {dim for view in self._views for dim, index in _accesses(view) if loop_of(index) is None}

    def _may_change(self, dims: list[Dim]) -> bool:
        """Whether a size may be another one: it is not 1, an argument says which it is, and only loops depend on it."""
        return _size(dims[0]) != 1 and self._fixed.isdisjoint(dims) and any(map(_is_argument, dims))

    def _argument(self, dims: list[Dim]) -> Dim:
        """The dim of an argument that says at run time what the size of some dims is."""
        return next(filter(_is_argument, dims))


def _is_plain(op: ir.Operation) -> bool:
    """Whether an op is a loop over tensors, room for one, or computes a number."""
    view = structured(op)
    if view is not None:
        outside = set(captured_values(op)) - set(op.operands)
        return len(view.bounds) == view.loops and not any(isinstance(value.type, ir.ShapedType) for value in outside)
    if op.name.startswith(_OF_NUMBERS):
        return not any(isinstance(result.type, ir.ShapedType) for result in op.results)
    return op.name in ("tensor.empty", "func.return")


def _accesses(view: LinalgOp) -> Iterator[tuple[Dim, ir.AffineExpr]]:
    """The dims of what an op reads and computes, each with the index along it."""
    values = [*view.operands, *view.op.results]
    maps = [*view.maps, *view.maps[view.inputs :]]
    for value, indexing in zip(values, maps, strict=True):
        if isinstance(value.type, ir.RankedTensorType):
            yield from zip(_dims(value), indexing.results, strict=True)


def _dims(value: ir.Value) -> list[Dim]:
    return [(value, dim) for dim in range(ir.RankedTensorType(value.type).rank)]


def _size(dim: Dim) -> int:
    value, number = dim
    return ir.RankedTensorType(value.type).get_dim_size(number)


def _at_run_time(dim: Dim) -> ir.Value:
    value, number = dim
    return tensor.DimOp(value, arith.ConstantOp(ir.IndexType.get(), number).result).result


def _is_argument(dim: Dim) -> bool:
    return defining_op(dim[0]) is None
