"""Innermost loops that run over elements that follow each other become one: of elementwise ops, and of reductions.

Vectors run along one loop: of planes of 7 x 7, or of the taps of a weight, they would be filled to a part.
"""

from __future__ import annotations

from math import prod

from pipeline.analysis.epilogue import prologues
from pipeline.analysis.vectorizable import COUNTER
from pipeline.ir.attributes import TAPS, TRANSFORM, WINOGRAD
from pipeline.ir.indexing_maps import loop_of, loops_in
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import before, behind, build_generic, copy_attributes, copy_body, iterator_types
from pipeline.mlir import defining_op, ir, linalg, memref, walk
from pipeline.passes.cpu.microkernel.data_dependent_indexing import computes_places

#: Rows of a multiple of so many elements are summed as fast one after the other.
_LONG = 256

#: What says of the loops of an op which they are.
_NUMBERED = (TAPS, TRANSFORM, WINOGRAD)


def coalesce(view: LinalgOp, lanes: int) -> ir.Operation | None:
    """An op in place of another, with its innermost loops as one; None if it stays as it is.

    Of an elementwise op, these are loops over results, of a reduction the innermost of those that it sums along rows;
    the ops that compute what that reads change with it. Stays: what fills vectors of so many lanes anyway, whose body
    asks for its place, or whose operands lie in strides.
    """
    reduces = any(view.reductions)
    views = [*(prologues(view, lambda _: True) if reduces else ()), view]
    if not all(map(_can_change, views)):
        return None
    group = _followers(views)
    size = view.sizes[group[-1]] if len(group) > 1 else None
    if size is None or size % (_LONG if reduces else lanes) == 0:
        return None
    buffers = _collapsed_buffers(views, group)
    for each in views:
        with each.op.location, before(each.op):
            made = _over_one_loop(each, group, buffers, parallel=each is not view)
        copy_attributes(each.op, made)
        each.op.erase()
    return made


def _can_change(view: LinalgOp) -> bool:
    """Whether the loops of an op can be other ones: all are used, and each index is a counter or a number."""
    if not view.outputs or any(name in view.op.attributes for name in _NUMBERED):
        return False
    if any(view.reductions) and computes_places(view.body):
        return False
    used = {loop for number in range(len(view.maps)) for loop in view.loops_read(number)}
    is_simple = all(_is_simple(expression) for indexing in view.maps for expression in indexing.results)
    return is_simple and len(used) == view.loops


def _is_simple(expression: ir.AffineExpr) -> bool:
    """Whether an index is the counter of a loop, or a number."""
    return isinstance(expression, (ir.AffineDimExpr, ir.AffineConstantExpr))


def _followers(views: list[LinalgOp]) -> list[int]:
    """The innermost loops that every operand either does not move with, or has next to each other in memory."""
    view = views[-1]
    reduces = any(view.reductions)
    most = max(range(view.inputs), key=lambda number: len(view.loops_read(number)), default=0)
    group: list[int] = []
    for loop in reversed(view.loops_read(most if reduces else view.outputs[0])):
        if view.reductions[loop] != reduces or any(_counts(each, loop) for each in views):
            break
        operands = ((each, number) for each in views for number in range(len(each.maps)))
        if group and not all(_follow(each, number, loop, group[0]) for each, number in operands):
            break
        group.insert(0, loop)
    return group if all(_end_in(each, group[-1:], crossing=not reduces) for each in views) else []


def _counts(view: LinalgOp, loop: int) -> bool:
    """Whether a body asks for the counter of a loop."""
    return any(ir.IntegerAttr(op.attributes["dim"]).value == loop for op in walk(view.op, COUNTER))


def _end_in(view: LinalgOp, last: list[int], crossing: bool) -> bool:
    """Whether what moves with a loop does so along its innermost dimension; inputs may be read across instead."""
    moving = [number for number, indexing in enumerate(view.maps) if loops_in(indexing) & set(last)]
    across = view.inputs if crossing else 0
    return all(
        loops_in(view.maps[number], last=True) == set(last)
        or (number < across and loops_in(view.maps[number], last=True))
        for number in moving
    )


