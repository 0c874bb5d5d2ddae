"""Register tiles: which loops of a linalg op on buffers become vectors and rows, and how many of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.analysis.scaled_dot import scaled_dot_of
from pipeline.analysis.scaled_sum import scaled_sum_of
from pipeline.ir.element_types import element_type
from pipeline.ir.indexing_maps import block_of, coefficient, moves
from pipeline.ir.linalg_op import LinalgOp, slid_along, slides
from pipeline.ir.schedule import DEFAULT, Schedule
from pipeline.mlir import ir
from pipeline.passes.cpu.microkernel.lookup_order import in_lookup_order

#: How much of the register file the accumulators of a tile take; the rest holds what is loaded.
_ACCUMULATORS = 5 / 8

#: How many of 32 registers accumulators leave at least, where few rows come out even then.
_LEAST_FREE, _MANY = 4, 32

#: Elements of fewer bits are small: their vectors have as many lanes as those of what is computed from them.
_SMALL = 32

#: Ops that trap if their second operand is 0; processors have them for one number at a time.
DIVISIONS = {f"arith.{name}" for name in ("divsi", "divui", "ceildivsi", "ceildivui", "floordivsi", "remsi", "remui")}


#: How many vectors of partial results a row reduction has, to hide the latency of the op that folds.
_MOST_FOLDS = 4


@dataclass(frozen=True)
class TileSizes:
    """How an op is tiled: `rows` of loop `row_dim` by `vectors` of `lanes` elements of loop `vector_dim`.

    Attributes:
        outer: the parallel loops around the tile.
        folds: where `vector_dim` is a reduction, the op that combines partial results, for each output.
        single_edges: whether what is left of `vector_dim` is done element by element, not as a masked vector.
        lane_factor: the operand that is the same for all lanes, and loaded as vectors along `lane_dim`, whose lanes are
            its elements one after the other; None where each element is loaded for all lanes.
        lane_dim: the innermost sum, or `row_dim`.
    """

    vector_dim: int
    row_dim: int | None
    rows: int
    vectors: int
    lanes: int
    outer: tuple[int, ...]
    folds: tuple[str, ...] = ()
    single_edges: bool = False
    lane_factor: int | None = None
    lane_dim: int | None = None


def choose_tile(
    view: LinalgOp,
    vector_bytes: int,
    registers: int,
    masked_bits: int = 8,
    schedule: Schedule = DEFAULT,
) -> TileSizes | str:
    """The tile for an op on a machine with `registers` vectors of `vector_bytes`; or why it can have none.

    A schedule's rows and vectors are those of sums that have rows, as far as their loops are long enough.
    """
    parallel = [dim for dim, reduction in enumerate(view.reductions) if not reduction]
    lanes = lanes_of(view, vector_bytes)
    candidates = [dim for dim in parallel if view.sizes[dim] != 1 and _can_be_vector_dim(view, dim, lanes)]
    if not candidates:
        crossing = _crossing(view, lanes, masked_bits)
        return crossing or _row_reduction(view, lanes, tuple(parallel))
    vector_dim = candidates[0]
    size = view.sizes[vector_dim]
    reduces = any(view.reductions)
    rest = [dim for dim in parallel if dim != vector_dim]
    row_dim = _row_dim(view, rest, vector_dim) if reduces else None
    vectors = 1 if _keeps_taps(view, vector_dim) else _vectors(size, lanes, row_dim is None, reduces)
    if row_dim is not None and schedule.vectors is not None:
        vectors = schedule.vectors if size is None else max(1, min(schedule.vectors, -(-size // lanes)))
    while not _lies_in_blocks(view, vector_dim, vectors * lanes):
        vectors -= 1
    free = registers // 2 if row_dim is not None and _sums_groups_of_own(view, row_dim) else registers
    rows = 1 if row_dim is None else choose_rows(view.sizes[row_dim], vectors, free)
    if row_dim is not None and schedule.rows is not None:
        most = view.sizes[row_dim]
        rows = schedule.rows if most is None else max(1, min(schedule.rows, most))
    outer = in_lookup_order(view, vector_dim, tuple(dim for dim in rest if dim != row_dim))
    single = _masks_are_bad(view, masked_bits)
    return TileSizes(vector_dim, row_dim, rows, vectors, lanes, outer, single_edges=single)


def _sums_groups_of_own(view: LinalgOp, row_dim: int) -> bool:
    """Whether a tile has sums of groups beside its accumulators, of weights of its own for each row.

    These are read once, and what is put aside after each group takes time; rows that share weights hide it.
    """
    dot, scaled = scaled_dot_of(view), scaled_sum_of(view)
    found = dot or (scaled if scaled is not None and scaled.depth > 0 else None)
    return found is not None and view.moves(found.weight, row_dim) != "fixed"


def _keeps_taps(view: LinalgOp, vector_dim: int) -> bool:
    """Whether a window has taps of its own for each lane, which take registers beside the accumulators."""
    if not slides(view):
        return False
    reductions = view.summed
    windows = set().union(*(slid_along(view, dim) for dim in reductions))
    inputs = view.maps[: view.inputs]
    return any(
        moves(indexing, vector_dim) == "unit" and all(moves(indexing, dim) == "fixed" for dim in windows)
        for indexing in inputs
    )


def fits_tile(view: LinalgOp, tile: TileSizes, masked_bits: int) -> bool:
    """Whether an elementwise op, with maps from the loops that a tile is of, can run on vectors of that tile."""
    step = tile.vectors * tile.lanes
    size = view.sizes[tile.vector_dim]
    whole = size is not None and size % tile.lanes == 0
    operands = range(len(view.maps))
    crossing = [number for number in operands if crosses_vectors(view, number, tile.vector_dim, tile.row_dim)]
    if any(not whole or tile.rows > tile.lanes or not _can_be_crossed(view.operands[number]) for number in crossing):
        return False
    if tile.folds or not _can_be_vector_dim(view, tile.vector_dim, step, crossing):
        return False
    rest = None if size is None else size % tile.lanes
    return whole or tile.single_edges or not _masks_are_bad(view, masked_bits, rest)


def fits_fold(view: LinalgOp, tile: TileSizes, masked_bits: int) -> bool:
    """Whether an elementwise op, with maps from the loops of a row reduction, can run on the vectors along its rows."""
    return _can_be_vector_dim(view, tile.vector_dim, tile.lanes) and not _masks_are_bad(view, masked_bits)


def _crossing(view: LinalgOp, lanes: int, masked_bits: int) -> TileSizes | None:
    """Square tiles for an op that transposes: some inputs move along rows where the outputs move along vectors.

    Where masks are bad, whole tiles are best; else what is left along vectors is done element by element. Rows that are
    left are loaded under masks.
    """
    if any(view.reductions):
        return None
    masked = _masks_are_bad(view, masked_bits)
    dims = range(view.loops)
    whole = [not masked or (view.sizes[dim] or 1) % lanes == 0 for dim in dims]
    rows = [dim for dim in dims if whole[dim] or min(_widths(view)) >= masked_bits]
    long = [dim for dim in dims if whole[dim] or (view.sizes[dim] or lanes) >= lanes]
    pairs = [(dim, row) for dim in long for row in rows if dim != row]
    for dim, row in sorted(pairs, key=lambda pair: not (whole[pair[0]] and whole[pair[1]])):
        walks = [view.moves(operand, dim) for operand in range(len(view.maps))]
        crosses = [operand for operand in range(view.inputs) if crosses_vectors(view, operand, dim, row)]
        plain = all(walks[operand] in ("fixed", "unit") for operand in range(view.inputs) if operand not in crosses)
        fit = all(_can_be_crossed(view.operands[operand]) for operand in crosses)
        if crosses and plain and fit and all(walks[output] == "unit" for output in view.outputs):
            outer = tuple(other for other in dims if other not in (dim, row))
            return TileSizes(dim, row, lanes, 1, lanes, outer, single_edges=not whole[dim])
    return None


def crosses_vectors(view: LinalgOp, operand: int, vector_dim: int, row_dim: int | None) -> bool:
    """Whether an operand moves one by one along the rows of a tile, and in steps of whole rows along its vectors."""
    if row_dim is None or view.moves(operand, row_dim) != "unit" or view.moves(operand, vector_dim) != "other":
        return False
    return None not in [coefficient(expression, vector_dim) for expression in view.maps[operand].results]


def _can_be_crossed(operand: ir.Value) -> bool:
    """Whether vectors of an operand's elements can be shuffled."""
    kind = element_type(operand)
    return isinstance(kind, (ir.FloatType, ir.IntegerType)) and kind.width in (16, 32, 64)


