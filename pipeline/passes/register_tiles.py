"""Writes the loops of a linalg op over register tiles; what the pass tile-and-vectorize emits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from types import MappingProxyType

import numpy as np

from pipeline.analysis.access import Loops, coefficient, moves
from pipeline.analysis.epilogue import Epilogue
from pipeline.analysis.tiling import DIVISIONS, FOLDS, Tile, element_type, is_scalar
from pipeline.mlir import affine, arith, ir, math, memref, scf, vector
from pipeline.passes import small_elements
from pipeline.passes.parallelize_kernels import PARALLEL, PLACES


#: How many bytes of weights may be read again and again: a part of the second-level cache.
_IN_CACHE = 1 << 18


@dataclass(frozen=True)
class Context:
    """What stands around an op.

    Attributes:
        initials: for outputs that a fill came before, the number that they start from.
        epilogues: what runs on each tile of results while it is in registers.
        between: the buffers that only hand results to an epilogue: nothing is stored there.
    """

    initials: dict[int, ir.Value] = field(default_factory=dict)
    epilogues: tuple[Epilogue, ...] = ()
    between: frozenset[ir.Value] = frozenset()


class Emitter:
    """Writes the loops of one op at the insertion point."""

    def __init__(self, generic: ir.Operation, loops: Loops, tile: Tile, fma: bool, context: Context):
        multiply_adds = _multiply_adds(generic.regions[0].blocks[0], loops) if fma else _MultiplyAdds({}, set())
        self.generic = generic
        self.loops = loops
        self.tile = tile
        self.context = context
        self.stage = _Stage(generic, loops, tile, multiply_adds)
        self.reductions = [dim for dim, reduction in enumerate(loops.reductions) if reduction]

    def emit(self) -> None:
        """The whole nest."""
        at: dict[int, ir.Value] = {}
        if self.tile.folds:
            self._nest(at, self._fold_row)
        elif self._rows_outermost():
            self._rows(at, lambda at, rows: self._nest(at, lambda at: self._columns(at, rows)))
        elif self._vectors_outermost():
            self._vector_tiles(
                at,
                lambda at, vectors, mask: self._nest(
                    at, lambda at: self._rows(at, lambda at, rows: self._tile(at, rows, vectors, mask))
                ),
            )
        else:
            self._nest(at, lambda at: self._vector_loop(at))

    def _rows_outermost(self) -> bool:
        """Whether what is fixed along vectors (weights of a convolution) is larger than what moves, so is read once."""
        if self.tile.row_dim is None or not self.tile.outer:
            return False
        fixed, moving = self._input_bytes()
        return fixed is not None and moving is not None and fixed > moving

    def _vectors_outermost(self) -> bool:
        """Whether what moves along vectors (weights with channels last) is too large to be read once a row."""
        tile = self.tile
        if tile.row_dim is None or not tile.outer:
            return False
        fixed, moving = self._input_bytes()
        return fixed is not None and moving is not None and moving > max(fixed, _IN_CACHE)

    def _input_bytes(self) -> tuple[int | None, int | None]:
        """The bytes of the inputs that are fixed along vectors, and of those that move; None if not known."""
        sizes = {True: 0, False: 0}
        for operand in range(self.loops.inputs):
            if is_scalar(self.generic.operands[operand]):
                continue
            kind = ir.ShapedType(self.generic.operands[operand].type)
            if not kind.has_static_shape or None in self.loops.sizes:
                return None, None
            width = max(8, kind.element_type.width) // 8
            sizes[moves(self.loops.maps[operand], self.tile.vector_dim) == "fixed"] += prod(kind.shape) * width
        return sizes[True], sizes[False]

    def _nest(self, at: dict[int, ir.Value], inner: Callable[[dict[int, ir.Value]], None]) -> None:
        def level(depth: int, at: dict[int, ir.Value]) -> None:
            if depth == len(self.tile.outer):
                inner(at)
                return
            dim = self.tile.outer[depth]
            _loop(_index(0), self.size(dim), 1, lambda i: level(depth + 1, {**at, dim: i}))

        level(0, at)

    def _vector_loop(self, at: dict[int, ir.Value]) -> None:
        """Vectors outside, rows inside: what moves along vectors stays in cache while the rows go by."""
        self._vector_tiles(
            at, lambda at, vectors, mask: self._rows(at, lambda at, rows: self._tile(at, rows, vectors, mask))
        )

    def _columns(self, at: dict[int, ir.Value], rows: int) -> None:
        self._vector_tiles(at, lambda at, vectors, mask: self._tile(at, rows, vectors, mask))

    def _vector_tiles(self, at: dict[int, ir.Value], inner: Callable[..., None]) -> None:
        """Full tiles, then the rest: exactly as many vectors as it needs, the last one masked."""
        dim, lanes = self.tile.vector_dim, self.tile.lanes
        step = self.tile.vectors * lanes
        size = self.loops.sizes[dim]
        if size is None:
            total = self.size(dim)
            full = _floor_to(total, step)
            _loop(_index(0), full, step, lambda i: inner({**at, dim: i}, self.tile.vectors, None))
            if self.tile.single_edges:
                with self._single():
                    _loop(full, total, 1, lambda i: inner({**at, dim: i}, 1, None))
                return
            _loop(full, total, lanes, lambda i: inner({**at, dim: i}, 1, arith.SubIOp(total, i).result))
            return
        full = size // step * step
        if full:
            _loop(_index(0), _index(full), step, lambda i: inner({**at, dim: i}, self.tile.vectors, None))
        if full < size and self.tile.single_edges and size % lanes:
            whole = size // lanes * lanes
            if full < whole:
                inner({**at, dim: _index(full)}, (whole - full) // lanes, None)
            with self._single():
                _loop(_index(whole), _index(size), 1, lambda i: inner({**at, dim: i}, 1, None))
        elif full < size:
            rest = size - full
            mask = _index(rest % lanes) if rest % lanes else None
            inner({**at, dim: _index(full)}, -(-rest // lanes), mask)

    @contextlib.contextmanager
    def _single(self) -> Iterator[None]:
        """Vectors of one element."""
        tile, stage = self.tile, self.stage
        self.tile = replace(tile, vectors=1, lanes=1)
        self.stage = replace(stage, tile=self.tile)
        yield
        self.tile, self.stage = tile, stage

    def _rows(self, at: dict[int, ir.Value], inner: Callable[[dict[int, ir.Value], int], None]) -> None:
        dim, rows = self.tile.row_dim, self.tile.rows
        if dim is None:
            inner(at, 1)
            return
        size = self.loops.sizes[dim]
        if size is None:
            total = self.size(dim)
            full = _floor_to(total, rows)
            _loop(_index(0), full, rows, lambda i: inner({**at, dim: i}, rows))
            _loop(full, total, 1, lambda i: inner({**at, dim: i}, 1))
            return
        full = size // rows * rows
        if full:
            _loop(_index(0), _index(full), rows, lambda i: inner({**at, dim: i}, rows))
        if full < size:
            inner({**at, dim: _index(full)}, size - full)

    def _tile(self, at: dict[int, ir.Value], rows: int, vectors: int, mask: ir.Value | None) -> None:
        """Loads the accumulators, runs the reductions on them and the epilogues on the results, stores these."""
        window = _Window(self.stage, at, rows, vectors, mask)
        accumulators = [
            self._start(window, output, at, row, column)
            for output in self.loops.outputs
            for row in range(rows)
            for column in range(vectors)
        ]
        known: dict[ir.Value, list[ir.Value]] = {}
        self._finish(window, self._reduce(window, at, accumulators), known)
        for epilogue in self.context.epilogues:
            stage = _Stage(epilogue.op, epilogue.loops, self.tile, _MultiplyAdds({}, set()))
            window = _Window(stage, at, rows, vectors, mask)
            self._finish(window, window.compute(at, [], known), known)

    def _start(self, window: _Window, output: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        if output not in self.context.initials:
            return window.load(output, at, row, column)
        number = small_elements.number(self.context.initials[output])
        return vector.BroadcastOp(ir.VectorType.get([self.tile.lanes], number.type), number).result

    def _finish(self, window: _Window, results: list[ir.Value], known: dict[ir.Value, list[ir.Value]]) -> None:
        """Stores what a stage has computed, if anything but an epilogue needs it."""
        stage = window.stage
        count = len(results) // len(stage.loops.outputs)
        for number, output in enumerate(stage.loops.outputs):
            vectors = results[number * count : (number + 1) * count]
            known[stage.generic.operands[output]] = vectors
            if stage.generic.operands[output] not in self.context.between:
                window.store_all(vectors, output)

    def _reduce(self, window: _Window, at: dict[int, ir.Value], accumulators: list[ir.Value]) -> list[ir.Value]:
        def level(depth: int, at: dict[int, ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            if depth == len(self.reductions):
                return window.compute(at, values)
            dim = self.reductions[depth]
            if self.loops.sizes[dim] == 1:
                return level(depth + 1, {**at, dim: _index(0)}, values)
            loop = scf.ForOp(_index(0), self.size(dim), _index(1), values)
            with ir.InsertionPoint(loop.body):
                following = level(depth + 1, {**at, dim: loop.induction_variable}, list(loop.inner_iter_args))
                scf.YieldOp(following)
            return list(loop.results)

        return level(0, at, accumulators)

    def _fold_row(self, at: dict[int, ir.Value]) -> None:
        """Partial results in vectors along the reduction, combined at its end with what the output holds."""
        tile = self.tile
        others = [dim for dim in self.reductions if dim != tile.vector_dim]
        kinds = [ir.VectorType.get([tile.lanes], element_type(self.generic.operands[o])) for o in self.loops.outputs]
        start = [
            _splat_of(kind, fold) for kind, fold in zip(kinds, tile.folds, strict=True) for _ in range(tile.vectors)
        ]

        def level(depth: int, at: dict[int, ir.Value], partial: list[ir.Value]) -> list[ir.Value]:
            if depth == len(others):
                return self._fold_line(at, partial)
            loop = scf.ForOp(_index(0), self.size(others[depth]), _index(1), partial)
            with ir.InsertionPoint(loop.body):
                inner = {**at, others[depth]: loop.induction_variable}
                scf.YieldOp(level(depth + 1, inner, list(loop.inner_iter_args)))
            return list(loop.results)

        partial = level(0, at, start)
        window = _Window(self.stage, at, 1, 1, None)
        for number, (output, fold) in enumerate(zip(self.loops.outputs, tile.folds, strict=True)):
            vectors = partial[number * tile.vectors : (number + 1) * tile.vectors]
            window.fold_into(output, fold, vectors, self.context.initials.get(output))

    def _fold_line(self, at: dict[int, ir.Value], partial: list[ir.Value]) -> list[ir.Value]:
        """One line along the vectors: full steps, then masked ones into the first vector of each output."""
        tile, total = self.tile, self.size(self.tile.vector_dim)
        step = tile.vectors * tile.lanes
        full = _floor_to(total, step)

        def run(first: ir.Value, last: ir.Value, vectors: int, masked: bool, values: list[ir.Value]) -> list[ir.Value]:
            loop = scf.ForOp(first, last, _index(vectors * tile.lanes), values)
            with ir.InsertionPoint(loop.body):
                i, old = loop.induction_variable, list(loop.inner_iter_args)
                window = _Window(self.stage, at, 1, vectors, arith.SubIOp(total, i).result if masked else None)
                new = window.compute({**at, tile.vector_dim: i}, old)
                scf.YieldOp(window.where_inside(new, old) if masked else new)
            return list(loop.results)

        partial = run(_index(0), full, tile.vectors, False, partial)
        firsts = range(0, len(partial), tile.vectors)
        rest = run(full, total, 1, True, [partial[first] for first in firsts])
        for first, value in zip(firsts, rest, strict=True):
            partial[first] = value
        return partial

    def size(self, dim: int) -> ir.Value:
        """The number of iterations of a loop."""
        known = self.loops.sizes[dim]
        if known is not None:
            return _index(known)
        operand, position = self.loops.bounds[dim]
        return memref.DimOp(self.generic.operands[operand], _index(position)).result


@dataclass(frozen=True)
class _Stage:
    """An op as it runs on a tile: its maps go from the loops that the tile is of."""

    generic: ir.Operation
    loops: Loops
    tile: Tile
    multiply_adds: _MultiplyAdds

    @property
    def body(self) -> ir.Block:
        """What runs for each element."""
        return self.generic.regions[0].blocks[0]

    @cached_property
    def body_ops(self) -> list[ir.Operation]:
        """The ops of the body, without its terminator."""
        return [op.operation for op in self.body.operations][:-1]


class _Window:
    """A tile at a place: loads and stores its vectors, and computes the body on them."""

    def __init__(self, stage: _Stage, at: dict[int, ir.Value], rows: int, vectors: int, mask: ir.Value | None):
        self.stage = stage
        self._at = at
        self._rows = rows
        self._vectors = vectors
        self._mask = mask

    def load(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """A vector of an operand: loaded where it moves along vectors, else one element broadcast."""
        tile = self.stage.tile
        source = self.stage.generic.operands[operand]
        if is_scalar(source):
            return self._broadcast(small_elements.number(source))
        indices, element = self._indices(operand, at, row, column), element_type(source)
        if moves(self.stage.loops.maps[operand], tile.vector_dim) == "fixed":
            number = memref.LoadOp(self._buffer(operand), indices).result
            return self._broadcast(small_elements.after_load(number, element))
        kind = ir.VectorType.get([tile.lanes], small_elements.stored(element))
        return small_elements.after_load(self._load_vector(kind, operand, indices, column), element)

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
        return vector.MaskedLoadOp(kind, buffer, indices, self._mask_vector(), _zero(kind)).result

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
        count = self._mask if self._is_masked(column) else _index(lanes)
        last = arith.SubIOp(arith.MulIOp(count, _index(step)).result, _index(step - 1)).result
        mask = vector.CreateMaskOp(mask_type, [last]).result
        buffer = self._buffer(operand)
        value = vector.MaskedLoadOp(wide, buffer, indices, mask, _zero(wide)).result
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
        return vector.GatherOp(kind, buffer, indices, arith.ConstantOp(offsets, steps).result, mask, _zero(kind)).result

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
        indices = self._indices(output, {**self._at, self.stage.tile.vector_dim: _index(0)}, 0, 0)
        while len(vectors) > 1:
            left, right, *rest = vectors
            vectors = [*rest, _combine(fold, left, right)]
        kind = element_type(buffer)
        row = vector.ReductionOp(
            kind,
            ir.Attribute.parse(f"#vector.kind<{FOLDS[fold][0]}>"),
            vectors[0],
            fastmath=ir.Attribute.parse("#arith.fastmath<reassoc>"),
        ).result
        start = memref.LoadOp(buffer, indices).result if initial is None else initial
        memref.StoreOp(_combine(fold, start, row), buffer, indices)

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
                for number, value in enumerate(self._body(known, self._is_masked(column))):
                    results[number].append(value)
        return [value for output in results for value in output]

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
        values = [place.get(dim, _index(0)) for dim in range(indexing.n_dims)]
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

    def _body(self, known: dict[ir.Value, ir.Value], masked: bool) -> list[ir.Value]:
        """The body on vectors."""
        stage = self.stage

        def value(scalar: ir.Value) -> ir.Value:
            if scalar in known:
                return known[scalar]
            known[scalar] = self._broadcast(small_elements.number(scalar))
            return known[scalar]

        for op in stage.body_ops:
            if op in stage.multiply_adds.absorbed:
                continue
            if op.name == "arith.constant":
                known[op.results[0]] = _splat(op, stage.tile.lanes)
            elif op in stage.multiply_adds.products:
                left, right, addend = stage.multiply_adds.products[op]
                known[op.results[0]] = math.FmaOp(value(left), value(right), value(addend)).result
            else:
                operands = [value(operand) for operand in op.operands]
                if masked and op.name in DIVISIONS:
                    operands[1] = self._one_outside(operands[1])
                self._clone(op, operands, known)
        return [value(operand) for operand in _terminator(stage.body).operands]

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


@dataclass(frozen=True)
class _MultiplyAdds:
    """Additions to an accumulator that become fused multiply-adds: each with its factors and addend."""

    products: dict[ir.Operation, tuple[ir.Value, ir.Value, ir.Value]]
    absorbed: set[ir.Operation]


def _multiply_adds(body: ir.Block, loops: Loops) -> _MultiplyAdds:
    """A contraction's out + a * b, as every BLAS computes it; arithmetic of the model's own is left as written."""
    accumulators = list(body.arguments)[loops.inputs :] if any(loops.reductions) else []
    products: dict[ir.Operation, tuple[ir.Value, ir.Value, ir.Value]] = {}
    absorbed: set[ir.Operation] = set()
    yielded = _terminator(body).operands
    for op in (op.operation for op in body.operations):
        if op.name != "arith.addf" or op.results[0] not in list(yielded):
            continue
        for product, addend in (list(op.operands), list(op.operands)[::-1]):
            factor = product.owner
            if isinstance(factor, ir.Block) or addend not in accumulators:
                continue
            if factor.operation.name == "arith.mulf" and len(list(product.uses)) == 1:
                left, right = factor.operation.operands
                products[op] = (left, right, addend)
                absorbed.add(factor.operation)
                break
    return _MultiplyAdds(products, absorbed)


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def _splat(constant: ir.Operation, lanes: int) -> ir.Value:
    if isinstance(constant.results[0].type, ir.BF16Type):
        bits = small_elements.number(constant.clone().results[0])
        return vector.BroadcastOp(ir.VectorType.get([lanes], bits.type), bits).result
    kind = ir.VectorType.get([lanes], constant.results[0].type)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, constant.attributes["value"])).result


def _combine(fold: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return ir.Operation.create(fold, results=[left.type], operands=[left, right]).result


def _splat_of(kind: ir.VectorType, fold: str) -> ir.Value:
    """What an op that folds starts from, in every element."""
    neutral = FOLDS[fold][1]
    element = kind.element_type
    if isinstance(element, ir.IntegerType):
        ends = {"least": -(1 << (element.width - 1)), "greatest": (1 << (element.width - 1)) - 1}
        number = ends[neutral] if isinstance(neutral, str) else int(neutral)
        value: ir.Attribute = ir.IntegerAttr.get(element, number & 1 if element.width == 1 else number)
    else:
        value = ir.FloatAttr.get(element, float(neutral))
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, value)).result


def _zero(kind: ir.VectorType) -> ir.Value:
    element = kind.element_type
    zero = ir.IntegerAttr.get(element, 0) if isinstance(element, ir.IntegerType) else ir.FloatAttr.get(element, 0.0)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, zero)).result


def _loop(first: ir.Value, last: ir.Value, step: int, body: Callable[[ir.Value], None]) -> None:
    loop = scf.ForOp(first, last, _index(step))
    loop.operation.attributes[PARALLEL] = ir.StringAttr.get(PLACES)
    with ir.InsertionPoint(loop.body):
        body(loop.induction_variable)
        scf.YieldOp([])


def _floor_to(value: ir.Value, step: int) -> ir.Value:
    rest = arith.RemUIOp(value, _index(step)).result
    return arith.SubIOp(value, rest).result


def _index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
