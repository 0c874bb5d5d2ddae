"""Ops that could trap made harmless, with the condition under which they would not have trapped."""

from __future__ import annotations

from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import size_of
from pipeline.mlir import arith, constant_integer, defining_op, ir


def is_unknown(value: ir.Value) -> bool:
    """Whether a value in a generic's body comes from tensors' elements, not from loop indices and constants alone.

    What is defined outside of the body (a size, a constant) counts as known unless it is no constant and no size.
    """
    producer = defining_op(value)
    if producer is None:
        return True
    if producer.name == "arith.constant":
        return ir.IntegerAttr(producer.attributes["value"]).value == 0
    if producer.name in ("linalg.index", "tensor.dim"):
        return False
    if producer.name == "tensor.extract":
        return True
    return not producer.operands or any(is_unknown(operand) for operand in producer.operands if not _is_zero(operand))


def _is_zero(value: ir.Value) -> bool:
    producer = defining_op(value)
    return producer is not None and producer.name == "arith.constant"


def may_be_zero(divisor: ir.Value) -> bool:
    """Whether a divisor in a generic's body may be 0 in an iteration.

    Indices are divided by sizes, and loops of such a size run no round where it is 0. Numbers that are elements may be
    divided by any number, also by a size that no loop has.
    """
    return is_unknown(divisor) or not (isinstance(divisor.type, ir.IndexType) or constant_integer(divisor))


def clamp(gather: ir.Operation) -> list[ir.Value]:
    """Makes a tensor.extract read index 0 where its indices are out of range; returns whether each is not."""
    source, *indices = gather.operands
    with gather.location, ir.InsertionPoint(gather):
        inside = []
        zero = as_index(0)
        for dim, index in enumerate(indices):
            if not is_unknown(index):
                continue
            size = size_of(source, dim)
            below = arith.CmpIOp(arith.CmpIPredicate.ult, index, size).result  # unsigned: covers negative ones
            inside.append(below)
            gather.operands[1 + dim] = arith.SelectOp(below, index, zero).result
    return inside


#: What is not negative where none of its operands is.
_KEEPS_SIGN = (
    *("arith.addi", "arith.muli", "arith.divsi", "arith.divui", "arith.floordivsi", "arith.ceildivsi"),
    *("arith.remsi", "arith.remui", "arith.minsi", "arith.index_cast"),
)


class Signs:
    """Which integers may be negative, each found out once. Nothing may be changed while it is in use."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, bool] = {}

    def may_be_negative(self, size: ir.Value) -> bool:
        """Whether nothing says that an integer is 0 or more; sums and products of sizes do not overflow."""
        if size not in self._known:
            self._known[size] = self._find(size)
        return self._known[size]

    def _find(self, size: ir.Value) -> bool:
        op = defining_op(size)
        if op is None or op.name in ("tensor.dim", "tensor.rank"):
            return op is None
        if op.name == "arith.constant":
            return ir.IntegerAttr(op.attributes["value"]).value < 0
        if op.name == "arith.maxsi":
            return all(map(self.may_be_negative, op.operands))
        if op.name == "arith.select":
            return any(map(self.may_be_negative, list(op.operands)[1:]))
        return op.name not in _KEEPS_SIGN or any(map(self.may_be_negative, op.operands))


#: What takes sizes among its operands.
SIZED = ("tensor.empty", "tensor.expand_shape", "tensor.extract_slice", "tensor.insert_slice")


def sizes_of(op: ir.Operation) -> list[ir.Value]:
    """The sizes that one of `SIZED` takes and that are not known."""
    return [op.operands[number] for number in _sizes(op)]


def _sizes(op: ir.Operation) -> range:
    """The numbers of the operands that are sizes."""
    if op.name == "tensor.empty":
        return range(len(op.operands))
    if op.name == "tensor.expand_shape":
        return range(1, len(op.operands))
    *before, sizes, _ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    return range(sum(before), sum(before) + sizes)


def make_size(size: ir.Value) -> None:
    """Has tensors and parts of them be of max(size, 0) where they are of `size`."""
    op = defining_op(size)
    where = ir.InsertionPoint.at_block_begin(size.owner) if op is None else ir.InsertionPoint.after(op)
    uses = [(use.owner.operation, use.operand_number) for use in size.uses if use.owner.name in SIZED]
    with size.location, where:
        positive = arith.MaxSIOp(size, arith.ConstantOp(size.type, 0).result).result
    for user, number in uses:
        if number in _sizes(user):
            user.operands[number] = positive


def make_divisible(division: ir.Operation) -> ir.Value:
    """Divides by 1 where the divisor is 0; signed division divides magnitudes; returns divisor != 0.

    The magnitudes are divided as unsigned numbers, because x86 traps on the least integer divided by -1. Choosing
    another divisor for that case does not help: LLVM sees through it.
    """
    dividend, divisor = division.operands
    with division.location, ir.InsertionPoint(division):
        zero, one = (arith.ConstantOp(divisor.type, number).result for number in (0, 1))
        nonzero = arith.CmpIOp(arith.CmpIPredicate.ne, divisor, zero).result
        safe = arith.SelectOp(nonzero, divisor, one).result
        if division.name in ("arith.divui", "arith.remui"):
            division.operands[1] = safe
            return nonzero
        replacement = _signed(division.name, dividend, safe, zero)
    division.results[0].replace_all_uses_with(replacement)
    division.erase()
    return nonzero


def _signed(name: str, dividend: ir.Value, divisor: ir.Value, zero: ir.Value) -> ir.Value:
    """What the signed division `name` gives, by unsigned division of the magnitudes."""
    negative, by_negative = (arith.CmpIOp(arith.CmpIPredicate.slt, x, zero).result for x in (dividend, divisor))
    numerator, denominator = _negated_if(negative, dividend, zero), _negated_if(by_negative, divisor, zero)
    signs_differ = arith.XOrIOp(negative, by_negative).result
    rest = arith.RemUIOp(numerator, denominator).result
    if name == "arith.remsi":
        return _negated_if(negative, rest, zero)
    quotient = _negated_if(signs_differ, arith.DivUIOp(numerator, denominator).result, zero)
    if name == "arith.divsi":
        return quotient
    is_broken = arith.CmpIOp(arith.CmpIPredicate.ne, rest, zero).result
    one = arith.ConstantOp(zero.type, 1).result
    if name == "arith.floordivsi":
        down = arith.AndIOp(is_broken, signs_differ).result
        return arith.SelectOp(down, arith.SubIOp(quotient, one).result, quotient).result
    signs_agree = arith.CmpIOp(arith.CmpIPredicate.eq, negative, by_negative).result
    up = arith.AndIOp(is_broken, signs_agree).result
    return arith.SelectOp(up, arith.AddIOp(quotient, one).result, quotient).result


def _negated_if(condition: ir.Value, value: ir.Value, zero: ir.Value) -> ir.Value:
    return arith.SelectOp(condition, arith.SubIOp(zero, value).result, value).result