def lanes_of(view: LinalgOp, vector_bytes: int) -> int:
    """How many elements a vector has: as many as fit of the widest operand, or of the widest value for small ones."""
    widths = [element_type(operand).width for operand in view.operands]
    if max(widths) < _SMALL:
        widths += _body_widths(view, index_bits=_SMALL)
    return vector_bytes * 8 // max(8, *widths)


def _body_widths(view: LinalgOp, index_bits: int = 64) -> list[int]:
    """The bits of what the body computes; divisions of integers, which are done one by one, count as wide."""
    widths = []
    for op in view.body_ops:
        widths += [value.type.width for value in op.results if hasattr(value.type, "width")]
        widths += [index_bits for value in op.results if isinstance(value.type, ir.IndexType)]
        if op.name in DIVISIONS:
            widths.append(_SMALL)
    return widths


def _masks_are_bad(view: LinalgOp, masked_bits: int, rest: int | None = None) -> bool:
    """Whether edges are done element by element, because masks are dear or wrong; of so many lanes, if that is known.

    LLVM 22 miscompiles a masked store of truncated integers whose mask lets one lane through: it stores the wide
    integer, past the end of the buffer (X86's reduceMaskedStoreToScalarStore ignores that the store truncates). Remove
    that part when it is mended in llvmlite's LLVM. A bf16 is a truncated integer, too.
    """
    widths = _widths(view)
    widest = max([*widths, *_body_widths(view)])
    if rest is not None and rest > 1:
        return min(widths) < masked_bits
    return min(widths) < masked_bits or any(
        widths[output] < widest and not isinstance(element_type(view.operands[output]), (ir.F32Type, ir.F64Type))
        for output in view.outputs
    )


