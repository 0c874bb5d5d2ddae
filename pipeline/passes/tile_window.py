"""A register tile at a place: loads and stores its vectors, and computes the body of an op on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from types import MappingProxyType

import numpy as np

from pipeline.analysis.access import Loops, coefficient, moves
from pipeline.analysis.padding import Pad
from pipeline.analysis.places import COUNTER, LOAD, computes_places, step_along, uniform_ops
from pipeline.analysis.taps import Tap, offsets
from pipeline.analysis.tiling import DIVISIONS, FOLDS, Tile, crosses_vectors, element_type, is_scalar
from pipeline.mlir import affine, arith, ir, math, memref, terminator, vector
from pipeline.passes import place_vectors, small_elements
from pipeline.passes.padded_loads import load_padded
from pipeline.passes.transposed_vectors import transposed
from pipeline.passes.vector_values import MultiplyAdds, combine, constant_index, splat, zeros


@dataclass(frozen=True)
class Stage:
    """An op as it runs on a tile: its maps go from the loops that the tile is of.

    `pads` has the inputs that are padded copies, which are not there: their elements are loaded from what is padded.
    """

    generic: ir.Operation
    loops: Loops
    tile: Tile
    multiply_adds: MultiplyAdds
    pads: Mapping[int, Pad] = field(default_factory=dict)

    @property
    def body(self) -> ir.Block:
        """What runs for each element."""
        return self.generic.regions[0].blocks[0]

    @cached_property
    def body_ops(self) -> list[ir.Operation]:
        """The ops of the body, without its terminator."""
        return [op.operation for op in self.body.operations][:-1]

    @cached_property
    def body_values(self) -> set[ir.Value]:
        """What the body takes and computes."""
        return {*self.body.arguments, *(result for op in self.body_ops for result in op.results)}

    @cached_property
    def uniform(self) -> list[ir.Operation]:
        """Of a body that computes places, the ops that are the same for all lanes: they are done once, on numbers."""
        return uniform_ops(self.body, self.loops, self.tile.vector_dim) if computes_places(self.body) else []

    @cached_property
    def varying(self) -> set[ir.Value]:
        """What is not computed by those."""
        return self.body_values - {op.results[0] for op in self.uniform}


class Window:
    """A tile at a place: loads and stores its vectors, and computes the body on them."""

    def __init__(self, stage: Stage, at: dict[int, ir.Value], rows: int, vectors: int, mask: ir.Value | None):
        self.stage = stage
        self._at = at
        self._rows = rows
        self._vectors = vectors
        self._mask = mask
        self._crossed: dict[tuple[int, int], list[ir.Value]] = {}

    def load(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """A vector of an operand: loaded where it moves along vectors, else one element broadcast."""
        tile = self.stage.tile
        source = self.stage.generic.operands[operand]
        if is_scalar(source):
            return self._broadcast(small_elements.number(source))
        if operand in self.stage.pads:
            return self._load_padded(operand, at, row, column)
        if self._crosses(operand):
            return self._load_crossed(operand, at, column)[row]
        indices, element = self._indices(operand, at, row, column), element_type(source)
        if moves(self.stage.loops.maps[operand], tile.vector_dim) == "fixed":
            number = memref.LoadOp(self._buffer(operand), indices).result
            return self._broadcast(small_elements.after_load(number, element))
        kind = ir.VectorType.get([tile.lanes], small_elements.stored(element))
        return small_elements.after_load(self._load_vector(kind, operand, indices, column), element)

    def _load_padded(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        tile, indexing = self.stage.tile, self.stage.loops.maps[operand]
        moved = {tile.row_dim: row, tile.vector_dim: column * tile.lanes}
        used = [moves(indexing, dim) != "fixed" for dim in range(indexing.n_dims)]
        values = [at[dim] if used[dim] else constant_index(0) for dim in range(indexing.n_dims)]
        shifts = [moved.get(dim, 0) for dim in range(indexing.n_dims)]
        return load_padded(self.stage.pads[operand], indexing, values, shifts, tile.vector_dim, tile.lanes)

    def _crosses(self, operand: int) -> bool:
        tile = self.stage.tile
        return crosses_vectors(self.stage.loops, operand, tile.vector_dim, tile.row_dim)

    def _load_crossed(self, operand: int, at: dict[int, ir.Value], column: int) -> list[ir.Value]:
        """The vectors of all rows of an operand that moves along rows: loaded along those, and transposed.

        Behind the edge of the vectors the last element before it is loaded again.
        """
        if (operand, column) in self._crossed:
            return self._crossed[operand, column]
        tile, source = self.stage.tile, self._buffer(operand)
        kind = ir.VectorType.get([tile.lanes], element_type(source))
        rows = None if self._rows == tile.lanes else self._first_lanes(self._rows)
        lines = []
        for lane in range(tile.lanes):
            step = constant_index(column * tile.lanes + lane)
            if self._is_masked(column):
                last = arith.SubIOp(self._mask, constant_index(1)).result
                step = arith.MinUIOp(step, arith.AddIOp(constant_index(column * tile.lanes), last).result).result
            place = arith.AddIOp(at[tile.vector_dim], step).result
            indices = self._indices(operand, {**at, tile.vector_dim: place}, 0, 0)
            if rows is None:
                lines.append(vector.LoadOp(kind, source, indices).result)
            else:
                lines.append(vector.MaskedLoadOp(kind, source, indices, rows, zeros(kind)).result)
        element = element_type(self.stage.generic.operands[operand])
        self._crossed[operand, column] = [small_elements.after_load(line, element) for line in transposed(lines)]
        return self._crossed[operand, column]

    def _store_crossed(self, vectors: list[ir.Value], operand: int) -> None:
        """Stores the tile of an output that moves along rows: transposed, then along those."""
        tile, buffer = self.stage.tile, self._buffer(operand)
        element = element_type(self.stage.generic.operands[operand])
        rows = None if self._rows == tile.lanes else self._first_lanes(self._rows)
        for column in range(self._vectors):
            lines = [small_elements.before_store(one, element) for one in vectors[column :: self._vectors]]
            kind = ir.VectorType(lines[0].type)
            lines += [zeros(kind)] * (tile.lanes - len(lines))
            for lane, line in enumerate(transposed(lines)):
                step = constant_index(column * tile.lanes + lane)
                place = arith.AddIOp(self._at[tile.vector_dim], step).result
                indices = self._indices(operand, {**self._at, tile.vector_dim: place}, 0, 0)
                if rows is None:
                    vector.StoreOp(line, buffer, indices)
                else:
                    vector.MaskedStoreOp(buffer, indices, rows, line)

    def _first_lanes(self, count: int) -> ir.Value:
        return vector.CreateMaskOp(self._mask_type(), [constant_index(count)]).result

    def _buffer(self, operand: int) -> ir.Value:
        return small_elements.stored_view(self.stage.generic.operands[operand])

    def _broadcast(self, number: ir.Value) -> ir.Value:
        return vector.BroadcastOp(ir.VectorType.get([self.stage.tile.lanes], number.type), number).result

    def _load_vector(self, kind: ir.VectorType, operand: int, indices: list[ir.Value], column: int) -> ir.Value:
        """A vector of elements as they are stored."""
        if moves(self.stage.loops.maps[operand], self.stage.tile.vector_dim) == "strided":
            return self._load_strided(kind, operand, indices, column)
        buffer = self._buffer(operand)
        if not self._is_masked(column):
            return vector.LoadOp(kind, buffer, indices).result
        return vector.MaskedLoadOp(kind, buffer, indices, self._mask_vector(), zeros(kind)).result

    def _load_strided(self, kind: ir.VectorType, operand: int, indices: list[ir.Value], column: int) -> ir.Value:
        """A vector whose elements are a constant number of elements apart."""
        step = coefficient(self.stage.loops.maps[operand].results[-1], self.stage.tile.vector_dim)
        assert step is not None
        if step in (2, 4):
            return self._load_and_thin_out(kind, operand, indices, column, step)
        return self._gather(kind, operand, indices, column, step)

    def _load_and_thin_out(
        self, kind: ir.VectorType, operand: int, indices: list[ir.Value], column: int, step: int
    ) -> ir.Value:
        """All elements from the first to the last, of which every second or fourth is kept: faster than a gather."""
        lanes = self.stage.tile.lanes
        wide = ir.VectorType.get([lanes * step], kind.element_type)
        mask_type = ir.VectorType.get([lanes * step], ir.IntegerType.get_signless(1))
        count = self._mask if self._is_masked(column) else constant_index(lanes)
        last = arith.SubIOp(arith.MulIOp(count, constant_index(step)).result, constant_index(step - 1)).result
        mask = vector.CreateMaskOp(mask_type, [last]).result
        buffer = self._buffer(operand)
        value = vector.MaskedLoadOp(wide, buffer, indices, mask, zeros(wide)).result
        while ir.VectorType(value.type).shape[0] > lanes:
            value = vector.DeinterleaveOp(value).results[0]
        return value

    def _gather(self, kind: ir.VectorType, operand: int, indices: list[ir.Value], column: int, step: int) -> ir.Value:
        """Every element by itself."""
        tile = self.stage.tile
        offsets = ir.VectorType.get([tile.lanes], ir.IntegerType.get_signless(32))
        steps = ir.DenseElementsAttr.get(np.arange(tile.lanes, dtype=np.int32) * step, type=offsets)
        buffer = self._buffer(operand)
        mask = self._mask_vector() if self._is_masked(column) else self._full_mask()
        return vector.GatherOp(kind, buffer, indices, arith.ConstantOp(offsets, steps).result, mask, zeros(kind)).result

    def store(self, value: ir.Value, operand: int, row: int, column: int) -> None:
        """Stores a vector of an output."""
        buffer = self._buffer(operand)
        value = small_elements.before_store(value, element_type(self.stage.generic.operands[operand]))
        indices = self._indices(operand, self._at, row, column)
        if self._is_masked(column):
            vector.MaskedStoreOp(buffer, indices, self._mask_vector(), value)
        else:
            vector.StoreOp(value, buffer, indices)

    def store_all(self, vectors: list[ir.Value], operand: int) -> None:
        """Stores the whole tile of an output."""
        if self._crosses(operand):
            self._store_crossed(vectors, operand)
            return
        values = iter(vectors)
        for row in range(self._rows):
            for column in range(self._vectors):
                self.store(next(values), operand, row, column)

    def where_inside(self, new: list[ir.Value], old: list[ir.Value]) -> list[ir.Value]:
        """The new values in the lanes that the mask lets through, the old ones elsewhere."""
        mask = self._mask_vector()
        return [arith.SelectOp(mask, one, other).result for one, other in zip(new, old, strict=True)]

    def fold_into(self, output: int, fold: str, vectors: list[ir.Value], initial: ir.Value | None) -> None:
        """Combines vectors of partial results with `initial`, else with an output's element, and stores it there."""
        buffer = self.stage.generic.operands[output]
        indices = self._indices(output, {**self._at, self.stage.tile.vector_dim: constant_index(0)}, 0, 0)
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
        loops = self.stage.loops
        tiles = self._rows * self._vectors
        loaded: dict[tuple[int, int, int], ir.Value] = {}
        results: list[list[ir.Value]] = [[] for _ in loops.outputs]
        for row in range(self._rows):
            for column in range(self._vectors):
                known = {}
                for operand in range(loops.inputs):
                    buffer = self.stage.generic.operands[operand]
                    if buffer in given:
                        known[self.stage.body.arguments[operand]] = given[buffer][row * self._vectors + column]
                        continue
                    key = (operand, *self._position(operand, row, column))
                    if key not in loaded:
                        loaded[key] = self.load(operand, at, row, column)
                    known[self.stage.body.arguments[operand]] = loaded[key]
                for number, output in enumerate(loops.outputs if accumulators else ()):
                    place = number * tiles + row * self._vectors + column
                    known[self.stage.body.arguments[output]] = accumulators[place]
                for number, value in enumerate(self._body(known, at, row, column)):
                    results[number].append(value)
        return [value for output in results for value in output]

    def compute_taps(
        self, at: dict[int, ir.Value], taps: Sequence[Tap], accumulators: list[ir.Value]
    ) -> list[ir.Value]:
        """The body for every tap and vector of the tile, in the order in which the inputs lie in memory.

        What several taps read is loaded once, and used by all of them right away. Each accumulator sees its taps in
        their own order.
        """
        loops, tile = self.stage.loops, self.stage.tile
        values, places = list(accumulators), self._rows * self._vectors
        steps = []
        for tap, row, column in product(taps, range(self._rows), range(self._vectors)):
            moved = [(tile.row_dim, row), (tile.vector_dim, column * tile.lanes), *tap.items()]
            read = tuple(offsets(loops, operand, moved) for operand in range(loops.inputs))
            steps.append((read, tap, row, column))
        widest = max(range(loops.inputs), key=lambda operand: len({read[operand] for read, *_ in steps}))
        loaded: dict[tuple[int, tuple[int, ...], bool], ir.Value] = {}
        for read, tap, row, column in sorted(steps, key=lambda step: step[0][widest]):
            here = {**at, **{dim: constant_index(number) for dim, number in tap.items()}}
            known = {}
            for operand in range(loops.inputs):
                key = operand, read[operand], self._is_masked(column)
                if key not in loaded:
                    loaded[key] = self.load(operand, here, row, column)
                known[self.stage.body.arguments[operand]] = loaded[key]
            place = row * self._vectors + column
            for number, output in enumerate(loops.outputs):
                known[self.stage.body.arguments[output]] = values[number * places + place]
            for number, value in enumerate(self._body(known, here, row, column)):
                values[number * places + place] = value
        return values

    def _position(self, operand: int, row: int, column: int) -> tuple[int, int]:
        """(row, column), each 0 where the operand does not move with it: those share a load."""
        tile, indexing = self.stage.tile, self.stage.loops.maps[operand]
        fixed_in_rows = tile.row_dim is None or moves(indexing, tile.row_dim) == "fixed"
        return 0 if fixed_in_rows else row, 0 if moves(indexing, tile.vector_dim) == "fixed" else column

    def _indices(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> list[ir.Value]:
        tile, indexing = self.stage.tile, self.stage.loops.maps[operand]
        shifts = {tile.row_dim: row, tile.vector_dim: column * tile.lanes}
        used = [dim for dim in range(indexing.n_dims) if moves(indexing, dim) != "fixed"]
        place = {dim: at[dim] for dim in used}
        values = [place.get(dim, constant_index(0)) for dim in range(indexing.n_dims)]
        shifted = [
            ir.AffineExpr.get_add(ir.AffineDimExpr.get(d), ir.AffineConstantExpr.get(shifts.get(d, 0)))
            for d in range(indexing.n_dims)
        ]
        indices = []
        for expression in indexing.results:
            moved = expression.compose(ir.AffineMap.get(indexing.n_dims, 0, shifted))
            indices.append(affine.AffineApplyOp(ir.AffineMap.get(indexing.n_dims, 0, [moved]), values).result)
        return indices

    def _is_masked(self, column: int) -> bool:
        return self._mask is not None and column == self._vectors - 1

    def _mask_vector(self) -> ir.Value:
        assert self._mask is not None
        return vector.CreateMaskOp(self._mask_type(), [self._mask]).result

    def _full_mask(self) -> ir.Value:
        true = ir.IntegerAttr.get(ir.IntegerType.get_signless(1), 1)
        return arith.ConstantOp(self._mask_type(), ir.DenseElementsAttr.get_splat(self._mask_type(), true)).result

    def _mask_type(self) -> ir.VectorType:
        return ir.VectorType.get([self.stage.tile.lanes], ir.IntegerType.get_signless(1))

    def _body(self, known: dict[ir.Value, ir.Value], at: dict[int, ir.Value], row: int, column: int) -> list[ir.Value]:
        """The body on vectors: `known` has those of its arguments, `at` where the tile is."""
        stage = self.stage
        numbers = self._numbers(at, row, column)

        def value(scalar: ir.Value) -> ir.Value:
            if scalar in known:
                return known[scalar]
            known[scalar] = self._broadcast(small_elements.number(numbers.get(scalar, scalar)))
            return known[scalar]

        for op in stage.body_ops:
            if op in stage.multiply_adds.absorbed or op in stage.uniform:
                continue
            if op.name == "arith.constant":
                known[op.results[0]] = splat(op, stage.tile.lanes)
            elif op in stage.multiply_adds.products:
                left, right, addend = stage.multiply_adds.products[op]
                known[op.results[0]] = math.FmaOp(value(left), value(right), value(addend)).result
            elif op.name == COUNTER:
                first = self._counter(stage.tile.vector_dim, at, row, column)
                known[op.results[0]] = place_vectors.counting(first, stage.tile.lanes)
            elif op.name == LOAD:
                known[op.results[0]] = self._load_at(op, numbers, value, column)
            else:
                operands = [value(operand) for operand in op.operands]
                if self._is_masked(column) and op.name in DIVISIONS:
                    operands[1] = self._one_outside(operands[1])
                self._clone(op, operands, known)
        return [value(operand) for operand in terminator(stage.body).operands]

    def _numbers(self, at: dict[int, ir.Value], row: int, column: int) -> dict[ir.Value, ir.Value]:
        """What the body computes for all lanes at once."""
        stage, numbers = self.stage, dict[ir.Value, ir.Value]()
        if not stage.uniform:
            return numbers
        read = {operand for op in stage.uniform for operand in op.operands}
        for operand, argument in enumerate(stage.body.arguments):
            if argument not in read:
                continue
            source = stage.generic.operands[operand]
            indices = [] if is_scalar(source) else self._indices(operand, at, row, column)
            numbers[argument] = source if is_scalar(source) else memref.LoadOp(source, indices).result
        for op in stage.uniform:
            if op.name == COUNTER:
                dim = ir.IntegerAttr(op.attributes["dim"]).value
                numbers[op.results[0]] = self._counter(dim, at, row, column)
                continue
            operands = [numbers.get(operand, operand) for operand in op.operands]
            attributes = {name: op.attributes[name] for name in op.attributes}
            kinds = [result.type for result in op.results]
            copy = ir.Operation.create(op.name, results=kinds, operands=operands, attributes=attributes)
            numbers[op.results[0]] = copy.results[0]
        return numbers

    def _counter(self, dim: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """The counter of a loop, in the first lane."""
        tile = self.stage.tile
        shift = {tile.row_dim: row, tile.vector_dim: column * tile.lanes}.get(dim, 0)
        return arith.AddIOp(at[dim], constant_index(shift)).result if shift else at[dim]

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

        outer = place_vectors.all_known([number(index) for index in indices[:-1]])
        last = number(indices[-1]) if indices else None
        if outer is not None and (not indices or last is not None):
            return self._broadcast(place_vectors.load_number(table, outer if last is None else [*outer, last]))
        step = step_along(indices[-1], tile.vector_dim, self.stage.varying)
        if outer is not None and (step == 1 or (step == -1 and mask is None)):
            first = vector.ExtractOp(value(indices[-1]), [], [0]).result
            if step == 1:
                return place_vectors.load_line(table, [*outer, first], tile.lanes, mask)
            return place_vectors.load_line_backwards(table, [*outer, first], tile.lanes)
        return place_vectors.gather(table, indices, number, value, mask)

    def _one_outside(self, divisor: ir.Value) -> ir.Value:
        """`divisor` in the lanes that the mask lets through, 1 elsewhere: a division by the 0 that is there traps."""
        one = ir.DenseElementsAttr.get_splat(divisor.type, ir.IntegerAttr.get(divisor.type.element_type, 1))
        return arith.SelectOp(self._mask_vector(), divisor, arith.ConstantOp(divisor.type, one).result).result

    def _clone(self, op: ir.Operation, operands: list[ir.Value], known: dict[ir.Value, ir.Value]) -> None:
        converted = small_elements.convert(op, operands[0])
        if converted is not None:
            known[op.results[0]] = converted
            return
        lanes = self.stage.tile.lanes
        kinds = [ir.VectorType.get([lanes], small_elements.held(result.type)) for result in op.results]
        attributes = {name: op.attributes[name] for name in op.attributes}
        copy = ir.Operation.create(op.name, results=kinds, operands=operands, attributes=attributes)
        known.update(zip(op.results, copy.results, strict=True))
