"""guard-traps: what would crash or abort at run time becomes a check that the runtime reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.attributes import CHECKS, STATUS
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import add_argument, argument_marks, size_of
from pipeline.mlir import arith, defining_op, function, ir, linalg, memref, scf, tensor, walk
from pipeline.passes.tensor.all_of_check import all_hold, hold_for
from pipeline.passes.tensor.negative_pads import take_away_first
from pipeline.passes.tensor.trap_conditions import (
    SIZED,
    Signs,
    clamp,
    is_unknown,
    make_divisible,
    make_size,
    may_be_zero,
    sizes_of,
)
from pipeline.passmanager.base import Pass
from pipeline.remarks import source_line

_DIVISIONS = (
    "arith.divsi",
    "arith.floordivsi",
    "arith.ceildivsi",
    "arith.remsi",
    "arith.divui",
    "arith.remui",
)

#: What numbers that are no elements are computed in.
_AROUND_NUMBERS = ("func.func", "scf.if", "scf.for", "scf.while")


@dataclass(frozen=True)
class GuardTraps(Pass):
    """Make indices out of range, integer division by zero, negative sizes and failed asserts errors of the call.

    @main gets an argument `pipeline.status`, where the number of a failed check is left; the module's attribute
    `pipeline.checks` has their messages. The guarded op itself then reads index 0, divides by 1 or makes an empty
    tensor, so that nothing traps; what it computes is thrown away. Torch-mlir's assert against 1/0 in floating point
    goes: that is infinity.
    """

    name: ClassVar[str] = "guard-traps"
    mandatory: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Guards every op of @main."""
        main = function(op, "main")
        checks = Checks(main)
        for generic in walk(main, "linalg.generic"):
            _guard_generic(generic, checks)
        for scatter in walk(main, "tm_tensor.scatter"):
            _guard_scatter(scatter, checks)
        for division in walk(main, *_DIVISIONS):
            _guard_number(division, checks)
        _guard_sizes(main, checks)
        for pad in walk(main, "tensor.pad"):
            _guard_pad(pad, checks)
        for assertion in walk(main, "cf.assert"):
            if _is_false(assertion.operands[0]):
                self.fail(assertion, ir.StringAttr(assertion.attributes["msg"]).value)
            with assertion.location, ir.InsertionPoint(assertion):
                message = ir.StringAttr(assertion.attributes["msg"]).value
                checks.add(assertion.operands[0], message, assertion)
            assertion.erase()
        checks.finish(op)


def _is_false(value: ir.Value) -> bool:
    """Whether a condition is known not to hold: it would fail at every call."""
    producer = defining_op(value)
    return producer is not None and producer.name == "arith.constant" and str(producer.attributes["value"]) == "false"


@dataclass
class Checks:
    """The checks made so far, and the status argument that they write to."""

    main: ir.Operation
    messages: list[str] = field(default_factory=list)
    status: ir.Value | None = None

    @classmethod
    def reopened(cls, module: ir.Operation) -> Checks:
        """Those of a module, for more."""
        main = function(module, "main")
        known = (
            [ir.StringAttr(message).value for message in module.attributes[CHECKS]]
            if CHECKS in module.attributes
            else []
        )
        arguments = zip(main.regions[0].blocks[0].arguments, argument_marks(main), strict=True)
        return cls(main, known, next((argument for argument, mark in arguments if STATUS in mark), None))

    def add(self, ok: ir.Value, what: str, op: ir.Operation) -> None:
        """At the insertion point: unless `ok`, leaves the number of this check in the status."""
        line = source_line(op.location)
        self.messages.append(f"{what} (at {line})" if line else what)
        false = arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result
        failed = arith.CmpIOp(arith.CmpIPredicate.eq, ok, false).result
        number = arith.ConstantOp(_i64(), len(self.messages)).result
        branch = scf.IfOp(failed)
        with ir.InsertionPoint(branch.then_block):
            memref.StoreOp(number, self._status(), [as_index(0)])
            scf.YieldOp([])

    def _status(self) -> ir.Value:
        if self.status is None:
            self.status = add_argument(self.main, ir.MemRefType.get([1], _i64()), STATUS)
        return self.status

    def finish(self, module: ir.Operation) -> None:
        """Writes down the messages."""
        module.attributes[CHECKS] = ir.ArrayAttr.get([ir.StringAttr.get(m) for m in self.messages])


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _guard_generic(generic: ir.Operation, checks: Checks) -> None:
    body = generic.regions[0].blocks[0]
    ops = [op.operation for op in body.operations]
    gathers = [op for op in ops if op.name == "tensor.extract" and _is_data_dependent(op)]
    divisions = [op for op in ops if op.name in _DIVISIONS and may_be_zero(op.operands[1])]
    asserts = [op for op in ops if op.name == "cf.assert"]
    kept = [] if gathers else [op for op in asserts if "zero element" not in ir.StringAttr(op.attributes["msg"]).value]
    conditions: dict[str, list[ir.Value]] = {}
    for gather in gathers:
        conditions.setdefault("index out of range", []).extend(clamp(gather))
    for division in divisions:
        conditions.setdefault("integer division by zero", []).append(make_divisible(division))
    for assertion in kept:
        message = ir.StringAttr(assertion.attributes["msg"]).value
        conditions.setdefault(message, []).append(assertion.operands[0])
    for message, values in conditions.items():
        with generic.location, ir.InsertionPoint(generic):
            checks.add(all_hold(generic, values), message, generic)
    for assertion in asserts:
        assertion.erase()


