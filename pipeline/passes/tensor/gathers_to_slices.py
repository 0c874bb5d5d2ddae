"""gathers-to-slices: fetching what lies side by side is a slice, which need not be copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.linalg_op import bounded
from pipeline.ir.reshapes import unit_groups
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import constant_integer, defining_op, ir, tensor
from pipeline.passmanager.patterns import PatternPass, pattern

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class GathersToSlices(PatternPass):
    """Turn a linalg.generic that only fetches `x[i, :, j]`, with numbers i and j, into a tensor.extract_slice.

    As `x[t]` for the step t of a loop is, after `scalarize-unit-tensors`. Every loop counts one dimension of x, in
    order, and its sizes are known; so the slice is in range where the fetch is.
    """

    name: ClassVar[str] = "gathers-to-slices"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def slice(self, generic: ir.Operation) -> bool:
        """generic { tensor.extract x[i, linalg.index 0, j] }   ->   extract_slice x[i, 0, j] [1, n, 1]"""
        fetch = _fetch(generic)
        if fetch is None:
            return False
        self.passed(generic, "is a slice")
        with before(generic):
            value = _slice(generic, fetch)
        replace(generic, [value])
        return True


def _fetch(generic: ir.Operation) -> ir.Operation | None:
    """The tensor.extract that alone makes the result of a generic, if a slice can take its place."""
    view = bounded(generic)
    if view is None or not view.is_elementwise or len(generic.results) != 1:
        return None
    fetch = defining_op(view.yielded[0])
    rank = view.loops
    reads = any(list(argument.uses) for argument in view.body.arguments)
    is_plain = view.maps[-1] == ir.AffineMap.get_identity(rank) and not reads
    if fetch is None or fetch.name != "tensor.extract" or fetch.block != view.body or not is_plain:
        return None
    counted = [_loop(index, view.body) for index in list(fetch.operands)[1:]]
    used = [dim for dim in counted if dim is not None and dim >= 0]
    rest = [size for dim, size in enumerate(view.sizes) if dim not in used]
    if None in counted or used != sorted(set(used)) or any(size != 1 for size in rest):
        return None
    source = ir.RankedTensorType(fetch.operands[0].type)
    return fetch if source.has_static_shape and all(view.sizes) else None


def _loop(index: ir.Value, body: ir.Block) -> int | None:
    """The loop that an index counts; -1 for a number from outside of the body; None for anything else."""
    op = defining_op(index)
    if op is not None and op.name == "linalg.index":
        return ir.IntegerAttr(op.attributes["dim"]).value
    owner = index.owner
    block = owner if isinstance(owner, ir.Block) else owner.operation.block
    return -1 if block != body or constant_integer(index) is not None else None


def _slice(generic: ir.Operation, fetch: ir.Operation) -> ir.Value:
    """extract_slice x[i, 0, j] [1, n, 1], in the shape of the generic's result."""
    result = ir.RankedTensorType(generic.results[0].type)
    source, *indices = fetch.operands
    body = generic.regions[0].blocks[0]
    offsets, sizes, places = [], [], []
    for index in indices:
        loop = _loop(index, body)
        number = constant_integer(index)
        if loop is not None and loop >= 0:
            offsets.append(0)
            sizes.append(result.get_dim_size(loop))
        elif number is not None:
            offsets.append(number)
            sizes.append(1)
        else:
            offsets.append(_DYNAMIC)
            sizes.append(1)
            places.append(index)
    used = [loop for loop in (_loop(index, body) for index in indices) if loop is not None and loop >= 0]
    direct = _drops_units(sizes, list(result.shape))
    shape = list(result.shape) if direct else [result.get_dim_size(loop) for loop in used]
    kind = ir.RankedTensorType.get(shape, result.element_type)
    cut = tensor.ExtractSliceOp(kind, source, places, [], [], offsets, sizes, [1] * len(sizes)).result
    return cut if direct else tensor.ExpandShapeOp(result, cut, unit_groups(used, result.rank), [], result.shape).result


def _drops_units(sizes: list[int], shape: list[int]) -> bool:
    """Whether a shape is some sizes without dimensions of size 1."""
    rest = list(shape)
    for size in sizes:
        if rest and rest[0] == size:
            rest.pop(0)
        elif size != 1:
            return False
    return not rest
