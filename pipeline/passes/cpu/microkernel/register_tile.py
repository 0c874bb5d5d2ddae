"""A register tile at a place: computes the body of an op on its vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from types import MappingProxyType

from pipeline.analysis.reduction_combiners import FOLDS
from pipeline.analysis.vectorizable import COUNTER, LOAD
from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type, is_scalar
from pipeline.mlir import arith, clone, constant_integer, ir, math, memref, terminator, vector
from pipeline.passes.cpu.microkernel import gather_loads, narrow_elements
from pipeline.passes.cpu.microkernel.data_dependent_indexing import step_along
from pipeline.passes.cpu.microkernel.lane_factors import lane, load_lanes
from pipeline.passes.cpu.microkernel.rounding import round_and_convert, rounded_by_conversion
from pipeline.passes.cpu.microkernel.tile_loads_stores import TileAccesses
from pipeline.passes.cpu.microkernel.tile_sizes import DIVISIONS
from pipeline.passes.cpu.microkernel.vector_builders import combine, splat
from pipeline.passes.cpu.microkernel.window_unrolling import Tap, offsets


class RegisterTile(TileAccesses):
    """A tile at a place, whose elements are computed vector by vector."""

    def where_inside(self, new: list[ir.Value], old: list[ir.Value]) -> list[ir.Value]:
        """The new values of a row in the lanes that the mask lets through, the old ones elsewhere."""
        mask = None if self.position.mask is None else self._mask_vector()
        return [
            arith.SelectOp(mask, one, other).result if self._is_masked(n % self.position.vectors) else one
            for n, (one, other) in enumerate(zip(new, old, strict=True))
        ]

    def fold_into(self, output: int, fold: str, vectors: list[ir.Value], initial: ir.Value | None) -> None:
        """Combines vectors of partial results with `initial`, else with an output's element, and stores it there."""
        buffer = self.stage.view.operands[output]
        indices = self._indices(output, {**self.position.at, self.stage.tile.vector_dim: as_index(0)}, 0, 0)
        while len(vectors) > 1:
            left, right, *rest = vectors
            vectors = [*rest, combine(fold, left, right)]
        kind = element_type(buffer)
        row = vector.ReductionOp(
            kind,
            ir.Attribute.parse(f"#vector.kind<{FOLDS[fold][0]}>"),
            vectors[0],
            fastmath=ir.Attribute.parse("#arith.fastmath<reassoc>"),
        ).result
        start = memref.LoadOp(buffer, indices).result if initial is None else initial
        memref.StoreOp(combine(fold, start, row), buffer, indices)

    def compute(
        self,
        at: dict[int, ir.Value],
        accumulators: list[ir.Value],
        given: Mapping[ir.Value, list[ir.Value]] = MappingProxyType({}),
    ) -> list[ir.Value]:
        """The body on every vector of the tile.

        `accumulators` are the old values of the outputs, none if the body does not read them; `given` has buffers whose
        vectors are there already.
        """
        view = self.stage.view
        tiles = self.position.rows * self.position.vectors
        loaded: dict[tuple[int, int, int], ir.Value] = {}
        results: list[list[ir.Value]] = [[] for _ in view.outputs]
        for row in range(self.position.rows):
            for column in range(self.position.vectors):
                known = {}
                for operand in range(view.inputs):
                    buffer = view.operands[operand]
                    if buffer in given:
                        known[view.body.arguments[operand]] = given[buffer][row * self.position.vectors + column]
                        continue
                    key = (operand, *self._position(operand, row, column))
                    if key not in loaded:
                        loaded[key] = self.load(operand, at, row, column)
                    known[view.body.arguments[operand]] = loaded[key]
                for number, output in enumerate(view.outputs if accumulators else ()):
                    place = number * tiles + row * self.position.vectors + column
                    known[view.body.arguments[output]] = accumulators[place]
                for number, value in enumerate(self._body(known, at, row, column)):
                    results[number].append(value)
        return [value for output in results for value in output]

    def compute_steps(self, at: dict[int, ir.Value], loop: int, accumulators: list[ir.Value]) -> list[ir.Value]:
        """The body for as many iterations of a loop as a vector has lanes, which hold a factor of each."""
        factor, lanes = self.stage.tile.lane_factor, self.stage.tile.lanes
        assert factor is not None
        places = sorted({self._position(factor, row, 0) for row in range(self.position.rows)})
        loaded = {place: load_lanes(self._buffer(factor), self._indices(factor, at, *place), lanes) for place in places}
        values = accumulators
        for number in range(lanes):
            self._given = {(factor, *place): lane(value, number) for place, value in loaded.items()}
            step = arith.AddIOp(at[loop], as_index(number)).result if number else at[loop]
            values = self.compute({**at, loop: step}, values)
        self._given = {}
        return values

    def compute_rows(self, at: dict[int, ir.Value], accumulators: list[ir.Value]) -> list[ir.Value]:
        """The body on every vector of the tile; lanes of vectors hold a factor of each row.

        The last vector begins so early that it ends with the last row.
        """
        factor, lanes, rows = self.stage.tile.lane_factor, self.stage.tile.lanes, self.position.rows
        assert factor is not None
        self._given = {}
        for first in range(0, rows if rows >= lanes else 0, lanes):
            start = min(first, rows - lanes)
            value = load_lanes(self._buffer(factor), self._indices(factor, at, start, 0), lanes)
            self._given |= {(factor, row, 0): lane(value, row - start) for row in range(first, start + lanes)}
        values = self.compute(at, accumulators)
        self._given = {}
        return values

    def compute_taps(
        self, at: dict[int, ir.Value], taps: Sequence[Tap], accumulators: list[ir.Value]
    ) -> list[ir.Value]:
        """The body for every tap and vector of the tile, in the order in which the inputs lie in memory.

        What several taps read is loaded once, and used by all of them right away. Each accumulator sees its taps in
        their own order.
        """
        view, tile = self.stage.view, self.stage.tile
        values, places = list(accumulators), self.position.rows * self.position.vectors
        steps = []
        for tap, row, column in product(taps, range(self.position.rows), range(self.position.vectors)):
            moved = [(tile.row_dim, row), (tile.vector_dim, column * tile.lanes), *tap.items()]
            read = tuple(offsets(view, operand, moved) for operand in range(view.inputs))
            steps.append((read, tap, row, column))
        widest = max(range(view.inputs), key=lambda operand: len({read[operand] for read, *_ in steps}))
        loaded: dict[tuple[int, tuple[int, ...], bool], ir.Value] = {}
        for read, tap, row, column in sorted(steps, key=lambda step: step[0][widest]):
            here = {**at, **{dim: as_index(number) for dim, number in tap.items()}}
            known = {}
            for operand in range(view.inputs):
                key = operand, read[operand], self._is_masked(column)
                if key not in loaded:
                    loaded[key] = self.load(operand, here, row, column)
                known[view.body.arguments[operand]] = loaded[key]
            place = row * self.position.vectors + column
            for number, output in enumerate(view.outputs):
                known[view.body.arguments[output]] = values[number * places + place]
            for number, value in enumerate(self._body(known, here, row, column)):
                values[number * places + place] = value
        return values

    def _position(self, operand: int, row: int, column: int) -> tuple[int, int]:
        """(row, column), each 0 where the operand does not move with it: those share a load."""
        tile, view = self.stage.tile, self.stage.view
        fixed_in_rows = tile.row_dim is None or view.moves(operand, tile.row_dim) == "fixed"
        return 0 if fixed_in_rows else row, 0 if view.moves(operand, tile.vector_dim) == "fixed" else column

    def _body(self, known: dict[ir.Value, ir.Value], at: dict[int, ir.Value], row: int, column: int) -> list[ir.Value]:
        """The body on vectors: `known` has those of its arguments, `at` where the tile is."""
        stage = self.stage
        numbers = self._numbers(at, row, column)

        def value(scalar: ir.Value) -> ir.Value:
            if scalar in known:
                return known[scalar]
            known[scalar] = self._broadcast(narrow_elements.number(numbers.get(scalar, scalar)))
            return known[scalar]

        for op in stage.view.body_ops:
            if op in stage.multiply_adds.absorbed or op in stage.uniform:
                continue
            if op.name == "arith.constant":
                known[op.results[0]] = splat(op, stage.tile.lanes)
            elif op in stage.multiply_adds.products:
                left, right, addend = stage.multiply_adds.products[op]
                known[op.results[0]] = math.FmaOp(value(left), value(right), value(addend)).result
            elif op.name == COUNTER:
                first = self._counter(stage.tile.vector_dim, at, row, column)
                known[op.results[0]] = gather_loads.counting(first, stage.tile.lanes)
            elif op.name == LOAD:
                known[op.results[0]] = self._load_at(op, numbers, value, column)
            else:
                operands = [value(operand) for operand in op.operands]
                if self._is_masked(column) and op.name in DIVISIONS:
                    operands[1] = self._one_outside(operands[1])
                self._clone(op, operands, known)
        return [value(operand) for operand in terminator(stage.view.body).operands]

    def _numbers(self, at: dict[int, ir.Value], row: int, column: int) -> dict[ir.Value, ir.Value]:
        """What the body computes for all lanes at once."""
        stage, numbers = self.stage, dict[ir.Value, ir.Value]()
        if not stage.uniform:
            return numbers
        read = {operand for op in stage.uniform for operand in op.operands}
        for operand, argument in enumerate(stage.view.body.arguments):
            if argument not in read:
                continue
            source = stage.view.operands[operand]
            indices = [] if is_scalar(source) else self._indices(operand, at, row, column)
            numbers[argument] = source if is_scalar(source) else memref.LoadOp(source, indices).result
        for op in stage.uniform:
            if op.name == COUNTER:
                dim = ir.IntegerAttr(op.attributes["dim"]).value
                numbers[op.results[0]] = self._counter(dim, at, row, column)
                continue
            clone(op, numbers)
        return numbers

    def _counter(self, dim: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """The counter of a loop, in the first lane."""
        tile = self.stage.tile
        shift = {tile.row_dim: row, tile.vector_dim: column * tile.lanes}.get(dim, 0)
        return arith.AddIOp(at[dim], as_index(shift)).result if shift else at[dim]

    def _load_at(
        self,
        load: ir.Operation,
        numbers: dict[ir.Value, ir.Value],
        value: Callable[[ir.Value], ir.Value],
        column: int,
    ) -> ir.Value:
        """What a load of the body reads in each lane: neighbours as a line, other elements one by one."""
        table, *indices = load.operands
        tile = self.stage.tile
        mask = self._mask_vector() if self._is_masked(column) else None

        def number(index: ir.Value) -> ir.Value | None:
            return numbers.get(index, None if index in self.stage.body_values else index)

        outer = gather_loads.all_known([number(index) for index in indices[:-1]])
        last = number(indices[-1]) if indices else None
        if outer is not None and (not indices or last is not None):
            return self._broadcast(gather_loads.load_number(table, outer if last is None else [*outer, last]))
        step = step_along(indices[-1], tile.vector_dim, self.stage.varying)
        if outer is not None and (step == 1 or (step == -1 and mask is None)):
            first = vector.ExtractOp(value(indices[-1]), [], [0]).result
            if step == 1:
                return gather_loads.load_line(table, [*outer, first], tile.lanes, mask)
            return gather_loads.load_line_backwards(table, [*outer, first], tile.lanes)
        count = None if mask is None else constant_integer(self.position.mask)
        return gather_loads.gather(table, indices, number, value, mask, count)

    def _one_outside(self, divisor: ir.Value) -> ir.Value:
        """`divisor` in the lanes that the mask lets through, 1 elsewhere: a division by the 0 that is there traps."""
        one = ir.DenseElementsAttr.get_splat(divisor.type, ir.IntegerAttr.get(divisor.type.element_type, 1))
        return arith.SelectOp(self._mask_vector(), divisor, arith.ConstantOp(divisor.type, one).result).result

    def _clone(self, op: ir.Operation, operands: list[ir.Value], known: dict[ir.Value, ir.Value]) -> None:
        rounded = rounded_by_conversion(op, self.stage.tile.lanes)
        if rounded is not None and rounded in known:
            known[op.results[0]] = round_and_convert(known[rounded])
            return
        converted = narrow_elements.convert(op, operands[0])
        if converted is not None:
            known[op.results[0]] = converted
            return
        lanes = self.stage.tile.lanes
        kinds = [ir.VectorType.get([lanes], narrow_elements.held(result.type)) for result in op.results]
        attributes = {name: op.attributes[name] for name in op.attributes}
        copy = ir.Operation.create(op.name, results=kinds, operands=operands, attributes=attributes)
        known.update(zip(op.results, copy.results, strict=True))
