"""Sorting lines by the digits of their keys, from the last to the first: n steps a digit, and no comparisons.

A key is an unsigned number that is as much larger as an element comes behind the others. Digits have eight bits. Places
are counted for all digits in one pass; then each digit's pass puts what the pass before has left in the order of the
digit, so that equal ones stay in theirs. What moves is keys and places: the elements do once, in the end. Where a digit
is the same in all keys, as the first ones of small integers are, a pass only copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type
from pipeline.mlir import arith, ir, scf, tensor
from pipeline.passes.tensor.tensor_loop_nest import loops, sizes_of

_BITS = 8
_DIGITS = 1 << _BITS

#: Places are numbers of so many bits, whatever the type of an index is.
_PLACE_BITS = 32

_ASCENDING = {
    "arith.cmpf": (arith.CmpFPredicate.OLE, arith.CmpFPredicate.ULE),
    "arith.cmpi": (arith.CmpIPredicate.sle, arith.CmpIPredicate.ule),
}
_DESCENDING = {
    "arith.cmpf": (arith.CmpFPredicate.OGE, arith.CmpFPredicate.UGE),
    "arith.cmpi": (arith.CmpIPredicate.sge, arith.CmpIPredicate.uge),
}
_UNSIGNED = (arith.CmpIPredicate.ule, arith.CmpIPredicate.uge)


@dataclass(frozen=True)
class SortOrder:
    """How a sort orders its first operand.

    Attributes:
        ascending: whether the least comes first. NaN is the greatest.
        unsigned: whether integers have no sign.
    """

    ascending: bool
    unsigned: bool

    @staticmethod
    def of(op: ir.Operation) -> SortOrder | None:
        """That of a tm_tensor.sort; None if it is another one than that of numbers."""
        body = op.regions[0].blocks[0]
        ops = [inner.operation for inner in body.operations]
        if len(ops) != 2 or ops[0].name not in _ASCENDING or list(ops[1].operands) != list(ops[0].results):
            return None
        if list(ops[0].operands) != list(body.arguments)[:2]:
            return None
        predicate = ir.IntegerAttr(ops[0].attributes["predicate"]).value
        ascending = predicate in _ASCENDING[ops[0].name]
        if not ascending and predicate not in _DESCENDING[ops[0].name]:
            return None
        return SortOrder(ascending, ops[0].name == "arith.cmpi" and predicate in _UNSIGNED)


#: Reads an element of an operand at a place, given the dim along which lines run.
ReadElement = Callable[[ir.Value, list[ir.Value], int], ir.Value]


def radix_sort(op: ir.Operation, order: SortOrder, element: ReadElement) -> list[ir.Value]:
    """The operands with all lines, of known length, sorted by their first operand."""
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    sizes = sizes_of(op.operands[0])
    outer = [size for index, size in enumerate(sizes) if index != dim]
    results = [_empty_like(operand, sizes) for operand in op.operands]

    def one_line(at: list[ir.Value], results: list[ir.Value]) -> list[ir.Value]:
        def read(operand: ir.Value, position: ir.Value) -> ir.Value:
            return element(operand, [*at[:dim], position, *at[dim:]], dim)

        def write(results: list[ir.Value], source: ir.Value, target: ir.Value) -> list[ir.Value]:
            place = [*at[:dim], target, *at[dim:]]
            pairs = zip(op.operands, results, strict=True)
            return [tensor.InsertOp(read(operand, source), result, place).result for operand, result in pairs]

        line = _DigitSort(ir.RankedTensorType(op.operands[0].type).get_dim_size(dim), _key_bits(op.operands[0]))
        keys = line.keys(lambda position: _key(read(op.operands[0], position), order))
        return line.sorted(keys, results, write)

    return loops(outer, results, one_line)


def _empty_like(operand: ir.Value, sizes: Sequence[ir.Value]) -> ir.Value:
    kind = ir.RankedTensorType(operand.type)
    known = [size if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim, size in enumerate(sizes)]
    return tensor.EmptyOp(known, kind.element_type).result


def digits_of(operand: ir.Value) -> int:
    """How many digits the keys of an operand have, each of which takes a pass."""
    return _key_bits(operand) // _BITS


def _key_bits(operand: ir.Value) -> int:
    """The bits of a key: those of an element, 8 at least."""
    return max(_BITS, element_type(operand).width)


def _key(value: ir.Value, order: SortOrder) -> ir.Value:
    """The key of an element: an unsigned number that orders as the elements do."""
    kind = value.type
    key = _key_of_integer(value, order) if isinstance(kind, ir.IntegerType) else _key_of_float(value)
    return key if order.ascending else arith.XOrIOp(key, _number(key.type, -1)).result


def _key_of_integer(value: ir.Value, order: SortOrder) -> ir.Value:
    width = ir.IntegerType(value.type).width
    if width < _BITS:
        return arith.ExtUIOp(ir.IntegerType.get_signless(_BITS), value).result
    return value if order.unsigned else arith.XOrIOp(value, _number(value.type, -1 << (width - 1))).result


def _key_of_float(value: ir.Value) -> ir.Value:
    """Bits with the sign flipped, or all of them where it is set; both zeros have one key, and all NaN the last."""
    width = value.type.width
    kind = ir.IntegerType.get_signless(width)
    zero = arith.ConstantOp(value.type, 0.0).result
    is_zero = arith.CmpFOp(arith.CmpFPredicate.OEQ, value, zero).result
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result
    bits = arith.BitcastOp(kind, arith.SelectOp(is_zero, zero, value).result).result
    sign = arith.ShRSIOp(bits, _number(kind, width - 1)).result
    flipped = arith.XOrIOp(bits, arith.OrIOp(sign, _number(kind, -1 << (width - 1))).result).result
    return arith.SelectOp(is_nan, _number(kind, -1), flipped).result


def _number(kind: ir.Type, value: int) -> ir.Value:
    return arith.ConstantOp(kind, value).result


@dataclass(frozen=True)
class _DigitSort:
    """One line: how long it is, and how many bits its keys have."""

    length: int
    bits: int

    @property
    def digits(self) -> int:
        """How many digits a key has."""
        return self.bits // _BITS

    def keys(self, key: Callable[[ir.Value], ir.Value]) -> tuple[ir.Value, ir.Value]:
        """The keys of all elements, and for each digit and each of its values where those that have it begin."""
        kind = ir.IntegerType.get_signless(self.bits)
        place = ir.IntegerType.get_signless(_PLACE_BITS)
        counts = tensor.EmptyOp([self.digits * _DIGITS], place).result
        zero, unit = _number(place, 0), _number(place, 1)

        def clear(step: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
            return [tensor.InsertOp(zero, carried[0], step).result]

        def count(step: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
            keys, counts = carried
            value = key(step[0])
            for digit in range(self.digits):
                where = [self.digit(value, digit)]
                more = arith.AddIOp(tensor.ExtractOp(counts, where).result, unit).result
                counts = tensor.InsertOp(more, counts, where).result
            return [tensor.InsertOp(value, keys, step).result, counts]

        (counts,) = loops([as_index(self.digits * _DIGITS)], [counts], clear)
        keys, counts = loops([as_index(self.length)], [tensor.EmptyOp([self.length], kind).result, counts], count)
        return keys, self._starts(counts)

    def _starts(self, counts: ir.Value) -> ir.Value:
        """Where those begin that have a digit, from how many there are of each."""
        zero = _number(ir.IntegerType.get_signless(_PLACE_BITS), 0)

        def one_digit(at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
            first = arith.MulIOp(at[0], as_index(_DIGITS)).result

            def one_value(step: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
                counts, total = carried
                where = [arith.AddIOp(first, step[0]).result]
                following = arith.AddIOp(total, tensor.ExtractOp(counts, where).result).result
                return [tensor.InsertOp(total, counts, where).result, following]

            return loops([as_index(_DIGITS)], [carried[0], zero], one_value)[:1]

        return loops([as_index(self.digits)], [counts], one_digit)[0]

    def digit(self, key: ir.Value, number: int) -> ir.Value:
        """Where the counts of a key's digit are, 0 for the last one."""
        shifted = arith.ShRUIOp(key, _number(key.type, _BITS * number)).result if number else key
        low = arith.AndIOp(shifted, _number(key.type, _DIGITS - 1)).result if self.bits > _BITS else shifted
        index = arith.IndexCastUIOp(ir.IndexType.get(), low).result
        return arith.AddIOp(index, as_index(_DIGITS * number)).result if number else index

    def sorted(
        self,
        keys: tuple[ir.Value, ir.Value],
        results: list[ir.Value],
        write: Callable[[list[ir.Value], ir.Value, ir.Value], list[ir.Value]],
    ) -> list[ir.Value]:
        """`results` as `write` has them with the element at one place put to another, for all in order."""
        place = ir.IntegerType.get_signless(_PLACE_BITS)
        (source, counts), places = keys, None
        kind = ir.RankedTensorType(source.type).element_type
        spare = [tensor.EmptyOp([self.length], each).result for each in (kind, place, place)]
        for number in range(self.digits):
            carried = [counts, *(results if number == self.digits - 1 else (spare[0], spare[1]))]
            moved = self._pass(number, source, places, carried, write if number == self.digits - 1 else None)
            counts, *rest = moved
            if number == self.digits - 1:
                return rest
            spare, source, places = [source, places if places is not None else spare[2]], rest[0], rest[1]
        raise AssertionError("a key has a digit")

    def _pass(
        self,
        number: int,
        source: ir.Value,
        places: ir.Value | None,
        carried: list[ir.Value],
        write: Callable[[list[ir.Value], ir.Value, ir.Value], list[ir.Value]] | None,
    ) -> list[ir.Value]:
        """Puts keys and the places that they come from, or in the last pass the elements, in the order of a digit."""
        kind = ir.IntegerType.get_signless(_PLACE_BITS)

        def moved(at: ir.Value, to: ir.Value, targets: list[ir.Value]) -> list[ir.Value]:
            origin = None if places is None else tensor.ExtractOp(places, [at]).result
            if write is not None:
                return write(
                    targets, at if origin is None else arith.IndexCastUIOp(ir.IndexType.get(), origin).result, to
                )
            origin = arith.IndexCastUIOp(kind, at).result if origin is None else origin
            pairs = zip((tensor.ExtractOp(source, [at]).result, origin), targets, strict=True)
            return [tensor.InsertOp(value, target, [to]).result for value, target in pairs]

        def copy(step: list[ir.Value], targets: list[ir.Value]) -> list[ir.Value]:
            return moved(step[0], step[0], targets)

        def one_element(step: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
            counts, *targets = carried
            where = [self.digit(tensor.ExtractOp(source, step).result, number)]
            target = tensor.ExtractOp(counts, where).result
            counts = tensor.InsertOp(arith.AddIOp(target, _number(kind, 1)).result, counts, where).result
            return [counts, *moved(step[0], arith.IndexCastUIOp(ir.IndexType.get(), target).result, targets)]

        branch = scf.IfOp(self._is_constant(number, source, carried[0]), [each.type for each in carried], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([carried[0], *loops([as_index(self.length)], carried[1:], copy)])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp(loops([as_index(self.length)], carried, one_element))
        return list(branch.results)

    def _is_constant(self, number: int, source: ir.Value, starts: ir.Value) -> ir.Value:
        """Whether all keys have the same digit: those that have the first one's begin at 0, and end with the line."""
        kind = ir.IntegerType.get_signless(_PLACE_BITS)
        digit = self.digit(tensor.ExtractOp(source, [as_index(0)]).result, number)
        last = as_index(_DIGITS * (number + 1) - 1)
        following = arith.MinUIOp(arith.AddIOp(digit, as_index(1)).result, last).result
        is_last = arith.CmpIOp(arith.CmpIPredicate.eq, digit, last).result
        end = arith.SelectOp(is_last, _number(kind, self.length), tensor.ExtractOp(starts, [following]).result).result
        is_first = arith.CmpIOp(
            arith.CmpIPredicate.eq, tensor.ExtractOp(starts, [digit]).result, _number(kind, 0)
        ).result
        ends = arith.CmpIOp(arith.CmpIPredicate.eq, end, _number(kind, self.length)).result
        return arith.AndIOp(is_first, ends).result
