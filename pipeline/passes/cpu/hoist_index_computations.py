"""hoist-index-computations: of places that are computed, what depends on one loop alone is computed once along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.body_cost import op_cost
from pipeline.analysis.code_motion import needed_ops
from pipeline.analysis.vectorizable import COUNTER
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp, bounded
from pipeline.ir.rewriting import before, build_generic, iterator_types
from pipeline.mlir import arith, clone, ir, linalg, memref
from pipeline.passes.cpu.microkernel.data_dependent_indexing import computes_places
from pipeline.passmanager.patterns import PatternPass, pattern

#: The most elements of a line; longer ones would leave the caches.
_LONGEST = 1 << 16


@dataclass(frozen=True)
class HoistIndexComputations(PatternPass):
    """Take what depends on one loop alone out of an elementwise op that computes places.

    As when an image is resized. Runs on buffers; ops inside of loops are left alone.
    """

    name: ClassVar[str] = "hoist-index-computations"
    anchor: ClassVar[str] = "func.func"

    least: int = field(default=3, metadata={"help": "the instructions that a line has to save for each element"})

    @pattern("linalg.generic")
    def hoist(self, generic: ir.Operation) -> bool:
        """y[i, j] = table[f(i), g(j)]   ->   u[i] = f(i); v[j] = g(j); y[i, j] = table[u[i], v[j]]"""
        view = bounded(generic)
        if view is None or any(view.reductions) or generic.parent.operation.name != "func.func":
            return False
        if not computes_places(generic.regions[0].blocks[0]):
            return False
        lines = [line for line in _lines(view) if line.cost >= self.least]
        if not lines:
            return False
        self.passed(generic, f"computes {sum(len(line.values) for line in lines)} lines ahead")
        _rewrite(view, lines)
        return True


@dataclass(frozen=True)
class _Line:
    """What a body computes from one loop alone: `values` are what the rest reads, `ops` are all that do so."""

    loop: int
    values: list[ir.Value]
    ops: list[ir.Operation]

    @property
    def cost(self) -> int:
        """The instructions that this takes for each element."""
        return sum(map(op_cost, self.ops))


def _lines(view: LinalgOp) -> list[_Line]:
    """For each loop of known size, beside others, what depends on it alone."""
    body = view.body
    ops = [op.operation for op in body.operations][:-1]
    depends = _dependences(view, ops)
    found = []
    for loop, size in enumerate(view.sizes):
        others = [other_size for number, other_size in enumerate(view.sizes) if number != loop and other_size != 1]
        if size is None or not 1 < size <= _LONGEST or not others or 0 in others:
            continue
        own = {value for value, dims in depends.items() if dims == {loop}}
        computed = [op for op in ops if op.name != COUNTER and set(op.results) <= own]
        inside = {*computed}
        values = [
            op.results[0] for op in computed if any(use.owner.operation not in inside for use in op.results[0].uses)
        ]
        if values:
            found.append(_Line(loop, values, [op for op in needed_ops(ops, values) if op in inside]))
    return found


def _dependences(view: LinalgOp, ops: Sequence[ir.Operation]) -> dict[ir.Value, set[int]]:
    """The loops that each value of a body depends on; all of them for what is more than arithmetic."""
    every = set(range(view.loops))
    body = view.body
    depends: dict[ir.Value, set[int]] = {}
    for number, argument in enumerate(body.arguments):
        depends[argument] = every if number >= view.inputs else _dims(view.maps[number])
    for op in ops:
        if op.name == COUNTER:
            depends[op.results[0]] = {ir.IntegerAttr(op.attributes["dim"]).value}
            continue
        plain = op.name.startswith(("arith.", "math.")) and len(op.results) == 1
        operands = [depends.get(operand, set()) for operand in op.operands]
        for result in op.results:
            depends[result] = set().union(*operands) if plain else every
    return depends


def _dims(indexing: ir.AffineMap) -> set[int]:
    """The loops that an operand moves with."""
    return {
        dim
        for dim in range(indexing.n_dims)
        if any(coefficient(expression, dim) != 0 for expression in indexing.results)
    }


def _rewrite(view: LinalgOp, lines: list[_Line]) -> None:
    """Computes the lines in front of an op, which then reads them."""
    made: list[tuple[ir.Value, ir.Value, int]] = []
    with before(view.op):
        for line in lines:
            buffers = [
                memref.AllocOp(_buffer_type(value, view.sizes[line.loop]), [], []).result for value in line.values
            ]
            _compute(view, line, buffers)
            made += [(value, buffer, line.loop) for value, buffer in zip(line.values, buffers, strict=True)]
        _read(view, made)
        for _, buffer, _ in made:
            memref.DeallocOp(buffer)
    view.op.erase()


def _buffer_type(value: ir.Value, size: int | None) -> ir.MemRefType:
    kind = ir.IntegerType.get_signless(64) if isinstance(value.type, ir.IndexType) else value.type
    assert size is not None
    return ir.MemRefType.get([size], kind)


def _compute(view: LinalgOp, line: _Line, buffers: list[ir.Value]) -> None:
    """Writes the op along one loop that computes a line for each of some values."""
    body = view.body
    ops = needed_ops([op.operation for op in body.operations][:-1], line.values)
    read = {operand for op in ops for operand in op.operands}
    numbers = [number for number in range(view.inputs) if body.arguments[number] in read]
    here = [ir.AffineConstantExpr.get(0)] * view.loops
    here[line.loop] = ir.AffineDimExpr.get(0)
    into = ir.AffineMap.get(1, 0, here)
    maps = [
        ir.AffineMap.get(1, 0, [expression.compose(into) for expression in view.maps[number].results])
        for number in numbers
    ]
    arguments = [body.arguments[number] for number in numbers]

    def content(elements: Sequence[ir.Value]) -> list[ir.Value]:
        known = dict(zip(arguments, elements, strict=False))
        for op in ops:
            if op.name == COUNTER:
                known[op.results[0]] = linalg.IndexOp(0).result
                continue
            clone(op, known)
        return [_as_stored(known[value]) for value in line.values]

    inputs = [view.operands[number] for number in numbers]
    maps += [ir.AffineMap.get_identity(1)] * len(buffers)
    build_generic(inputs, buffers, maps, iterator_types([False]), content)


def _read(view: LinalgOp, made: list[tuple[ir.Value, ir.Value, int]]) -> None:
    """Writes the op again, which reads lines for what they hold."""
    body = view.body
    *ops, terminator = [op.operation for op in body.operations]
    operands = list(view.operands)
    inputs, outputs = operands[: view.inputs], operands[view.inputs :]
    count = view.loops
    along = [ir.AffineMap.get(count, 0, [ir.AffineDimExpr.get(loop)]) for _, _, loop in made]
    maps = [*view.maps[: view.inputs], *along, *view.maps[view.inputs :]]

    def content(elements: Sequence[ir.Value]) -> list[ir.Value]:
        own, rest = elements[: len(inputs)], elements[len(inputs) :]
        lines, old = rest[: len(made)], rest[len(made) :]
        known = dict(zip(body.arguments, [*own, *old], strict=True))
        for (value, _, _), line in zip(made, lines, strict=True):
            is_index = isinstance(value.type, ir.IndexType)
            known[value] = arith.IndexCastOp(value.type, line).result if is_index else line
        for op in _needed(ops, list(terminator.operands), known):
            clone(op, known)
        return [known.get(value, value) for value in terminator.operands]

    read = [*inputs, *(buffer for _, buffer, _ in made)]
    build_generic(read, outputs, maps, iterator_types([False] * count), content)


def _needed(ops: list[ir.Operation], values: list[ir.Value], known: dict[ir.Value, ir.Value]) -> list[ir.Operation]:
    """The ops that values need where some are known."""
    return needed_ops([op for op in ops if not any(result in known for result in op.results)], values)


def _as_stored(value: ir.Value) -> ir.Value:
    """An index as an integer."""
    if not isinstance(value.type, ir.IndexType):
        return value
    return arith.IndexCastOp(ir.IntegerType.get_signless(64), value).result
