"""Tiles of groups: how much of the loops that several ops have in common goes into one tile."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pipeline.analysis.loop_alignment import Alignment
from pipeline.analysis.op_naming import is_product
from pipeline.ir.destination_passing import origin
from pipeline.ir.element_types import element_bytes
from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import defining_op, ir

#: A matrix product of fewer rows does not fill the registers.
_ROWS_OF_A_PRODUCT = 32

#: What a tile with matrix products may take, in multiples of what another one may: it is read again and again.
_SCRATCH_OF_A_PRODUCT = 32

#: What a tile of columns may take, in multiples of what one of rows may: each row of it is far from the next one, often
#: as far as cache lines that exclude each other.
_SCRATCH_OF_COLUMNS = 8

#: So many rows has a tile of columns whose rows are accumulated, if there are more columns than fit beside. Their sums
#: are added up as sums of so many.
_ROWS_OF_COLUMNS = 32

#: What such a tile may take, in multiples of what one of rows may.
_SCRATCH_OF_ACCUMULATED_COLUMNS = 4

#: Elements of the widest vectors of f32.
_VECTOR = 16


def in_tiling_order(alignment: Alignment) -> list[tuple[int, ...]]:
    """The common loops, outermost first: in the order of the dims of what the last op computes."""
    last = len(alignment.ops) - 1
    results = alignment.ops[last].maps[-1].results
    order = [
        ir.AffineDimExpr(expression).position for expression in results if isinstance(expression, ir.AffineDimExpr)
    ]
    return sorted(alignment.common, key=lambda loops: order.index(loops[last]))


def loops_around(alignment: Alignment) -> list[tuple[int, ...]]:
    """The loops that can be around all ops, outermost first: the common ones, then those that are accumulated along."""
    return [*in_tiling_order(alignment), *_in_memory_order(alignment, alignment.accumulated)]


def _in_memory_order(alignment: Alignment, loops: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Loops, outermost first, in the order of the dims of what the first op computes that has none as a reduction."""
    ops = alignment.ops
    whole = next((n for n, view in enumerate(ops) if not any(view.reductions[loop[n]] for loop in loops)), 0)
    results = ops[whole].maps[-1].results
    order = [ir.AffineDimExpr(dim).position for dim in results if isinstance(dim, ir.AffineDimExpr)]
    return sorted(loops, key=lambda loop: order.index(loop[whole]))


def choose_tiles(alignment: Alignment, scratch: int) -> list[int]:
    """The size of a tile along each of `loops_around`, or of the common ones alone."""
    tiles = _of_accumulated(alignment, scratch) if alignment.accumulated else None
    return _of_common(alignment, scratch) if tiles is None else [tiles[loops] for loops in loops_around(alignment)]


