"""collapse-group-loops: loops that all elementwise ops of a kernel run along next to each other become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from pipeline.analysis.kernel_ops import ops_to_tile
from pipeline.ir.indexing_maps import is_identity, loop_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.reshapes import unit_groups
from pipeline.ir.rewriting import (
    before,
    build_generic,
    copy_attributes,
    copy_body,
    iterator_types,
    replace,
    update_signature,
)
from pipeline.mlir import calls_of, defining_op, func, ir, symbol_name, tensor, terminator, walk
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class CollapseGroupLoops(Pass):
    """Collapse dims of kernels whose ops are all elementwise, over tensors of one shape.

    f(x: 512x512x3x3), g(f: 512x512x3x3)  ->  f(x: 2359296), g(f: 2359296)

    A tile is some elements of the innermost loops: of 3 x 3, of 1536 or of 7 x 7 it has parts that are short, or no
    whole vectors. Dims become one where each operand has both of them, or neither. All sizes have to be known, no body
    may ask for its place, and no call may hand over a slice, which would have to be copied.
    """

    name: ClassVar[str] = "collapse-group-loops"

    def run(self, op: ir.Operation) -> None:
        """Collapses the dims of the kernels of a module."""
        calls = calls_of(op)
        for kernel in walk(op, "func.func"):
            views = ops_to_tile(kernel) if symbol_name(kernel) in calls else None
            if not views or not all(map(_is_plain, views)) or not _has_nothing_else(kernel, views):
                continue
            if any(map(_hands_slices, calls[symbol_name(kernel)])):
                continue
            shape = list(ir.RankedTensorType(views[0].op.results[0].type).shape)
            if any(list(ir.RankedTensorType(value.type).shape) != shape for view in views for value in view.op.results):
                continue
            groups = _groups(views, shape) if shape else []
            if len(groups) < len(shape) and _agree(views, groups):
                sizes = [prod(shape[dim] for dim in group) for group in groups]
                self.passed(kernel, f"its dims of {_text(shape)} are {_text(sizes)}")
                with op.location:
                    _Collapsing(kernel, groups).run(views, calls[symbol_name(kernel)])


def _text(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _is_plain(view: LinalgOp) -> bool:
    """Whether an op computes each element of its results from elements at the same place, or from fewer."""
    if view.op.name != "linalg.generic" or not view.is_elementwise or walk(view.op, "linalg.index", "tensor.extract"):
        return False
    if any(size in (None, 0) for size in view.sizes) or not all(
        is_identity(view.maps[output]) for output in view.outputs
    ):
        return False
    read = [view.loops_read(operand) for operand in range(view.inputs)]
    in_order = all(loops == sorted(set(loops)) for loops in read)
    others = (dim for indexing in view.maps for dim in indexing.results if loop_of(dim) is None)
    return in_order and all(dim == ir.AffineConstantExpr.get(0) for dim in others)


def _has_nothing_else(kernel: ir.Operation, views: Sequence[LinalgOp]) -> bool:
    """Whether a kernel computes its results by some ops alone, without slices, and hands out nothing else."""
    ops = {view.op for view in views}
    *inside, end = (op.operation for op in kernel.regions[0].blocks[0].operations)
    plain = all(op in ops or op.name in ("tensor.empty", "arith.constant") for op in inside)
    return plain and all(defining_op(value) in ops for value in end.operands)


def _hands_slices(call: ir.Operation) -> bool:
    makers = map(defining_op, call.operands)
    return any(maker is not None and maker.name == "tensor.extract_slice" for maker in makers)


def _groups(views: Sequence[LinalgOp], shape: Sequence[int]) -> list[list[int]]:
    """The dims that become one each: neighbours that every operand has both of, or neither."""
    read = [set(view.loops_read(operand)) for view in views for operand in range(len(view.maps))]
    groups = [[0]]
    for dim in range(1, len(shape)):
        if all((dim in loops) == (dim - 1 in loops) for loops in read):
            groups[-1].append(dim)
        else:
            groups.append([dim])
    return groups


def _places(indexing: ir.AffineMap, groups: Sequence[list[int]]) -> list[list[int]]:
    """Of which dims of an operand each dim is made that it gets; those of size 1 go with the one in front of them."""
    loops = [loop_of(index) for index in indexing.results]
    return unit_groups([loops.index(group[0]) for group in groups if group[0] in loops], len(loops))


def _agree(views: Sequence[LinalgOp], groups: Sequence[list[int]]) -> bool:
    """Whether all that read a tensor get the same dims of it."""
    known: dict[ir.Value, list[list[int]]] = {}
    for view in views:
        for operand, indexing in zip(view.operands, view.maps, strict=True):
            places = _places(indexing, groups)
            if known.setdefault(operand, places) != places:
                return False
    return True


class _Collapsing:
    """Rebuilds the ops of a kernel over fewer loops, and hands it and its callers tensors of fewer dims."""

    def __init__(self, kernel: ir.Operation, groups: Sequence[list[int]]):
        self._kernel = kernel
        self._groups = groups
        self._known: dict[ir.Value, ir.Value] = {}

    def run(self, views: Sequence[LinalgOp], calls: Sequence[ir.Operation]) -> None:
        """Collapses all ops, and the operands of all calls; results of calls are expanded."""
        places = self._places_of_arguments(views)
        for argument, dims in places.items():
            argument.set_type(_collapsed_type(argument, dims))
        for view in views:
            with before(view.op):
                self._rebuild(view)
        end = terminator(self._kernel.regions[0].blocks[0])
        for number, value in enumerate(end.operands):
            end.operands[number] = self._known[value]
        for view in reversed(views):
            view.op.erase()
        update_signature(self._kernel)
        for call in calls:
            self._call(call, {argument.arg_number: dims for argument, dims in places.items()})

    def _places_of_arguments(self, views: Sequence[LinalgOp]) -> dict[ir.BlockArgument, list[list[int]]]:
        """For each argument that is a tensor, of which dims each dim that it gets is made."""
        found: dict[ir.BlockArgument, list[list[int]]] = {}
        for view in views:
            for number, operand in enumerate(view.operands):
                if isinstance(operand.owner, ir.Block) and isinstance(operand.type, ir.RankedTensorType):
                    found[ir.BlockArgument(operand)] = _places(view.maps[number], self._groups)
        return found

    def _rebuild(self, view: LinalgOp) -> None:
        count = len(self._groups)
        operands, maps = [], []
        for number, operand in enumerate(view.operands):
            loops = view.loops_read(number)
            kept = [ir.AffineDimExpr.get(place) for place, group in enumerate(self._groups) if group[0] in loops]
            maps.append(ir.AffineMap.get(count, 0, kept))
            if defining_op(operand) is not None and operand not in self._known and _rank(operand):
                self._known[operand] = self._empty_or_constant(operand, _places(view.maps[number], self._groups))
            operands.append(self._known.get(operand, operand))
        inputs, outputs = operands[: view.inputs], operands[view.inputs :]
        made = build_generic(
            inputs, outputs, maps, iterator_types([False] * count), lambda elements: copy_body(view, elements)
        )
        copy_attributes(view.op, made)
        self._known.update(zip(view.op.results, made.results, strict=True))

    def _empty_or_constant(self, value: ir.Value, places: list[list[int]]) -> ir.Value:
        kind, maker = _collapsed_type(value, places), defining_op(value)
        if maker is not None and maker.name == "tensor.empty":
            return tensor.EmptyOp(kind.shape, kind.element_type).result
        return tensor.CollapseShapeOp(kind, value, places).result

    def _call(self, call: ir.Operation, arguments: Mapping[int, list[list[int]]]) -> None:
        """Hands collapsed tensors to the kernel in place of those that a call has."""
        with before(call):
            operands = [
                tensor.CollapseShapeOp(_collapsed_type(operand, arguments[number]), operand, arguments[number]).result
                if number in arguments and len(arguments[number]) != _rank(operand)
                else operand
                for number, operand in enumerate(call.operands)
            ]
            kinds = [value.type for value in terminator(self._kernel.regions[0].blocks[0]).operands]
            made = func.CallOp(kinds, ir.FlatSymbolRefAttr.get(symbol_name(self._kernel)), operands).operation
            copy_attributes(call, made)
            results = [
                tensor.ExpandShapeOp(old.type, new, self._groups, [], ir.RankedTensorType(old.type).shape).result
                for old, new in zip(call.results, made.results, strict=True)
            ]
        replace(call, results)


def _rank(value: ir.Value) -> int:
    return ir.RankedTensorType(value.type).rank if isinstance(value.type, ir.RankedTensorType) else 0


def _collapsed_type(value: ir.Value, places: Sequence[list[int]]) -> ir.RankedTensorType:
    kind = ir.RankedTensorType(value.type)
    return ir.RankedTensorType.get([prod(kind.shape[dim] for dim in dims) for dims in places], kind.element_type)
