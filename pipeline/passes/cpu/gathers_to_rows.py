"""gathers-to-rows: what reads a table at computed places reads whole rows of it, where only the row is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.constants import as_index
from pipeline.ir.element_types import is_scalar
from pipeline.ir.indexing_maps import moves
from pipeline.ir.linalg_op import LinalgOp, bounded
from pipeline.ir.rewriting import before, build_generic, iterator_types
from pipeline.mlir import affine, clone, defining_op, ir, memref
from pipeline.passmanager.patterns import PatternPass, pattern

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class GathersToRows(PatternPass):
    """Turn an elementwise op that gathers into loops around one that runs along rows.

    What is the same for a whole row, such as the index and the check of it, is computed once for it, and the op along
    the row has a vector form. As for embeddings, and slices at places that are computed. Runs on buffers.
    """

    name: ClassVar[str] = "gathers-to-rows"
    anchor: ClassVar[str] = "func.func"

    shortest: int = field(default=8, metadata={"help": "how many elements a row has at least"})

    @pattern("linalg.generic")
    def read_rows(self, generic: ir.Operation) -> bool:
        """y[i, j] = f(table[indices[i], j])   ->   for i: row = table[indices[i], :]; y[i, j] = f(row[j])"""
        view = bounded(generic)
        gather = None if view is None else _rows_of(view, self.shortest)
        if gather is None:
            return False
        self.passed(generic, f"reads {len(gather.rows)} tables row by row")
        gather.rewrite()
        return True


@dataclass(frozen=True)
class _Gather:
    """A gather whose innermost loop runs along rows.

    Attributes:
        rows: the loads that read rows.
        places: the ops of the body that count along the row, or add a start to that.
        uniform: the ops of the body that are the same for a whole row.
    """

    view: LinalgOp
    rows: list[ir.Operation]
    places: list[ir.Operation]
    uniform: list[ir.Operation]

    @property
    def line(self) -> int:
        """The loop along the rows."""
        return self.view.loops - 1

    def rewrite(self) -> None:
        """Puts loops in the place of the op."""
        from pipeline.passes.cpu.microkernel.vector_builders import parallel_loop  # slow to import

        def level(at: list[ir.Value]) -> None:
            if len(at) == self.line:
                self._along(at)
                return
            parallel_loop(as_index(0), self._size(len(at)), 1, lambda i: level([*at, i]))

        with before(self.view.op):
            level([])
        self.view.op.erase()

    def _along(self, at: list[ir.Value]) -> None:
        """The op along one row, and before it what is the same for all of the row."""
        known = self._compute_uniform(at)
        arguments = list(self.view.body.arguments)
        moving = [number for number in range(self.view.inputs) if moves(self.view.maps[number], self.line) != "fixed"]
        lines = {arguments[number]: self._line(number, at) for number in moving}
        lines |= {load.results[0]: self._row(load, known) for load in self.rows}
        scalars = {value: found for value, found in known.items() if self._is_used_along(value)}
        outputs = {arguments[number]: self._line(number, at) for number in self.view.outputs}

        def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
            inner = dict(zip((*lines, *scalars, *outputs), elements, strict=True))
            *ops, end = [op.operation for op in self.view.body.operations]
            for op in filter(self._runs_along, ops):
                clone(op, inner)
            return [inner[value] for value in end.operands]

        along, single = ir.AffineMap.get_identity(1), ir.AffineMap.get(1, 0, [])
        maps = [*[along] * len(lines), *[single] * len(scalars), *[along] * len(outputs)]
        inputs = [*lines.values(), *scalars.values()]
        build_generic(inputs, list(outputs.values()), maps, iterator_types([False]), body)

    def _compute_uniform(self, at: Sequence[ir.Value]) -> dict[ir.Value, ir.Value]:
        """What is the same for a row, computed: by the values of the body."""
        known: dict[ir.Value, ir.Value] = {}
        for number, argument in enumerate(list(self.view.body.arguments)[: self.view.inputs]):
            operand, indexing = self.view.operands[number], self.view.maps[number]
            if moves(indexing, self.line) == "fixed":
                known[argument] = (
                    operand if is_scalar(operand) else memref.LoadOp(operand, self._place(indexing, at)).result
                )
        for op in self.uniform:
            if op.name == "linalg.index":
                known[op.results[0]] = at[ir.IntegerAttr(op.attributes["dim"]).value]
            else:
                clone(op, known)
        return known

    def _is_used_along(self, value: ir.Value) -> bool:
        """Whether an op that runs for each element reads what is the same for the row."""
        return any(self._runs_along(use.owner.operation) for use in value.uses)

    def _runs_along(self, op: ir.Operation) -> bool:
        """Whether an op of the body computes something for each element of a row."""
        return op not in self.uniform and op not in self.rows and op not in self.places

    def _place(self, indexing: ir.AffineMap, at: Sequence[ir.Value]) -> list[ir.Value]:
        """The indices of an operand outside of the line."""
        fixed = [expression for expression in indexing.results if expression != ir.AffineDimExpr.get(self.line)]
        outer = ir.AffineMap.get(self.line, 0, fixed)
        return [affine.AffineApplyOp(outer.get_submap([number]), at).result for number in range(len(fixed))]

    def _line(self, number: int, at: Sequence[ir.Value]) -> ir.Value:
        """The part of an operand along the row."""
        return _line_of(
            self.view.operands[number], self._place(self.view.maps[number], at), None, self._size_attribute()
        )

    def _row(self, load: ir.Operation, known: dict[ir.Value, ir.Value]) -> ir.Value:
        """The row of a table that a load reads elements of."""
        table, *indices = load.operands
        start = _start(indices[-1], self.line)
        outer = [known.get(index, index) for index in indices[:-1]]
        return _line_of(table, outer, None if start is None else known.get(start, start), self._size_attribute())

    def _size_attribute(self) -> int | ir.Value:
        size = self.view.sizes[self.line]
        return self._size(self.line) if size is None else size

    def _size(self, loop: int) -> ir.Value:
        size = self.view.sizes[loop]
        if size is not None:
            return as_index(size)
        operand, dim = self.view.bounds[loop]
        return memref.DimOp(self.view.operands[operand], as_index(dim)).result


def _line_of(buffer: ir.Value, outer: Sequence[ir.Value], start: ir.Value | None, size: int | ir.Value) -> ir.Value:
    """buffer[outer, start : start + size], as a buffer of one dim."""
    if not outer and start is None:
        return buffer
    rank = len(outer)
    static = size if isinstance(size, int) else _DYNAMIC
    layout = ir.StridedLayoutAttr.get(_DYNAMIC, [1])
    kind = ir.MemRefType.get([static], ir.MemRefType(buffer.type).element_type, layout)
    return memref.SubViewOp(
        kind,
        buffer,
        [*outer, *([] if start is None else [start])],
        [] if isinstance(size, int) else [size],
        [],
        [_DYNAMIC] * rank + [0 if start is None else _DYNAMIC],
        [1] * rank + [static],
        [1] * (rank + 1),
    ).result


def _rows_of(view: LinalgOp, shortest: int) -> _Gather | None:
    """How an op gathers rows; None if it does not."""
    line = view.loops - 1
    size = view.sizes[line] if view.sizes else 0
    if line < 1 or any(view.reductions) or (size is not None and size < shortest) or not _walks(view, line):
        return None
    if any(len(op.regions) for op in view.body_ops):
        return None
    rows, uniform = _rows_and_uniform(view)
    places = _places_of(rows, view.body_ops, line)
    return None if not rows or places is None else _Gather(view, rows, places, uniform)


def _rows_and_uniform(view: LinalgOp) -> tuple[list[ir.Operation], list[ir.Operation]]:
    """Of the ops of a body, the loads that read rows, and those that are the same for a whole row."""
    line = view.loops - 1
    arguments = list(view.body.arguments)
    varying = {argument for argument, read in zip(arguments, view.maps, strict=True) if moves(read, line) != "fixed"}
    varying.update(arguments[view.inputs :])
    rows, uniform = [], []
    for op in view.body_ops:
        if op.name == "memref.load" and _reads_a_row(op, varying, line):
            rows.append(op)
        elif not (_counts(op, line) or varying & set(op.operands)):
            uniform.append(op)
            continue
        varying.update(op.results)
    return rows, uniform


def _places_of(rows: Sequence[ir.Operation], ops: Sequence[ir.Operation], line: int) -> list[ir.Operation] | None:
    """The counters along a row, and what adds a start to them; None if something besides the loads reads them."""
    counters = [op for op in ops if _counts(op, line)]
    lasts = [defining_op(row.operands[len(row.operands) - 1]) for row in rows]
    shifts = [op for op in dict.fromkeys(lasts) if op is not None and op not in counters]
    readers = {use.owner.operation for counter in counters for use in counter.results[0].uses}
    users = {use.owner.operation for shift in shifts for use in shift.results[0].uses}
    return [*counters, *shifts] if readers <= {*rows, *shifts} and users <= set(rows) else None


def _walks(view: LinalgOp, line: int) -> bool:
    """Whether each operand is fixed along a loop, or moves one by one along its innermost dim with that alone."""
    for number, indexing in enumerate(view.maps):
        operand = view.operands[number]
        walk_of = moves(indexing, line)
        if walk_of not in ("fixed", "unit") or (walk_of == "fixed" and number in view.outputs):
            return False
        if walk_of == "unit" and (indexing.results[-1] != ir.AffineDimExpr.get(line) or not _is_dense(operand)):
            return False
    return True


def _is_dense(buffer: ir.Value) -> bool:
    """Whether a buffer's innermost elements are neighbours."""
    strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    return not strides or strides[-1] == 1


def _reads_a_row(load: ir.Operation, varying: set[ir.Value], line: int) -> bool:
    """Whether a load's last index moves with the loop one by one, and nothing else of it moves."""
    table, *indices = load.operands
    if not indices or any(index in varying for index in indices[:-1]) or not _is_dense(table):
        return False
    if indices[-1] not in varying:
        return False
    if _is_counter(indices[-1], line):
        return True
    start = _start(indices[-1], line)
    return start is not None and start not in varying


def _start(index: ir.Value, line: int) -> ir.Value | None:
    """What an index adds to the counter of a loop; None if nothing, or if it is computed otherwise."""
    op = defining_op(index)
    if op is None or op.name != "arith.addi":
        return None
    return next((one for one, other in (op.operands, list(op.operands)[::-1]) if _is_counter(other, line)), None)


def _is_counter(value: ir.Value, line: int) -> bool:
    op = defining_op(value)
    return op is not None and _counts(op, line)


def _counts(op: ir.Operation, line: int) -> bool:
    return op.name == "linalg.index" and ir.IntegerAttr(op.attributes["dim"]).value == line