def _of_accumulated(alignment: Alignment, scratch: int) -> dict[tuple[int, ...], int] | None:
    """By loop the size of a tile that fits into `scratch`, accumulated loops cut, too; None if none of them has to be.

    What lies side by side in memory is gone through first. Of columns, which a thread has some of, there are no more
    than leave room for some rows.
    """
    loops = _in_memory_order(alignment, (*alignment.common, *alignment.accumulated))
    size_of = {loop: alignment.ops[0].sizes[loop[0]] for loop in loops}
    are_columns = loops[-1] in alignment.common
    scratch *= _SCRATCH_OF_ACCUMULATED_COLUMNS if are_columns else 1
    most = max(1, scratch // max(1, _bytes_of_one(alignment, loops)))
    tiles: dict[tuple[int, ...], int] = {}
    inner = 1
    for loop in reversed(loops):
        size, tile = size_of[loop], max(1, most // inner)
        if loop == loops[-1] and are_columns:
            tile = max(_VECTOR, tile // _ROWS_OF_COLUMNS // _VECTOR * _VECTOR)
        tiles[loop] = tile if size is None else min(tile, max(1, size))
        inner *= tiles[loop]
    cut = [loop for loop in alignment.accumulated if size_of[loop] is None or tiles[loop] < (size_of[loop] or 0)]
    return tiles if cut else None


def _of_common(alignment: Alignment, scratch: int) -> list[int]:
    """The size of a tile along each common loop, outermost first: outer loops are cut until a tile fits into `scratch`.

    Inner loops stay whole as long as that is possible: vectors run along them. A part of one that lies side by side in
    memory is some whole vectors; it may be larger, since the next row of it lies elsewhere. A loop of unknown length
    takes as much as fits, and leaves the rest to those around it.
    """
    loops = in_tiling_order(alignment)
    sizes = [alignment.ops[0].sizes[loop[0]] for loop in loops]
    iteration_bytes = _bytes_of_one(alignment, alignment.common)
    has_product = any(is_product(view.op) for view in alignment.ops)
    lines = bool(loops) and any(_is_innermost(view, loops[-1][n]) for n, view in enumerate(alignment.ops))
    factor = _SCRATCH_OF_A_PRODUCT if has_product else _SCRATCH_OF_COLUMNS if _are_columns(alignment) else 1
    most = max(1, scratch * factor // max(1, iteration_bytes))
    tiles: list[int] = []
    inner = 1
    for number, size in reversed(list(enumerate(sizes))):
        tile = max(1, most // inner)
        if has_product and number == len(sizes) - 1:
            tile = max(tile, _ROWS_OF_A_PRODUCT)
        if number == len(sizes) - 1 and (factor == _SCRATCH_OF_COLUMNS or (lines and tile > _VECTOR)):
            tile = max(_VECTOR, tile - tile % _VECTOR)
        tiles.insert(0, tile if size is None else min(tile, max(1, size)))
        inner *= tile if size is None else max(1, size)
    return tiles


def _are_columns(alignment: Alignment) -> bool:
    """Whether ops that reduce have a common loop along the innermost dim of all that they read and write.

    The others have it there in something that they read or write, as transposed copies have.
    """
    return any(any(view.reductions) for view in alignment.ops) and any(
        all(_is_innermost(view, loop) for view, loop in zip(alignment.ops, loops, strict=True))
        for loops in alignment.common
    )


def _is_innermost(view: LinalgOp, loop: int) -> bool:
    """Whether a loop is the last index of the operands of an op that have the most, but for loops of one iteration.

    Of all of them, if the op reduces, or else of one.
    """
    indices = [
        [other for other in view.loops_read(operand) if view.sizes[other] != 1] for operand in range(len(view.maps))
    ]
    most = max(map(len, indices))
    ends = [read[-1] == loop for read in indices if len(read) == most > 0]
    return bool(ends) and (all if any(view.reductions) else any)(ends)


def _bytes_of_one(alignment: Alignment, around: Sequence[tuple[int, ...]]) -> int:
    """What the values between the ops take for one iteration of loops around all of them."""
    total = 0
    for value in alignment.inner:
        sizes = alignment.sizes(value, around)
        total += prod(256 if size is None else size for size in sizes) * element_bytes(value)
    return total


def lodgers(alignment: Alignment, returned: Sequence[ir.Value]) -> dict[ir.Value, ir.Value]:
    """The values that can lie, until a result is computed from them, in the memory of that result; with the result.

    The result must be computed element by element, in the order in which it lies there, by the last op that reads the
    value, and nothing may read what is in that memory before.
    """
    found: dict[ir.Value, ir.Value] = {}
    for result in returned:
        number = next((n for n, view in enumerate(alignment.ops) if result in list(view.op.results)), None)
        if number is None or not _is_written_in_order(alignment.ops[number], result):
            continue
        read = {operand for view in alignment.ops for operand in view.op.operands[: view.inputs]}
        if returned.count(result) > 1 or origin(result) in read:
            continue
        writer = alignment.ops[number]
        for value in writer.op.operands[: writer.inputs]:
            if value.type != result.type or value not in alignment.inner or value in (*returned, *found):
                continue
            if _reads_in_order(writer, value) and _is_made_for(alignment, value, number):
                found[value] = result
                break
    return found


def _is_made_for(alignment: Alignment, value: ir.Value, reader: int) -> bool:
    """Whether an op makes a value from nothing, in the tiles in which `reader`, the last that reads it, does so."""
    maker = alignment.inner[value]
    view = alignment.ops[maker]
    later = [follower for follower in alignment.ops[reader + 1 :] if value in list(follower.op.operands)]
    init = defining_op(view.op.operands[view.inputs + ir.OpResult(value).result_number])
    from_nothing = init is not None and init.name == "tensor.empty"
    return not later and from_nothing and _is_written_in_order(view, value) and alignment.in_step(maker, reader)


def _reads_in_order(view: LinalgOp, value: ir.Value) -> bool:
    return all(is_identity(view.maps[n]) for n in range(view.inputs) if view.op.operands[n] == value)


def _is_written_in_order(view: LinalgOp, result: ir.Value) -> bool:
    indexing = view.maps[view.inputs + ir.OpResult(result).result_number]
    return view.op.name.startswith("linalg.") and view.is_elementwise and is_identity(indexing)
