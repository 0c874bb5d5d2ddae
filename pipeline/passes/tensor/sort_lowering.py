"""Sorting lines of tensors: all of a line by digits or by merging, the first few by selection.

What lower-tm-tensor writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import copy_block
from pipeline.mlir import arith, defining_op, ir, math, scf, tensor
from pipeline.passes.tensor.radix_sort import SortOrder, digits_of, radix_sort
from pipeline.passes.tensor.tensor_loop_nest import loops, sizes_of


def sort_lines(op: ir.Operation) -> list[ir.Value]:
    """The operands with all lines sorted; of lines of which only the first few elements are read, just these."""
    count = first_of_lines(op)
    if count is None:
        return _all_of_lines(op)
    best = select_first(op, count)
    for result, part in zip(op.results, best, strict=True):
        for use in list(result.uses):
            use.owner.operation.operands[0] = part
    return best


#: Lines of so many elements at most are sorted by putting one after the other into its place.
_SHORT_LINE = 24


def _all_of_lines(op: ir.Operation) -> list[ir.Value]:
    """All of each line, by what takes the least time for lines of that length."""
    kind = ir.RankedTensorType(op.operands[0].type)
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    length, order = kind.shape[dim], SortOrder.of(op)
    if kind.is_dynamic_dim(dim) or order is None:
        return sort(op)
    return select_first(op, length) if 1 < length <= _SHORT_LINE else radix_sort(op, order, _element)


#: Nanoseconds, about: what it takes to sort a line and an element of it by a digit; to look at an element whether it is
#: among the first, to find the place of one that is, and to move one that comes behind it.
_SORT_LINE, _SORT_ELEMENT = 300, 2.25
_LOOK, _ENTER, _MOVE = 0.5, 15, 1.2


def _is_selected(count: int, length: int, digits: int) -> bool:
    """Whether the first of a line are sooner found by putting each that is among them into its place.

    Of elements in random order, `count / n` of those at place n are among the first so far.
    """
    enter = count * (1 + log(length / count))
    select = length * _LOOK + enter * (_ENTER + _MOVE * count / 2)
    return select < digits * (_SORT_LINE + length * _SORT_ELEMENT)


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
    if kind.is_dynamic_dim(dim) or not 0 < count < length or SortOrder.of(op) is None:
        return None
    return count if _is_selected(count, length, digits_of(op.operands[0])) else None


def _static(op: ir.Operation, key: str) -> list[int]:
    return [int(number) for number in ir.DenseI64ArrayAttr(op.attributes[key])]


#: So many elements are looked at together, whether one of them is among the first.
_LOOKED_AT = 32


def select_first(op: ir.Operation, count: int) -> list[ir.Value]:
    """The first `count` elements of each line in sorted order: each element is put into its place among those so far.

    Most are behind the last of them, which one comparison tells; a vector of them is compared at a time. What is read
    of the sorted lines is read of these.
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
    length = kinds[0].shape[dim]

    def one_line(at: list[ir.Value], best: list[ir.Value]) -> list[ir.Value]:
        selection = _Selection(op, at, dim, count)
        best = selection.enter_all(0, count, best)
        blocks = (length - count) // _LOOKED_AT
        best = selection.enter_blocks(blocks, best)
        return selection.enter_all(count + blocks * _LOOKED_AT, length, best)

    return loops(outer, best, one_line)


