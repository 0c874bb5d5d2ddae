"""Sorting lines of tensors: all of a line by merging, the first few by selection. What lower-tm-tensor writes."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import copy_block
from pipeline.mlir import arith, defining_op, ir, math, scf, tensor
from pipeline.passes.tensor.tensor_loop_nest import loops, sizes_of


def sort_lines(op: ir.Operation) -> list[ir.Value]:
    """The operands with all lines sorted; of lines of which only the first few elements are read, just these."""
    count = first_of_lines(op)
    if count is None:
        return sort(op)
    best = select_first(op, count)
    for result, part in zip(op.results, best, strict=True):
        for use in list(result.uses):
            use.owner.operation.operands[0] = part
    return best


#: More elements than these are sorted, not selected one by one.
_MOST_SELECTED = 64


def first_of_lines(op: ir.Operation) -> int | None:
    """How many of the first elements of each sorted line are read, where those are few; None if all may be."""
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    kind = ir.RankedTensorType(op.operands[0].type)
    users = [use.owner.operation for result in op.results for use in result.uses]
    if not users or any(user.name != "tensor.extract_slice" or len(user.operands) != 1 for user in users):
        return None
    count = 0
    for user in users:
        offset, size, step = (_static(user, f"static_{key}")[dim] for key in ("offsets", "sizes", "strides"))
        if offset != 0 or size < 0 or step != 1:
            return None
        count = max(count, size)
    length = kind.get_dim_size(dim)
    few = 0 < count <= _MOST_SELECTED and not kind.is_dynamic_dim(dim) and count * 4 <= length
    return count if few else None


def _static(op: ir.Operation, key: str) -> list[int]:
    return [int(number) for number in ir.DenseI64ArrayAttr(op.attributes[key])]


def select_first(op: ir.Operation, count: int) -> list[ir.Value]:
    """The first `count` elements of each line in sorted order: each element is put into its place among those so far.

    Most are behind the last of them, which one comparison tells. What is read of the sorted lines is read of these.
    """
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    sizes = sizes_of(op.operands[0])
    outer = [size for index, size in enumerate(sizes) if index != dim]
    kinds = [ir.RankedTensorType(line.type) for line in op.operands]
    shape = [count if number == dim else size for number, size in enumerate(kinds[0].shape)]
    dynamic = [size for size, known in zip(sizes, kinds[0].shape, strict=True) if known < 0]
    given = iter(dynamic)
    empty_sizes = [next(given) if size < 0 else size for size in shape]
    best = [tensor.EmptyOp(empty_sizes, kind.element_type).result for kind in kinds]

    def one_line(at: list[ir.Value], best: list[ir.Value]) -> list[ir.Value]:
        def place(position: ir.Value) -> list[ir.Value]:
            return [*at[:dim], position, *at[dim:]]

        def stays(position: ir.Value, best: list[ir.Value], new: list[ir.Value]) -> ir.Value:
            old = [tensor.ExtractOp(line, place(position)).result for line in best]
            pairs = [element for pair in zip(old, new, strict=True) for element in pair]
            return arith.OrIOp(
                copy_block(op.regions[0].blocks[0], pairs)[0], _is_nan_in_order(op, old[0], new[0])
            ).result

        def one_element(step: list[ir.Value], best: list[ir.Value]) -> list[ir.Value]:
            new = [_element(line, place(step[0]), dim) for line in op.operands]
            is_among_first = arith.CmpIOp(arith.CmpIPredicate.ult, step[0], as_index(count)).result
            is_behind = stays(as_index(count - 1), best, new)
            enters = arith.OrIOp(is_among_first, arith.XOrIOp(is_behind, _true()).result).result
            branch = scf.IfOp(enters, [line.type for line in best], has_else=True)
            with ir.InsertionPoint(branch.then_block):
                start = arith.MinUIOp(step[0], as_index(count - 1)).result
                scf.YieldOp(_insert(start, best, new, place, stays))
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp(best)
            return list(branch.results)

        return loops([sizes[dim]], best, one_element)

    return loops(outer, best, one_line)


def _insert(
    start: ir.Value,
    best: list[ir.Value],
    new: list[ir.Value],
    place: Callable[[ir.Value], list[ir.Value]],
    stays: Callable[[ir.Value, list[ir.Value], list[ir.Value]], ir.Value],
) -> list[ir.Value]:
    """Moves what comes behind a new element on by one, from `start` down, and puts it there."""
    hole = scf.WhileOp([start.type, *(line.type for line in best)], [start, *best])
    kinds = [value.type for value in hole.results]
    before = ir.Block.create_at_start(hole.before, kinds)
    with ir.InsertionPoint(before):
        position, *lines = before.arguments
        previous = arith.SubIOp(arith.MaxUIOp(position, as_index(1)).result, as_index(1)).result
        is_first = arith.CmpIOp(arith.CmpIPredicate.eq, position, as_index(0)).result
        stops = arith.OrIOp(is_first, stays(previous, lines, new)).result
        scf.ConditionOp(arith.XOrIOp(stops, _true()).result, list(before.arguments))
    after = ir.Block.create_at_start(hole.after, kinds)
    with ir.InsertionPoint(after):
        position, *lines = after.arguments
        previous = arith.SubIOp(position, as_index(1)).result
        moved = [
            tensor.InsertOp(tensor.ExtractOp(line, place(previous)).result, line, place(position)).result
            for line in lines
        ]
        scf.YieldOp([previous, *moved])
    position, *lines = hole.results
    return [tensor.InsertOp(element, line, place(position)).result for element, line in zip(new, lines, strict=True)]


def _element(line: ir.Value, place: list[ir.Value], dim: int) -> ir.Value:
    """An element of a line; where the line only counts its elements, the number itself."""
    producer = defining_op(line)
    if producer is not None and producer.name == "linalg.generic" and _counts(producer, dim):
        return arith.IndexCastOp(ir.RankedTensorType(line.type).element_type, place[dim]).result
    return tensor.ExtractOp(line, place).result


def _counts(generic: ir.Operation, dim: int) -> bool:
    """Whether each element of a result is its own number along a dim."""
    *ops, terminator = [op.operation for op in generic.regions[0].blocks[0].operations]
    if [op.name for op in ops] != ["linalg.index", "arith.index_cast"]:
        return False
    (indexing,) = [ir.AffineMapAttr(entry).value for entry in generic.attributes["indexing_maps"]]
    counted = ir.AffineDimExpr.get(ir.IntegerAttr(ops[0].attributes["dim"]).value)
    return indexing.results[dim] == counted and list(terminator.operands) == list(ops[1].results)


def _true() -> ir.Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result


def sort(op: ir.Operation) -> list[ir.Value]:
    """Stable merge sort of every line along the dimension, from runs of one element up; all operands move together."""
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    sizes = sizes_of(op.operands[0])
    outer = [size for index, size in enumerate(sizes) if index != dim]
    size = sizes[dim]

    def one_line(at: list[ir.Value], lines: list[ir.Value]) -> list[ir.Value]:
        def place(position: ir.Value) -> list[ir.Value]:
            return [*at[:dim], position, *at[dim:]]

        def one_pass(step: list[ir.Value], lines: list[ir.Value]) -> list[ir.Value]:
            merged = _merge_runs(op, lines, place, size, arith.ShLIOp(as_index(1), step[0]).result)

            def copy_back(step: list[ir.Value], lines: list[ir.Value]) -> list[ir.Value]:
                return [
                    tensor.InsertOp(tensor.ExtractOp(source, step).result, line, place(step[0])).result
                    for source, line in zip(merged, lines, strict=True)
                ]

            return loops([size], lines, copy_back)

        return loops([_passes(size)], lines, one_pass)

    return loops(outer, list(op.operands), one_line)


def _passes(size: ir.Value) -> ir.Value:
    """How often runs must double to reach `size`: the bits of size - 1; none for a size of 0."""
    number = ir.IntegerType.get_signless(64)
    last = arith.MaxSIOp(arith.SubIOp(size, as_index(1)).result, as_index(0)).result
    zeros = math.CountLeadingZerosOp(arith.IndexCastOp(number, last).result).result
    bits = arith.SubIOp(arith.ConstantOp(number, 64).result, zeros).result
    return arith.IndexCastOp(ir.IndexType.get(), bits).result


def _merge_runs(
    op: ir.Operation,
    lines: list[ir.Value],
    place: Callable[[ir.Value], list[ir.Value]],
    size: ir.Value,
    width: ir.Value,
) -> list[ir.Value]:
    """The lines with every two neighbouring runs of `width` sorted elements merged to one, as tensors of one dim."""
    elements = [ir.RankedTensorType(line.type).element_type for line in lines]
    scratch = [tensor.EmptyOp([size], element).result for element in elements]
    both = arith.AddIOp(width, width).result
    runs = scf.ForOp(as_index(0), size, both, scratch)
    with ir.InsertionPoint(runs.body):
        start = runs.induction_variable
        middle = arith.MinSIOp(arith.AddIOp(start, width).result, size).result
        end = arith.MinSIOp(arith.AddIOp(start, both).result, size).result
        merge = scf.ForOp(start, end, as_index(1), [start, middle, *runs.inner_iter_args])
        with ir.InsertionPoint(merge.body):
            left, right, *into = merge.inner_iter_args
            from_left = _takes_left(op, lines, place, (left, middle), (right, end))
            source = arith.SelectOp(from_left, left, right).result
            into = [
                tensor.InsertOp(tensor.ExtractOp(line, place(source)).result, target, [merge.induction_variable]).result
                for line, target in zip(lines, into, strict=True)
            ]
            following = [arith.AddIOp(position, as_index(1)).result for position in (left, right)]
            left = arith.SelectOp(from_left, following[0], left).result
            right = arith.SelectOp(from_left, right, following[1]).result
            scf.YieldOp([left, right, *into])
        scf.YieldOp(list(merge.results)[2:])
    return list(runs.results)


def _takes_left(
    op: ir.Operation,
    lines: list[ir.Value],
    place: Callable[[ir.Value], list[ir.Value]],
    left: tuple[ir.Value, ir.Value],
    right: tuple[ir.Value, ir.Value],
) -> ir.Value:
    """Whether a merge takes from the left run; both runs are given as (position, end)."""
    positions = [
        arith.MinSIOp(position, arith.SubIOp(end, as_index(1)).result).result for position, end in (left, right)
    ]
    pairs = [tensor.ExtractOp(line, place(position)).result for line in lines for position in positions]
    in_order = arith.OrIOp(
        copy_block(op.regions[0].blocks[0], pairs)[0], _is_nan_in_order(op, pairs[0], pairs[1])
    ).result
    left_remains = arith.CmpIOp(arith.CmpIPredicate.slt, *left).result
    right_is_empty = arith.CmpIOp(arith.CmpIPredicate.sge, *right).result
    return arith.AndIOp(left_remains, arith.OrIOp(right_is_empty, in_order).result).result


def _is_nan_in_order(op: ir.Operation, left: ir.Value, right: ir.Value) -> ir.Value:
    """NaN counts as the greatest number: it may stand on the right in ascending order, on the left in descending."""
    comparison = next((inner for inner in op.regions[0].blocks[0].operations if inner.name == "arith.cmpf"), None)
    if comparison is None:
        return arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result
    ascending = ir.IntegerAttr(comparison.attributes["predicate"]).value in _LESS
    value = right if ascending else left
    return arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result


_LESS = (arith.CmpFPredicate.OLT, arith.CmpFPredicate.OLE, arith.CmpFPredicate.ULT, arith.CmpFPredicate.ULE)
