"""guard-traps: what would crash or abort at run time becomes a check that the runtime reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from pipeline.analysis.access import coefficient, loops_of
from pipeline.analysis.motion import needed_ops
from pipeline.analysis.structured import bounded_loops
from pipeline.mlir import arith, defining_op, function, ir, linalg, memref, remap_operands, scf, tensor, walk
from pipeline.passes.base import Pass
from pipeline.remarks import source_line

_DIVISIONS = (
    "arith.divsi",
    "arith.floordivsi",
    "arith.ceildivsi",
    "arith.remsi",
    "arith.divui",
    "arith.remui",
)


@dataclass(frozen=True)
class GuardTraps(Pass):
    """Make indices out of range, integer division by zero and failed asserts errors of the call.

    @main gets an argument `pipeline.status`, where the number of a failed check is left; the module's attribute
    `pipeline.checks` has their messages. The guarded op itself then reads index 0, or divides by 1, so that nothing
    traps; what it computes is thrown away. Torch-mlir's assert against 1/0 in floating point goes: that is infinity.
    """

    name: ClassVar[str] = "guard-traps"

    def run(self, op: ir.Operation) -> None:
        """Guards every op of @main."""
        main = function(op, "main")
        checks = _Checks(main)
        for generic in walk(main, "linalg.generic"):
            _guard_generic(generic, checks)
        for scatter in walk(main, "tm_tensor.scatter"):
            _guard_scatter(scatter, checks)
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
class _Checks:
    """The checks made so far, and the status argument that they write to."""

    main: ir.Operation
    messages: list[str] = field(default_factory=list)
    status: ir.Value | None = None

    def add(self, ok: ir.Value, what: str, op: ir.Operation) -> None:
        """At the insertion point: unless `ok`, leaves the number of this check in the status."""
        line = source_line(op.location)
        self.messages.append(f"{what} (at {line})" if line else what)
        false = arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result
        failed = arith.CmpIOp(arith.CmpIPredicate.eq, ok, false).result
        number = arith.ConstantOp(_i64(), len(self.messages)).result
        branch = scf.IfOp(failed)
        with ir.InsertionPoint(branch.then_block):
            memref.StoreOp(number, self._status(), [arith.ConstantOp(ir.IndexType.get(), 0).result])
            scf.YieldOp([])

    def _status(self) -> ir.Value:
        if self.status is None:
            block = self.main.regions[0].blocks[0]
            self.status = block.add_argument(ir.MemRefType.get([1], _i64()), self.main.location)
        return self.status

    def finish(self, module: ir.Operation) -> None:
        """Writes down the messages and the new argument."""
        module.attributes["pipeline.checks"] = ir.ArrayAttr.get([ir.StringAttr.get(m) for m in self.messages])
        if self.status is None:
            return
        block = self.main.regions[0].blocks[0]
        kind = ir.FunctionType(ir.TypeAttr(self.main.attributes["function_type"]).value)
        types = [argument.type for argument in block.arguments]
        marks = [ir.DictAttr.get({})] * len(kind.inputs)
        if "arg_attrs" in self.main.attributes:
            marks = list(self.main.attributes["arg_attrs"])
        marks.append(ir.DictAttr.get({"pipeline.status": ir.UnitAttr.get()}))
        self.main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, kind.results))
        self.main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _guard_generic(generic: ir.Operation, checks: _Checks) -> None:
    body = generic.regions[0].blocks[0]
    ops = [op.operation for op in body.operations]
    gathers = [op for op in ops if op.name == "tensor.extract" and _is_data_dependent(op)]
    divisions = [op for op in ops if op.name in _DIVISIONS and _is_unknown(op.operands[1])]
    asserts = [op for op in ops if op.name == "cf.assert"]
    kept = [] if gathers else [op for op in asserts if "zero element" not in ir.StringAttr(op.attributes["msg"]).value]
    conditions: dict[str, list[ir.Value]] = {}
    for gather in gathers:
        conditions.setdefault("index out of range", []).extend(_clamp(gather))
    for division in divisions:
        conditions.setdefault("integer division by zero", []).append(_make_divisible(division))
    for assertion in kept:
        message = ir.StringAttr(assertion.attributes["msg"]).value
        conditions.setdefault(message, []).append(assertion.operands[0])
    for message, values in conditions.items():
        with generic.location, ir.InsertionPoint(generic):
            held = [_all_hold(generic, group) for group in _by_loops(generic, values)]
            checks.add(reduce(lambda a, b: arith.AndIOp(a, b).result, held), message, generic)
    for assertion in asserts:
        assertion.erase()


def _is_data_dependent(extract: ir.Operation) -> bool:
    return any(_is_unknown(index) for index in list(extract.operands)[1:])


def _is_unknown(value: ir.Value) -> bool:
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
    return not producer.operands or any(_is_unknown(operand) for operand in producer.operands if not _is_zero(operand))


def _is_zero(value: ir.Value) -> bool:
    producer = defining_op(value)
    return producer is not None and producer.name == "arith.constant"


def _clamp(gather: ir.Operation) -> list[ir.Value]:
    """Makes a tensor.extract read index 0 where its indices are out of range; returns whether each is not."""
    source, *indices = gather.operands
    kind = ir.RankedTensorType(source.type)
    with gather.location, ir.InsertionPoint(gather):
        inside = []
        zero = arith.ConstantOp(ir.IndexType.get(), 0).result
        for dim, index in enumerate(indices):
            if not _is_unknown(index):
                continue
            number = arith.ConstantOp(ir.IndexType.get(), dim).result
            size = (
                tensor.DimOp(source, number).result
                if kind.is_dynamic_dim(dim)
                else arith.ConstantOp(ir.IndexType.get(), kind.get_dim_size(dim)).result
            )
            below = arith.CmpIOp(arith.CmpIPredicate.ult, index, size).result  # unsigned: covers negative ones
            inside.append(below)
            gather.operands[1 + dim] = arith.SelectOp(below, index, zero).result
    return inside


def _make_divisible(division: ir.Operation) -> ir.Value:
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


def _by_loops(generic: ir.Operation, conditions: list[ir.Value]) -> list[list[ir.Value]]:
    """The conditions, those together that are checked in the same loops: each once for what it depends on."""
    body = [op.operation for op in generic.regions[0].blocks[0].operations]
    groups: dict[tuple[int, ...], list[ir.Value]] = {}
    for condition in conditions:
        _, dims = _check_loops(generic, needed_ops(body, [condition]), [condition])
        groups.setdefault(tuple(dims), []).append(condition)
    return list(groups.values())


def _all_hold(generic: ir.Operation, conditions: list[ir.Value]) -> ir.Value:
    """At the insertion point: whether the conditions, values of the body of `generic`, hold for all its iterations."""
    body = generic.regions[0].blocks[0]
    needed = needed_ops([op.operation for op in body.operations], conditions)
    numbers, dims = _check_loops(generic, needed, conditions)
    maps = [_over(ir.AffineMapAttr(generic.attributes["indexing_maps"][number]).value, dims) for number in numbers]
    flag = ir.IntegerType.get_signless(1)
    true = arith.ConstantOp(flag, 1).result
    start = linalg.fill(true, outs=[tensor.EmptyOp([], flag).result])
    check = linalg.GenericOp(
        [ir.RankedTensorType.get([], flag)],
        [generic.operands[number] for number in numbers],
        [start],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in [*maps, ir.AffineMap.get(len(dims), 0, [])]]),
        ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<reduction>")] * len(dims)),
    )
    elements = [body.arguments[number] for number in numbers]
    block = ir.Block.create_at_start(check.regions[0], [element.type for element in elements] + [flag])
    known: dict[ir.Value, ir.Value] = dict(zip(elements, block.arguments, strict=False))
    with ir.InsertionPoint(block):
        for op in needed:
            copy = op.clone()
            remap_operands(copy, known)
            if op.name == "linalg.index":
                dim = dims.index(ir.IntegerAttr(op.attributes["dim"]).value)
                copy.attributes["dim"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
            known.update(zip(op.results, copy.results, strict=True))
        both = reduce(lambda a, b: arith.AndIOp(a, b).result, [known.get(one, one) for one in conditions])
        linalg.YieldOp([arith.AndIOp(block.arguments[len(elements)], both).result])
    return tensor.ExtractOp(check.results[0], []).result


def _check_loops(
    generic: ir.Operation, ops: list[ir.Operation], conditions: list[ir.Value]
) -> tuple[list[int], list[int]]:
    """The operands and the loops of a check: those that the conditions depend on, if the others run at all.

    All of them where the others may run no round, for then no condition need hold, and where the others bound a loop.
    """
    body = generic.regions[0].blocks[0]
    maps = [ir.AffineMapAttr(a).value for a in generic.attributes["indexing_maps"]]
    used = {operand for op in ops for operand in op.operands} | set(conditions)
    dims = {ir.IntegerAttr(op.attributes["dim"]).value for op in ops if op.name == "linalg.index"}
    for argument in body.arguments:
        if argument in used:
            dims |= _dims(maps[argument.arg_number])
    loops = loops_of(generic)
    others = [] if loops is None else [size for dim, size in enumerate(loops.sizes) if dim not in dims]
    numbers = [number for number, indexing in enumerate(maps) if _dims(indexing) <= dims]
    if loops is None or not all(others) or bounded_loops([maps[number] for number in numbers]) != dims:
        return list(range(len(maps))), list(range(maps[0].n_dims))
    read = {argument.arg_number for argument in body.arguments if argument in used}
    if bounded_loops([maps[number] for number in read]) == dims:
        numbers = sorted(read)
    return numbers, sorted(dims)


def _dims(indexing: ir.AffineMap) -> set[int]:
    """The loops that a map depends on."""
    return {dim for dim in range(indexing.n_dims) if any(coefficient(e, dim) != 0 for e in indexing.results)}


def _over(indexing: ir.AffineMap, dims: list[int]) -> ir.AffineMap:
    """The map as one of the loops `dims` alone."""
    here = [ir.AffineConstantExpr.get(0)] * indexing.n_dims
    for position, dim in enumerate(dims):
        here[dim] = ir.AffineDimExpr.get(position)
    into = ir.AffineMap.get(len(dims), 0, here)
    return ir.AffineMap.get(len(dims), 0, [expression.compose(into) for expression in indexing.results])


def _guard_scatter(scatter: ir.Operation, checks: _Checks) -> None:
    """Checks the indices of a tm_tensor.scatter; its lowering leaves out what is out of range."""
    _, indices, original = scatter.operands
    dims = list(ir.DenseI64ArrayAttr(scatter.attributes["dimension_map"]))
    kind = ir.RankedTensorType(original.type)
    with scatter.location, ir.InsertionPoint(scatter):
        limits = [
            tensor.DimOp(original, arith.ConstantOp(ir.IndexType.get(), dim).result).result
            if kind.is_dynamic_dim(dim)
            else arith.ConstantOp(ir.IndexType.get(), kind.get_dim_size(dim)).result
            for dim in dims
        ]
        flag = ir.IntegerType.get_signless(1)
        start = linalg.fill(arith.ConstantOp(flag, 1).result, outs=[tensor.EmptyOp([], flag).result])
        if len(dims) == 1:  # one index an update: a line, which vectors run along
            indices = _as_line(indices)
        element, rank = ir.RankedTensorType(indices.type).element_type, ir.RankedTensorType(indices.type).rank
        check = linalg.GenericOp(
            [ir.RankedTensorType.get([], flag)],
            [indices],
            [start],
            ir.ArrayAttr.get(
                [
                    ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank)),
                    ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, [])),
                ]
            ),
            ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<reduction>")] * rank),
        )
        block = ir.Block.create_at_start(check.regions[0], [element, flag])
        with ir.InsertionPoint(block):
            index, held = block.arguments
            linalg.YieldOp([arith.AndIOp(held, _in_range(index, limits, rank - 1)).result])
        checks.add(tensor.ExtractOp(check.results[0], []).result, "index out of range", scatter)


def _as_line(indices: ir.Value) -> ir.Value:
    """[n, 1] as [n]."""
    kind = ir.RankedTensorType(indices.type)
    line = ir.RankedTensorType.get([kind.shape[0]], kind.element_type)
    groups = ir.Attribute.parse("[[0, 1]]")
    return tensor.CollapseShapeOp(line, indices, groups).result


def _in_range(index: ir.Value, limits: list[ir.Value], columns: int) -> ir.Value:
    """-limit <= index < limit, where the limit is the one of the index's column, a position in the dim `columns`."""
    limit = limits[0]
    column = linalg.IndexOp(columns).result if len(limits) > 1 else limit
    for number, other in enumerate(limits[1:], start=1):
        this = arith.CmpIOp(arith.CmpIPredicate.eq, column, arith.ConstantOp(ir.IndexType.get(), number).result).result
        limit = arith.SelectOp(this, other, limit).result
    place = arith.IndexCastOp(ir.IndexType.get(), index).result
    shifted = arith.AddIOp(place, limit).result
    below = arith.CmpIOp(arith.CmpIPredicate.slt, place, limit).result
    above = arith.CmpIOp(arith.CmpIPredicate.sge, shifted, arith.ConstantOp(ir.IndexType.get(), 0).result).result
    return arith.AndIOp(below, above).result