def _guard_number(division: ir.Operation, checks: Checks) -> None:
    """Checks a division of numbers outside of kernels: a size may be 0, too."""
    divisor = defining_op(division.operands[1])
    is_constant = divisor is not None and divisor.name == "arith.constant"
    if division.parent.name not in _AROUND_NUMBERS or (is_constant and not is_unknown(division.operands[1])):
        return
    compared = make_divisible(division).owner
    with compared.location, ir.InsertionPoint.after(compared):
        checks.add(compared.results[0], "integer division by zero", compared)


def _guard_sizes(main: ir.Operation, checks: Checks) -> None:
    """Checks the sizes of tensors and of parts, whose memory would be someone else's if they were negative."""
    signs = Signs()
    found = [(size, op) for op in walk(main, *SIZED) for size in sizes_of(op) if signs.may_be_negative(size)]
    first_in_each_block: dict[tuple[ir.Value, ir.Block], ir.Operation] = {}
    for size, op in found:
        first_in_each_block.setdefault((size, op.block), op)
    for (size, _), op in first_in_each_block.items():
        with op.location, ir.InsertionPoint(op):
            zero = as_index(0)
            checks.add(arith.CmpIOp(arith.CmpIPredicate.sge, size, zero).result, "a size is negative", op)
    for size in dict.fromkeys(size for size, _ in found):
        make_size(size)


def _guard_pad(pad: ir.Operation, checks: Checks) -> None:
    """Checks that no more is taken away than there is, where numbers say how much."""
    with pad.location, ir.InsertionPoint(pad):
        for left in take_away_first(pad):
            zero = arith.ConstantOp(left.type, 0).result
            checks.add(arith.CmpIOp(arith.CmpIPredicate.sge, left, zero).result, "a size is negative", pad)


def _is_data_dependent(extract: ir.Operation) -> bool:
    return any(is_unknown(index) for index in list(extract.operands)[1:])


def _guard_scatter(scatter: ir.Operation, checks: Checks) -> None:
    """Checks the indices of a tm_tensor.scatter; its lowering leaves out what is out of range."""
    _, indices, original = scatter.operands
    dims = list(ir.DenseI64ArrayAttr(scatter.attributes["dimension_map"]))
    with scatter.location, ir.InsertionPoint(scatter):
        limits = [size_of(original, dim) for dim in dims]
        if len(dims) == 1:  # one index an update: a line, which vectors run along
            indices = _as_line(indices)
        rank = ir.RankedTensorType(indices.type).rank
        held = hold_for(
            [indices],
            [ir.AffineMap.get_identity(rank)],
            rank,
            lambda elements: [_in_range(elements[0], limits, rank - 1)],
        )
        checks.add(held, "index out of range", scatter)


def _as_line(indices: ir.Value) -> ir.Value:
    """[n, 1] as [n]."""
    kind = ir.RankedTensorType(indices.type)
    line = ir.RankedTensorType.get([kind.shape[0]], kind.element_type)
    return tensor.CollapseShapeOp(line, indices, ir.Attribute.parse("[[0, 1]]")).result


def _in_range(index: ir.Value, limits: list[ir.Value], columns: int) -> ir.Value:
    """-limit <= index < limit, where the limit is the one of the index's column, a position in the dim `columns`."""
    limit = limits[0]
    column = linalg.IndexOp(columns).result if len(limits) > 1 else limit
    for number, other in enumerate(limits[1:], start=1):
        this = arith.CmpIOp(arith.CmpIPredicate.eq, column, as_index(number)).result
        limit = arith.SelectOp(this, other, limit).result
    place = arith.IndexCastOp(ir.IndexType.get(), index).result
    shifted = arith.AddIOp(place, limit).result
    below = arith.CmpIOp(arith.CmpIPredicate.slt, place, limit).result
    above = arith.CmpIOp(arith.CmpIPredicate.sge, shifted, as_index(0)).result
    return arith.AndIOp(below, above).result
