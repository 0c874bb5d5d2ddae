"""Writes a loop nest over tiles around the ops of a kernel; what the pass tile-groups emits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from pipeline.analysis.concat import INSERT
from pipeline.analysis.loop_alignment import Alignment
from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.attributes import PARALLEL, TILES
from pipeline.ir.constants import as_index
from pipeline.ir.destination_passing import origin
from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import is_unused
from pipeline.mlir import arith, defining_op, ir, scf, tensor, terminator, walk
from pipeline.passes.tiling.group_tile_sizes import loops_around
from pipeline.passes.tiling.tile_folds import filled, fold_into
from pipeline.passes.tiling.tile_slices import Span, TakePart, TileSlice, extract, insert, place_in, sizes_of

#: Of so many tiles is a block of those that are folded.
_TILES_OF_A_BLOCK = 32


class Tiler:
    """Tiles the ops of one kernel.

    Common loops are outermost. Inside of them, along accumulated loops that do not fit into one tile, reductions fold
    the tiles one after the other: sum(x, 0) → acc = init; for each tile: acc = acc + sum(tile, 0). Many tiles go in
    blocks, which are folded alone first, so that sums round seldom.

    `tiles` has the size for each loop of `loops_around`, or of the first of them alone; `lodgers` has, for values that
    may lie where a result will be until that is computed from them, this result.
    """

    def __init__(
        self,
        kernel: ir.Operation,
        alignment: Alignment,
        tiles: Sequence[int],
        lodgers: Mapping[ir.Value, ir.Value] = MappingProxyType({}),
    ):
        block = kernel.regions[0].blocks[0]
        self._terminator = terminator(block)
        self._alignment = alignment
        self._loops = loops_around(alignment)[: len(tiles)]
        self._tiles = tiles
        self._parallel = len(alignment.common)
        self._folding = self._ops_that_fold_tiles()
        self._returned = list(self._terminator.operands)
        self._lodgers = lodgers
        self._scratch: dict[tuple[ir.Value, tuple[int, ...], bool], ir.Value] = {}

    def emit(self) -> None:
        """Writes the nest in the place of the ops."""
        with self._terminator.location, ir.InsertionPoint(self._terminator):
            self._start = arith.ConstantOp(ir.IndexType.get(), 0).operation
            results = self._nest({}, [origin(value) for value in self._returned])
        for number, value in enumerate(results):
            self._terminator.operands[number] = value
        for view in reversed(self._alignment.ops):
            inits = list(view.op.operands)[view.inputs :]
            view.op.erase()
            for init in inits:
                _erase_unused(init)

    def _nest(self, at: dict[int, Span], carried: list[ir.Value]) -> list[ir.Value]:
        """The loops that are left, around the ops."""
        number = len(at)
        if number == self._parallel:
            carried = self._begin(at, carried)
        if number == len(self._loops):
            return self._tile(at, carried)
        first, loop = self._alignment.ops[0], self._loops[number][0]
        size = first.sizes[loop]
        tile = self._tiles[number]
        if size is not None and size <= tile:
            return self._nest({**at, number: Span(0, size)}, carried)
        if size is None:
            operand, dim = first.bounds[loop] or (0, 0)
            total = tensor.DimOp(first.op.operands[operand], as_index(dim)).result
            full = arith.SubIOp(total, arith.RemUIOp(total, as_index(tile)).result).result
            carried = self._all_tiles(full, tile, at, carried)
            return self._for(full, total, 1, at, carried) if tile > 1 else carried
        full = size // tile * tile
        carried = self._all_tiles(full, tile, at, carried)
        rest = Span(as_index(full), size - full)
        return self._nest({**at, number: rest}, carried) if full < size else carried

    def _all_tiles(
        self, last: ir.Value | int, tile: int, at: dict[int, Span], carried: list[ir.Value]
    ) -> list[ir.Value]:
        """A loop over the tiles up to `last`, a multiple of `tile`; many that are folded go in blocks."""
        block = tile * _TILES_OF_A_BLOCK
        if len(at) < self._parallel or not self._folding or (isinstance(last, int) and last <= block):
            return self._for(as_index(0), as_index(last), tile, at, carried)
        last = as_index(last)
        whole = arith.SubIOp(last, arith.RemUIOp(last, as_index(block)).result).result
        loop = scf.ForOp(as_index(0), whole, as_index(block), carried)
        with ir.InsertionPoint(loop.body):
            outer, first = list(loop.inner_iter_args), loop.induction_variable
            end = arith.AddIOp(first, as_index(block)).result
            inner = self._for(first, end, tile, at, self._begin_block(at, outer))
            scf.YieldOp(self._end_block(at, outer, inner))
        return self._for(whole, last, tile, at, list(loop.results))

    def _for(
        self, first: ir.Value, last: ir.Value, step: int, at: dict[int, Span], carried: list[ir.Value]
    ) -> list[ir.Value]:
        loop = scf.ForOp(first, last, as_index(step), carried)
        if len(at) < self._parallel:
            loop.operation.attributes[PARALLEL] = ir.StringAttr.get(TILES)
        with ir.InsertionPoint(loop.body):
            span = Span(loop.induction_variable, step)
            scf.YieldOp(self._nest({**at, len(at): span}, list(loop.inner_iter_args)))
        return list(loop.results)

    def _tile(self, at: dict[int, Span], carried: list[ir.Value]) -> list[ir.Value]:
        """The ops on one tile; returns the tensors that it is a part of."""
        known: dict[ir.Value, ir.Value] = {}
        carried = list(carried)
        for number, view in enumerate(self._alignment.ops):
            spans = self._spans(number, at)
            with view.op.location:
                copy = self._copy(view, spans, known, carried)
                for output, (result, value) in enumerate(zip(view.op.results, copy.results, strict=True)):
                    known[result] = value
                    for place in (place for place, returned in enumerate(self._returned) if returned == result):
                        part = place_in(result.type, view.maps[view.inputs + output], spans)
                        if number in self._folding:
                            value = fold_into(extract(carried[place], part), value, self._folding[number][output])
                        carried[place] = insert(value, carried[place], part)
        return carried

    def _spans(self, number: int, at: dict[int, Span]) -> dict[int, Span]:
        """The part of each loop of an op, by the loop's number."""
        return {loops[number]: at[place] for place, loops in enumerate(self._loops) if place in at}

    def _ops_that_fold_tiles(self) -> dict[int, tuple[str, ...]]:
        """By number the ops that fold what they have of several tiles, and what they do that with."""
        ops = self._alignment.ops
        found: dict[int, tuple[str, ...]] = {}
        for loops, tile in zip(self._loops[self._parallel :], self._tiles[self._parallel :], strict=True):
            for number, view in enumerate(ops):
                size = view.sizes[loops[number]]
                if view.reductions[loops[number]] and (size is None or size > tile):
                    found[number] = fold_ops(view.op) or ()
        return found

    def _folded(self, at: dict[int, Span]) -> Iterator[tuple[int, int, LinalgOp, TileSlice, str]]:
        """Of all results that are folded: (their place, their number, the op, the part of them, how it is folded)."""
        for number, folds in self._folding.items():
            view, spans = self._alignment.ops[number], self._spans(number, at)
            for output, (result, fold) in enumerate(zip(view.op.results, folds, strict=True)):
                part = place_in(result.type, view.maps[view.inputs + output], spans)
                for place in (place for place, returned in enumerate(self._returned) if returned == result):
                    yield place, output, view, part, fold

    def _begin(self, at: dict[int, Span], carried: list[ir.Value]) -> list[ir.Value]:
        """What is folded starts with its initial value."""
        carried = list(carried)
        for place, output, view, part, _ in self._folded(at):
            with view.op.location:
                init = view.op.operands[view.inputs + output]
                start = self._initial(init, view.op.results[output], part, carried, extract)
                carried[place] = insert(start, carried[place], part)
        return carried

    def _begin_block(self, at: dict[int, Span], carried: list[ir.Value]) -> list[ir.Value]:
        """What a block is folded into starts with nothing."""
        carried = list(carried)
        for place, output, view, part, fold in self._folded(at):
            with view.op.location:
                result = view.op.results[output]
                whole = place_in(result.type, view.maps[view.inputs + output], {})
                scratch = self._scratch_for(view.op.operands[view.inputs + output], result, whole, of_a_block=True)
                carried[place] = insert(filled(extract(scratch, part), fold), scratch, part)
        return carried

    def _end_block(self, at: dict[int, Span], carried: list[ir.Value], inner: list[ir.Value]) -> list[ir.Value]:
        """What is folded, with that of a block."""
        after = list(inner)
        for place, _, view, part, fold in self._folded(at):
            with view.op.location:
                total = fold_into(extract(carried[place], part), extract(inner[place], part), fold)
                after[place] = insert(total, carried[place], part)
        return after

    def _copy(
        self, view: LinalgOp, spans: dict[int, Span], known: dict[ir.Value, ir.Value], carried: list[ir.Value]
    ) -> ir.Operation:
        """One op on its part of the operands."""
        operands = []
        place_of = self._alignment.ops.index(view)
        parts: dict[tuple[ir.Value, TileSlice], ir.Value] = {}  # what is read and written is one value

        def part(source: ir.Value, place: TileSlice) -> ir.Value:
            if (source, place) not in parts:
                parts[source, place] = extract(source, place)
            return parts[source, place]

        for number, (operand, indexing) in enumerate(zip(view.op.operands, view.maps, strict=True)):
            if operand in known:
                operands.append(known[operand])
            elif not isinstance(operand.type, ir.ShapedType):
                operands.append(operand)
            elif number < view.inputs:
                source = self._as_written(view, number, carried)
                operands.append(part(source, place_in(operand.type, indexing, spans)))
            else:
                result = view.op.results[number - view.inputs]
                if place_of in self._folding:
                    part_of_all = place_in(operand.type, indexing, spans)
                    fold = self._folding[place_of][number - view.inputs]
                    operands.append(filled(self._scratch_for(operand, result, part_of_all), fold))
                    continue
                lodger = next(
                    (candidate for candidate, host in self._lodgers.items() if host == result and candidate in known),
                    None,
                )
                if lodger is not None:
                    operands.append(known[lodger])
                    continue
                operands.append(self._initial(operand, result, place_in(operand.type, indexing, spans), carried, part))
        if view.op.name == INSERT:
            return self._insertion(view, operands)
        copy = view.op.clone()
        for number, value in enumerate(operands):
            copy.operands[number] = value
        for result, value in zip(copy.results, operands[view.inputs :], strict=True):
            result.set_type(value.type)
        _shift_indices(copy, spans)
        return copy

    def _insertion(self, view: LinalgOp, operands: list[ir.Value]) -> ir.Operation:
        """A tensor.insert_slice of a part into a tile of the whole."""
        part, whole = operands
        offsets = list(ir.DenseI64ArrayAttr(view.op.attributes["static_offsets"]))
        sizes = list(ir.RankedTensorType(part.type).shape)
        return tensor.InsertSliceOp(part, whole, [], [], [], offsets, sizes, [1] * len(sizes)).operation

    def _as_written(self, view: LinalgOp, number: int, carried: list[ir.Value]) -> ir.Value:
        """An operand that is read; for one that the kernel updates, the carried tensor that it becomes.

        The tile of that still has the old elements, up to the op that writes them. So nothing has to be copied.
        """
        operand = view.op.operands[number]
        for place, result in enumerate(self._returned):
            writer = next(
                (candidate for candidate in self._alignment.ops if result in list(candidate.op.results)), None
            )
            if (
                writer is not None
                and self._updates(writer, result, operand)
                and self._reads_first(view, writer, number)
            ):
                return carried[place]
        return operand

    def _updates(self, writer: LinalgOp, result: ir.Value, operand: ir.Value) -> bool:
        """Whether an op writes a result, element by element, into `operand`."""
        if not writer.op.name.startswith("linalg."):
            return False
        output = writer.inputs + ir.OpResult(result).result_number
        return writer.op.operands[output] == operand and writer.is_elementwise and is_identity(writer.maps[output])

    def _reads_first(self, reader: LinalgOp, writer: LinalgOp, number: int) -> bool:
        """Whether an op reads an operand tile by tile as the writer does that writes it, and not after that."""
        one, other = self._alignment.ops.index(reader), self._alignment.ops.index(writer)
        return one <= other and is_identity(reader.maps[number]) and self._alignment.in_step(one, other)

    def _initial(
        self, init: ir.Value, result: ir.Value, place: TileSlice, carried: list[ir.Value], part: TakePart
    ) -> ir.Value:
        """What an op starts from for a tile: a part of the destination, scratch, or one of these filled."""
        result = self._lodgers.get(result, result)
        producer = defining_op(init)
        if producer is not None and producer.name == "linalg.fill":
            tile = self._initial(producer.operands[1], result, place, carried, part)
            fill = producer.clone()
            fill.operands[1] = tile
            fill.results[0].set_type(tile.type)
            return fill.results[0]
        if result in self._returned:
            return part(carried[self._returned.index(result)], place)
        if producer is None or producer.name != "tensor.empty":
            return part(init, place)
        return self._scratch_for(init, result, place)

    def _scratch_for(self, init: ir.Value, result: ir.Value, place: TileSlice, of_a_block: bool = False) -> ir.Value:
        """Scratch for the part of a result that a tile or a block computes; the whole of it starts from `init`."""
        key = (result, place.key, of_a_block)
        if key not in self._scratch:
            with ir.InsertionPoint(self._start):
                element = ir.RankedTensorType(init.type).element_type
                self._scratch[key] = tensor.EmptyOp(sizes_of(origin(init), place), element).result
        return self._scratch[key]


def _shift_indices(op: ir.Operation, spans: dict[int, Span]) -> None:
    """Adds the offset of a tile to the loop counters that the body reads."""
    for counter in walk(op, "linalg.index"):
        span = spans.get(ir.IntegerAttr(counter.attributes["dim"]).value)
        if span is None or isinstance(span.offset, int):
            continue
        with counter.location, ir.InsertionPoint(counter):
            own = counter.clone().results[0]
            counter.results[0].replace_all_uses_with(arith.AddIOp(own, span.offset).result)
        counter.erase()


def _erase_unused(init: ir.Value) -> None:
    """Erases what made an initial value that nothing reads any more."""
    while (op := defining_op(init)) is not None and op.name in ("linalg.fill", "tensor.empty") and is_unused(init):
        following = op.operands[1] if op.name == "linalg.fill" else None
        op.erase()
        if following is None:
            return
        init = following