def _widths(view: LinalgOp) -> list[int]:
    """The bits of an element of each operand, in memory."""
    return [max(8, element_type(operand).width) for operand in view.operands]


def _row_reduction(view: LinalgOp, lanes: int, parallel: tuple[int, ...]) -> TileSizes | str:
    """Vectors along a reduction: each lane has a partial result, and they are combined at the end of the row."""
    folds = fold_ops(view.op)
    if folds is None:
        return "no parallel loop runs along the innermost dimension of the output, and the reduction is no plain fold"
    for dim, reduction in enumerate(view.reductions):
        walks = [view.moves(operand, dim) for operand in range(view.inputs)]
        fixed = all(view.moves(output, dim) == "fixed" for output in view.outputs)
        if reduction and fixed and "unit" in walks and not {"other", "blocked"} & set(walks):
            size = view.sizes[dim]
            vectors = _MOST_FOLDS if size is None else max(1, min(_MOST_FOLDS, -(-size // lanes)))
            return TileSizes(dim, None, 1, vectors, lanes, parallel, folds)
    return "no loop runs along the innermost dimension of the operands"


def _can_be_vector_dim(view: LinalgOp, dim: int, lanes: int, crossing: Sequence[int] = ()) -> bool:
    """Whether vectors of a number of lanes can run along a loop; some operands are loaded across them."""
    walks = ["unit" if number in crossing else view.moves(number, dim) for number in range(len(view.maps))]
    if "other" in walks or not _lies_in_blocks(view, dim, lanes):
        return False
    return all(walks[output] == "unit" for output in view.outputs)


def _lies_in_blocks(view: LinalgOp, dim: int, step: int) -> bool:
    """Whether no block of an operand ends within a step along a loop."""
    return all((block_of(indexing, dim) or step) % step == 0 for indexing in view.maps)


def _row_dim(view: LinalgOp, candidates: list[int], vector_dim: int) -> int | None:
    """The loop whose rows share the most vector loads: one in which what moves along vectors is fixed, if possible.

    For windows, one that they slide along: neighbours read the same elements.
    """
    reductions = view.summed
    windows = set().union(*(slid_along(view, dim) for dim in reductions)) if slides(view) else set()

    def gain(dim: int) -> tuple[bool, bool, int, int]:
        vectors_move = any(
            view.moves(operand, vector_dim) != "fixed" and view.moves(operand, dim) != "fixed"
            for operand in range(view.inputs)
        )
        return (
            dim in windows,
            not vectors_move,
            view.sizes[dim] or 64,
            dim,
        )  # rows next to each other, of those of one size

    usable = [dim for dim in candidates if view.sizes[dim] != 1]
    return max(usable, key=gain, default=None)


def _vectors(size: int | None, lanes: int, alone: bool, reduces: bool) -> int:
    """How many vectors side by side: as many as hide the latency of the accumulators, where there are no rows."""
    most = 1 if not reduces else 8 if alone else 2
    if size is None:
        return most
    return max(1, min(most, -(-size // lanes)))


def choose_rows(size: int | None, vectors: int, registers: int) -> int:
    """How many rows of some vectors: as many as there are registers for, preferably without a rest."""
    most = max(1, int(registers * _ACCUMULATORS) // vectors)
    if size == 0:
        return 1
    whole = (registers - _LEAST_FREE) // vectors
    if (
        registers >= _MANY
        and vectors > 1
        and size is not None
        and most < whole <= size < 4 * most
        and size % whole == 0
    ):
        return whole
    if size is None or size >= 4 * most:
        return next((rows for rows in range(most, most // 2, -1) if size and size % rows == 0), min(most, 8))
    return next(
        (rows for rows in range(min(size, most), 0, -1) if size % rows == 0 and rows * 2 > most), min(size, most)
    )