def _follow(view: LinalgOp, number: int, outer: int, inner: int) -> bool:
    """Whether an operand moves with neither of two loops, or with both along dims that follow each other in memory.

    A part of a buffer may have such dims, too.
    """
    loops = [loop_of(expression) for expression in view.maps[number].results]
    if outer not in loops and inner not in loops:
        return True
    if loops.count(outer) != 1 or loops.count(inner) != 1 or loops.index(inner) != loops.index(outer) + 1:
        return False
    kind, dim = ir.MemRefType(view.operands[number].type), loops.index(inner)
    strides, _ = kind.get_strides_and_offset()
    return _is_row_major(kind) or (
        not kind.is_dynamic_dim(dim) and strides[dim - 1] == kind.get_dim_size(dim) * strides[dim] and strides[dim] > 0
    )


def _is_row_major(kind: ir.MemRefType) -> bool:
    """Whether all elements follow each other."""
    return bool(kind.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank)))


def _over_one_loop(view: LinalgOp, group: list[int], buffers: dict[ir.Value, ir.Value], parallel: bool) -> ir.Operation:
    rest = [loop for loop in range(view.loops) if loop not in group[1:]]
    new = {loop: ir.AffineDimExpr.get(number) for number, loop in enumerate(rest)}
    operands, maps = [], []
    for operand, indexing in zip(view.operands, view.maps, strict=True):
        loops = list(map(loop_of, indexing.results))
        kept = [
            expression if loop is None else new[loop]
            for loop, expression in zip(loops, indexing.results, strict=True)
            if loop not in group[1:]
        ]
        maps.append(ir.AffineMap.get(len(rest), 0, kept))
        operands.append(buffers[operand] if group[0] in loops else operand)
    iterators = iterator_types(view.reductions[loop] and not parallel for loop in rest)
    inputs, outputs = operands[: view.inputs], operands[view.inputs :]

    def counter(loop: int) -> ir.Value:
        return linalg.IndexOp(rest.index(loop)).result

    return build_generic(inputs, outputs, maps, iterators, lambda elements: copy_body(view, elements, counter))


def _collapsed_buffers(views: list[LinalgOp], group: list[int]) -> dict[ir.Value, ir.Value]:
    """What stands for the buffers that move with some loops, once these are one."""
    buffers: dict[ir.Value, ir.Value] = {}
    for view in views:
        for operand, indexing in zip(view.operands, view.maps, strict=True):
            loops = list(map(loop_of, indexing.results))
            if group[0] in loops and operand not in buffers:
                with behind(operand):
                    buffers[operand] = _collapsed(operand, loops, group, {each.op for each in views})
    return buffers


def _collapsed(buffer: ir.Value, loops: list[int | None], group: list[int], ops: set[ir.Operation]) -> ir.Value:
    """A buffer whose dims along some loops are one: a view, or another one where nothing else uses it."""
    groups: list[list[int]] = []
    for dim, loop in enumerate(loops):
        if loop in group[1:]:
            groups[-1].append(dim)
        else:
            groups.append([dim])
    kind, dynamic = ir.MemRefType(buffer.type), ir.ShapedType.get_dynamic_size()
    sizes = [dynamic if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)]
    shape = [dynamic if dynamic in (own := [sizes[dim] for dim in dims]) else prod(own) for dims in groups]
    layout = None
    if not _is_row_major(kind):
        strides, offset = kind.get_strides_and_offset()
        layout = ir.StridedLayoutAttr.get(offset, [strides[dims[-1]] for dims in groups])
    made = ir.MemRefType.get(shape, kind.element_type, layout, kind.memory_space)
    owner = defining_op(buffer)
    if owner is not None and _is_scratch(owner, ops):
        return memref.AllocaOp(made, [], [], alignment=owner.attributes.get("alignment")).result
    return memref.CollapseShapeOp(made, buffer, groups).result


def _is_scratch(owner: ir.Operation, ops: set[ir.Operation]) -> bool:
    """Whether a buffer of known size is on the stack, and used by some ops alone."""
    is_known = owner.name == "memref.alloca" and not len(owner.operands)
    return is_known and all(use.owner.operation in ops for use in owner.results[0].uses)