@dataclass(frozen=True)
class _Selection:
    """The first `count` elements of one line of a sort, the line at `at` along `dim`."""

    op: ir.Operation
    at: list[ir.Value]
    dim: int
    count: int

    def enter_all(self, first: int, last: int, best: list[ir.Value]) -> list[ir.Value]:
        """Looks at elements one by one."""
        if first >= last:
            return best

        def one_element(step: list[ir.Value], best: list[ir.Value]) -> list[ir.Value]:
            position = arith.AddIOp(step[0], as_index(first)).result if first else step[0]
            return self._enter(position, best, fills=first == 0)

        return loops([as_index(last - first)], best, one_element)

    def enter_blocks(self, blocks: int, best: list[ir.Value]) -> list[ir.Value]:
        """Looks at blocks of elements behind the first ones, and then at each of those with one that enters."""
        if not blocks:
            return best

        def one_block(step: list[ir.Value], best: list[ir.Value]) -> list[ir.Value]:
            first = arith.AddIOp(arith.MulIOp(step[0], as_index(_LOOKED_AT)).result, as_index(self.count)).result
            last_so_far = [tensor.ExtractOp(best[0], self._place(as_index(self.count - 1))).result]

            def look(inner: list[ir.Value], enters: list[ir.Value]) -> list[ir.Value]:
                position = arith.AddIOp(first, inner[0]).result
                new = _element(self.op.operands[0], self._place(position), self.dim)
                is_behind = self._in_order(last_so_far, [new])
                return [arith.OrIOp(enters[0], arith.XOrIOp(is_behind, _true()).result).result]

            (enters,) = loops([as_index(_LOOKED_AT)], [arith.XOrIOp(_true(), _true()).result], look)
            branch = scf.IfOp(enters, [line.type for line in best], has_else=True)
            with ir.InsertionPoint(branch.then_block):

                def one_element(inner: list[ir.Value], best: list[ir.Value]) -> list[ir.Value]:
                    return self._enter(arith.AddIOp(first, inner[0]).result, best, fills=False)

                scf.YieldOp(loops([as_index(_LOOKED_AT)], best, one_element))
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp(best)
            return list(branch.results)

        return loops([as_index(blocks)], best, one_block)

    def _enter(self, position: ir.Value, best: list[ir.Value], fills: bool) -> list[ir.Value]:
        """Puts an element into its place, if it has one; while the first ones `fill` theirs, all have."""
        new = [_element(line, self._place(position), self.dim) for line in self.op.operands]
        if fills:
            return self._insert(position, best, new)
        enters = arith.XOrIOp(self._stays(as_index(self.count - 1), best, new), _true()).result
        branch = scf.IfOp(enters, [line.type for line in best], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp(self._insert(as_index(self.count - 1), best, new))
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp(best)
        return list(branch.results)

    def _insert(self, start: ir.Value, best: list[ir.Value], new: list[ir.Value]) -> list[ir.Value]:
        """Moves what comes behind a new element on by one, from `start` down, and puts it there."""
        hole = scf.WhileOp([start.type, *(line.type for line in best)], [start, *best])
        kinds = [value.type for value in hole.results]
        before = ir.Block.create_at_start(hole.before, kinds)
        with ir.InsertionPoint(before):
            position, *lines = before.arguments
            previous = arith.SubIOp(arith.MaxUIOp(position, as_index(1)).result, as_index(1)).result
            is_first = arith.CmpIOp(arith.CmpIPredicate.eq, position, as_index(0)).result
            stops = arith.OrIOp(is_first, self._stays(previous, lines, new)).result
            scf.ConditionOp(arith.XOrIOp(stops, _true()).result, list(before.arguments))
        after = ir.Block.create_at_start(hole.after, kinds)
        with ir.InsertionPoint(after):
            position, *lines = after.arguments
            previous = arith.SubIOp(position, as_index(1)).result
            moved = [
                tensor.InsertOp(
                    tensor.ExtractOp(line, self._place(previous)).result, line, self._place(position)
                ).result
                for line in lines
            ]
            scf.YieldOp([previous, *moved])
        position, *lines = hole.results
        pairs = zip(new, lines, strict=True)
        return [tensor.InsertOp(element, line, self._place(position)).result for element, line in pairs]

    def _stays(self, position: ir.Value, best: list[ir.Value], new: list[ir.Value]) -> ir.Value:
        """Whether one of the first so far is in front of a new element."""
        return self._in_order([tensor.ExtractOp(line, self._place(position)).result for line in best], new)

    def _in_order(self, old: list[ir.Value], new: list[ir.Value]) -> ir.Value:
        pairs = [element for pair in zip(old, new, strict=True) for element in pair]
        filler = list(self.op.regions[0].blocks[0].arguments)[len(pairs) :]
        in_order = copy_block(self.op.regions[0].blocks[0], [*pairs, *filler])[0]
        return arith.OrIOp(in_order, _is_nan_in_order(self.op, old[0], new[0])).result

    def _place(self, position: ir.Value) -> list[ir.Value]:
        return [*self.at[: self.dim], position, *self.at[self.dim :]]


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
