"""drop-unit-dims: buffers without the dims of size 1 behind the one whose elements follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import TAPS, TRANSFORM, WINOGRAD
from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import coefficient, loop_of
from pipeline.ir.linalg_op import LinalgOp, bounded
from pipeline.ir.rewriting import before, behind, build_generic, copy_attributes, copy_body, iterator_types
from pipeline.mlir import defining_op, ir, linalg, memref, walk
from pipeline.passmanager.base import Pass

#: What says of loops or operands of an op which they are.
_NUMBERED = (TAPS, TRANSFORM, WINOGRAD)


@dataclass(frozen=True)
class DropUnitDims(Pass):
    """Let linalg.generics on buffers do without trailing dims of size 1, and without the loops over them.

    out[m, 0] += a[m, k] * b[k, 0]   ->   out[m] += a[m, k] * b[k]

    Vectors run along the innermost dims of operands; a dim of size 1 there leaves none to run along, as in the product
    of a matrix and a column.
    """

    name: ClassVar[str] = "drop-unit-dims"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Changes all ops of a function that read or write such buffers, each buffer everywhere or nowhere."""
        views = {generic: view for generic in walk(op, "linalg.generic") if (view := bounded(generic)) is not None}
        buffers = dict.fromkeys(operand for view in views.values() for operand in view.operands if _unit_dims(operand))
        chosen = [buffer for buffer in buffers if all(map(_can_do_without, _uses(buffer, views)))]
        small = {buffer: _without(buffer, set(views)) for buffer in chosen}
        for view in views.values():
            if any(operand in small for operand in view.operands):
                _rewrite(view, small)
        for buffer, other in small.items():
            _drop_allocation(buffer, other)


#: An op and the number of one of its operands.
_Use = tuple[LinalgOp, int]


def _uses(buffer: ir.Value, views: dict[ir.Operation, LinalgOp]) -> list[_Use]:
    uses = [(use.owner.operation, use.operand_number) for use in buffer.uses]
    return [(views[op], number) for op, number in uses if op in views]


def _unit_dims(buffer: ir.Value) -> int:
    """How many trailing dims of size 1 a buffer has that can go, so that elements of the one before are neighbours."""
    if not isinstance(buffer.type, ir.MemRefType):
        return 0
    kind = ir.MemRefType(buffer.type)
    kept = kind.rank
    while kept and not kind.is_dynamic_dim(kept - 1) and kind.get_dim_size(kept - 1) == 1:
        kept -= 1
    kept = max(kept, 1)
    strides, _ = kind.get_strides_and_offset()
    return kind.rank - kept if kept < kind.rank and strides[kept - 1] == 1 else 0


def _can_do_without(use: _Use) -> bool:
    """Whether an op names the trailing dims of an operand by loops of one iteration, or by 0.

    A loop that moves along windows, too, has to stay, and to be the counter of some dim.
    """
    view, number = use
    if any(name in view.op.attributes for name in _NUMBERED):
        return False
    for expression in _unit_results(view, number):
        loop = loop_of(expression)
        if loop is None and expression != ir.AffineConstantExpr.get(0):
            return False
        if loop is not None and (view.reductions[loop] or view.sizes[loop] != 1 or _is_in_window(view, loop)):
            return False
    return True


def _is_in_window(view: LinalgOp, loop: int) -> bool:
    """Whether an index is a sum with the counter of a loop."""
    results = (expression for indexing in view.maps for expression in indexing.results)
    return any(coefficient(expression, loop) != 0 and loop_of(expression) is None for expression in results)


def _unit_results(view: LinalgOp, number: int) -> list[ir.AffineExpr]:
    """How an op indexes the dims of an operand that can go."""
    results = list(view.maps[number].results)
    return results[len(results) - _unit_dims(view.operands[number]) :]


def _without(buffer: ir.Value, generics: set[ir.Operation]) -> ir.Value:
    """A view of a buffer without the dims that can go; a buffer of that shape where nothing else uses it."""
    kind = ir.MemRefType(buffer.type)
    kept = kind.rank - _unit_dims(buffer)
    owner = defining_op(buffer)
    with behind(buffer):
        made = _smaller_type(kind, kept)
        if owner is not None and _is_own(owner, generics):
            is_aligned = "alignment" in owner.attributes
            alignment = owner.attributes["alignment"] if is_aligned else None
            allocate = memref.AllocaOp if owner.name == "memref.alloca" else memref.AllocOp
            return allocate(made, [], [], alignment=alignment).result
        groups = [*([dim] for dim in range(kept - 1)), list(range(kept - 1, kind.rank))]
        return memref.CollapseShapeOp(made, buffer, groups).result


def _is_own(owner: ir.Operation, generics: set[ir.Operation]) -> bool:
    """Whether a buffer of known size is this function's, and used by these ops alone."""
    if owner.name not in ("memref.alloc", "memref.alloca") or len(owner.operands):
        return False
    users = (use.owner.operation for use in owner.results[0].uses)
    return all(user in generics or user.name == "memref.dealloc" for user in users)


def _smaller_type(kind: ir.MemRefType, kept: int) -> ir.MemRefType:
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [dynamic if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kept)]
    layout = None
    if kind.layout != ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank)):
        strides, offset = kind.get_strides_and_offset()
        layout = ir.StridedLayoutAttr.get(offset, strides[:kept])
    return ir.MemRefType.get(shape, kind.element_type, layout, kind.memory_space)


def _rewrite(view: LinalgOp, small: dict[ir.Value, ir.Value]) -> None:
    """The op on the smaller buffers, without the loops that nothing moves along any more."""
    operands = [small.get(operand, operand) for operand in view.operands]
    results = [
        list(indexing.results)[: len(indexing.results) - (_unit_dims(operand) if operand in small else 0)]
        for operand, indexing in zip(view.operands, view.maps, strict=True)
    ]
    kept = [loop for loop in range(view.loops) if view.reductions[loop] or _is_read(results, loop)]
    zero = ir.AffineConstantExpr.get(0)
    dims = [ir.AffineDimExpr.get(kept.index(loop)) if loop in kept else zero for loop in range(view.loops)]
    renamed = ir.AffineMap.get(len(kept), 0, dims)
    maps = [ir.AffineMap.get(len(kept), 0, [one.compose(renamed) for one in each]) for each in results]

    def counter(loop: int) -> ir.Value:
        return linalg.IndexOp(kept.index(loop)).result if loop in kept else as_index(0)

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        return copy_body(view, elements, counter)

    iterators = iterator_types(view.reductions[loop] for loop in kept)
    with before(view.op):
        made = build_generic(operands[: view.inputs], operands[view.inputs :], maps, iterators, body)
    copy_attributes(view.op, made)
    view.op.erase()


def _is_read(results: list[list[ir.AffineExpr]], loop: int) -> bool:
    return any(coefficient(expression, loop) != 0 for each in results for expression in each)


def _drop_allocation(buffer: ir.Value, small: ir.Value) -> None:
    """Takes an allocation away that a smaller one has taken the place of."""
    owner, other = defining_op(buffer), defining_op(small)
    assert other is not None
    if owner is None or other.name == "memref.collapse_shape":
        return
    for use in list(buffer.uses):
        user = use.owner.operation
        with before(user):
            memref.DeallocOp(small)
        user.erase()
    owner.erase()
