"""Elementwise ops whose innermost loops run over elements that follow each other run over them in one loop.

Vectors run along one loop: of planes of 7 x 7, or of the taps of a weight, they would be filled to a part.
"""

from __future__ import annotations

from math import prod

from pipeline.ir.indexing_maps import loop_of, loops_in
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import before, build_generic, copy_attributes, copy_body, iterator_types
from pipeline.mlir import ir, memref
from pipeline.passes.cpu.microkernel.data_dependent_indexing import computes_places


def coalesce(view: LinalgOp, lanes: int) -> ir.Operation | None:
    """An op in place of an elementwise one, with its innermost loops as one; None if it stays as it is.

    Stays: what fills vectors of so many lanes anyway, whose body asks for its place, or whose operands lie in strides.
    """
    if any(view.reductions) or computes_places(view.body) or not view.outputs:
        return None
    if any(loop_of(expression) is None for indexing in view.maps for expression in indexing.results):
        return None
    group = _followers(view)
    size = view.sizes[group[-1]] if group else None
    if len(group) < 2 or size is None or size % lanes == 0:
        return None
    with view.op.location, before(view.op):
        made = _over_one_loop(view, group)
    copy_attributes(view.op, made)
    view.op.erase()
    return made


def _followers(view: LinalgOp) -> list[int]:
    """The innermost loops that every operand either does not move with, or has next to each other in memory."""
    loops = [loop_of(expression) for expression in view.maps[view.outputs[0]].results]
    group: list[int] = []
    for loop in reversed(loops):
        assert loop is not None
        if group and not all(_follow(view, number, loop, group[0]) for number in range(len(view.maps))):
            break
        group.insert(0, loop)
    return group if _end_in(view, group[-1:]) else []


def _end_in(view: LinalgOp, last: list[int]) -> bool:
    """Whether what moves with a loop does so along its innermost dimension."""
    maps = [indexing for indexing in view.maps if loops_in(indexing) & set(last)]
    return all(loops_in(indexing, last=True) == set(last) for indexing in maps)


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


def _over_one_loop(view: LinalgOp, group: list[int]) -> ir.Operation:
    rest = [loop for loop in range(view.loops) if loop not in group[1:]]
    new = {loop: ir.AffineDimExpr.get(number) for number, loop in enumerate(rest)}
    operands, maps = [], []
    for operand, indexing in zip(view.operands, view.maps, strict=True):
        loops = [loop for loop in map(loop_of, indexing.results) if loop is not None]
        maps.append(ir.AffineMap.get(len(rest), 0, [new[loop] for loop in loops if loop in new]))
        operands.append(_collapsed(operand, loops, group) if group[0] in loops else operand)
    iterators = iterator_types([False] * len(rest))
    inputs, outputs = operands[: view.inputs], operands[view.inputs :]
    return build_generic(inputs, outputs, maps, iterators, lambda elements: copy_body(view, elements))


def _collapsed(buffer: ir.Value, loops: list[int], group: list[int]) -> ir.Value:
    """A buffer whose dims along some loops are one."""
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
    return memref.CollapseShapeOp(made, buffer, groups).result
