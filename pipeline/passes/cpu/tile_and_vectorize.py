"""tile-and-vectorize: linalg on buffers → loops over register tiles of vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, ClassVar, Self

from pipeline.analysis.dot_product import DotProduct, dot_product_of
from pipeline.analysis.epilogue import epilogues, initial_fill, is_only_between, prologues
from pipeline.analysis.fourier import transform_of
from pipeline.analysis.op_naming import is_reduction
from pipeline.analysis.paired_sum import paired_sum_of
from pipeline.analysis.scaled_dot import scaled_dot_of
from pipeline.analysis.scaled_sum import dequantized_sum_of, scaled_sum_of
from pipeline.analysis.vectorizable import unsupported
from pipeline.ir.byte_products import HELP, NONE
from pipeline.ir.linalg_op import LinalgOp, bounded
from pipeline.ir.schedule import Schedule, schedule_of
from pipeline.mlir import defining_op, function_around, ir, walk
from pipeline.passes.cpu.microkernel.cache_blocks import cache_blocks_of
from pipeline.passes.cpu.microkernel.coalesced_loops import coalesce
from pipeline.passes.cpu.microkernel.data_dependent_indexing import computes_places
from pipeline.passes.cpu.microkernel.grouped_copy import grouped_copy
from pipeline.passes.cpu.microkernel.lane_factors import with_lane_factor
from pipeline.passes.cpu.microkernel.line_sums import line_sums_of
from pipeline.passes.cpu.microkernel.pad_pattern import Pad, can_do_without, pad_of
from pipeline.passes.cpu.microkernel.pooled_rows import PooledRows, pooled_rows_of, reads_unpadded
from pipeline.passes.cpu.microkernel.rounding import is_rounding_to_bf16
from pipeline.passes.cpu.microkernel.strided_sums import strided_sums_of
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes, choose_tile, fits_fold, fits_tile, lanes_of
from pipeline.passmanager.base import Pass

if TYPE_CHECKING:
    from pipeline.passes.cpu.microkernel.loop_nest import Context, NestEmitter


@dataclass(frozen=True)
class TileAndVectorize(Pass):
    """Turn linalg.generic on buffers into loops over tiles that live in vector registers.

    A tile is some rows of some vectors of the output: the vectors run along a parallel loop in which every operand is
    either fixed (it is broadcast) or moves one by one along its innermost dimension; the rows along another parallel
    loop. Reductions run inside, with the tile as their accumulator. Matrix products, direct convolutions, pooling,
    column reductions and elementwise ops all have this form. Products of large matrices that do not lie in panels go in
    blocks of terms and of rows, so that what tiles read again is in cache; lines that lie far apart are asked for ahead
    of time. Where each term is another line of both operands, as in the gradient of a convolution by its weight, blocks
    of terms stand outside of all tiles, and what is read along vectors lies in a panel. A row times a large matrix, or
    a sum of its lines, reads some lines as a whole before the next ones. Pools along rows of images fold their rows
    before they fold along them. A fold along the innermost dimension, as in a sum, has partial results in vectors
    instead, which are combined at the end of each row; elementwise ops that compute what it reads run in the same loop.
    What scales a group of a sum's terms, as where weights are dequantized, is applied to the sum of the group; numbers
    of four bits are looked up in a table of their floats, and where rows fill more than a tile, all of them read what
    factors are from a panel. Products of bf16 and of what is dequantized to numbers that bf16 has are added up two at a
    time, by dot products of bf16. Groups of scaled products of bytes are sums of integers, by dot products. With AMX,
    products of bf16 and of bytes, of four rows and more, are added up in its tiles, if columns lie in groups. Edges are
    masked, or done element by element where a mask would be dear or wrong. Copies to groups of two or four elements, as
    dot products read them, interleave lines, or transpose words. Elementwise ops over small dims run over collapsed
    buffers. What has neither form is left for convert-linalg-to-loops, with a remark.
    """

    name: ClassVar[str] = "tile-and-vectorize"
    anchor: ClassVar[str] = "func.func"

    vector_bytes: int = field(default=64, metadata={"help": "the width of a vector register"})
    registers: int = field(default=32, metadata={"help": "how many vector registers there are"})
    masked_bits: int = field(default=8, metadata={"help": "the smallest elements that can be loaded under a mask"})
    fma: bool = field(default=True, metadata={"help": "multiply and add with one rounding in contractions"})
    bf16_dots: bool = field(default=False, metadata={"help": "the processor has dot products of bf16"})
    int8_dots: str = field(default=NONE, metadata={"help": HELP})
    dot_matrices: bool = field(default=False, metadata={"help": "dot products of two rows and columns are one"})
    amx: bool = field(default=False, metadata={"help": "the processor multiplies tiles of bf16 and of bytes"})
    lane_factors: bool = field(default=False, metadata={"help": "a multiply-add can take a lane of a vector for all"})

    def run(self, op: ir.Operation) -> None:
        """Vectorizes what it can of one function."""
        for reduces in (True, False):  # reductions take in fills before them and epilogues behind them
            generics = [generic for generic in walk(op, "linalg.generic") if is_reduction(generic) == reduces]
            for generic in generics:  # chosen before: the epilogues of a reduction are gone when it is done
                self._vectorize(generic, schedule_of(op))

    def _vectorize(self, generic: ir.Operation, schedule: Schedule) -> None:
        """Vectorizes an op together with the ops behind it that are its epilogues."""
        if self._as_transform(generic):
            return
        problem, view = unsupported(generic, places=True), bounded(generic)
        if problem or view is None:
            self.missed(generic, problem or "a loop is bounded by no operand's dimension")
            return
        if schedule.winograd != 0 and self._by_winograd(view):
            return
        if self._as_grouped_copy(view):
            return
        made = coalesce(view, lanes_of(view, self.vector_bytes))
        if made is not None:
            self._vectorize(made, schedule)
            return
        tile = choose_tile(view, self.vector_bytes, self.registers, self.masked_bits, schedule)
        if isinstance(tile, str):
            self.missed(generic, tile)
            return
        if self.lane_factors and self.fma:
            tile = with_lane_factor(view, tile, self._dot(view, tile))
        emitter = self._emitter(view, tile)
        nest = _FusedNest.around(view, tile, self.masked_bits, emitter.reads_pads)
        blocks = _blocks_of(view, tile) or ""
        sizes = f"tiles of {tile.rows} x {tile.vectors} vectors of {tile.lanes}"
        self.passed(generic, f"{sizes}{blocks}{emitter.remark(view, tile)}{nest.others}")
        with generic.location, ir.InsertionPoint(nest.last):
            emitter(view, tile, self.fma, nest.context()).emit()
        nest.erase()

    def _emitter(self, view: LinalgOp, tile: TileSizes) -> type[NestEmitter]:
        """What writes the loops; emitters need MLIR's vector dialect, which is slow to import."""
        if tile.folds:
            from pipeline.passes.cpu.microkernel.row_folds import FoldEmitter

            return FoldEmitter
        has_dot = self._dot(view, tile) is not None
        if has_dot and self.dot_matrices:
            from pipeline.passes.cpu.microkernel.matrix_tile import MatrixEmitter, fits_matrices

            if fits_matrices(view, tile):
                return MatrixEmitter
        if has_dot and self.amx:
            from pipeline.passes.cpu.microkernel.amx_tile import AmxEmitter, why_not_amx

            reason = why_not_amx(view, tile)
            if reason is None:
                return AmxEmitter
            self.missed(view.op, f"not in AMX's tiles: {reason}")
        if has_dot:
            from pipeline.passes.cpu.microkernel.dot_product_tile import DotEmitter

            return DotEmitter
        if self._scaled_dot(view, tile):
            from pipeline.passes.cpu.microkernel.scaled_dot_tile import ScaledDotEmitter

            return ScaledDotEmitter
        if self._pairs(view, tile):
            from pipeline.passes.cpu.microkernel.paired_tile import PairedEmitter

            return PairedEmitter
        if self._rounds_factor(view, tile):
            from pipeline.passes.cpu.microkernel.rounded_tile import RoundedEmitter

            return RoundedEmitter
        if scaled_sum_of(view) is not None:
            from pipeline.passes.cpu.microkernel.dequantized_nest import DequantizedEmitter

            return DequantizedEmitter
        if cache_blocks_of(view, tile) is not None:
            from pipeline.passes.cpu.microkernel.cache_blocked_nest import CacheBlockedEmitter

            return CacheBlockedEmitter
        if strided_sums_of(view, tile) is not None:
            from pipeline.passes.cpu.microkernel.strided_sums_nest import StridedSumsEmitter

            return StridedSumsEmitter
        if pooled_rows_of(view, tile.vector_dim) is not None:
            from pipeline.passes.cpu.microkernel.pooled_rows_nest import PooledRowsEmitter

            return PooledRowsEmitter
        if line_sums_of(view, tile) is not None:
            from pipeline.passes.cpu.microkernel.line_sums_nest import LineSumsEmitter

            return LineSumsEmitter
        from pipeline.passes.cpu.microkernel.loop_nest import NestEmitter

        return NestEmitter

    def _dot(self, view: LinalgOp, tile: TileSizes) -> DotProduct | None:
        """The dot product that computes several steps of a sum at a time; None if there is none."""
        dot = dot_product_of(view.body) if not tile.folds and tile.lanes * 4 == self.vector_bytes else None
        return dot if dot is not None and dot.exists(self.bf16_dots, self.int8_dots) else None

    def _scaled_dot(self, view: LinalgOp, tile: TileSizes) -> bool:
        """Whether a dot product computes several steps of sums of groups that have a scale each."""
        found = scaled_dot_of(view) if not tile.folds and tile.lanes * 4 == self.vector_bytes else None
        return found is not None and found.dot.exists(self.bf16_dots, self.int8_dots)

    def _pairs(self, view: LinalgOp, tile: TileSizes) -> bool:
        """Whether a dot product of bf16 adds up two terms of a sum at a time, of which one factor is dequantized."""
        return self._has_bf16(tile) and paired_sum_of(view) is not None

    def _rounds_factor(self, view: LinalgOp, tile: TileSizes) -> bool:
        """Whether a factor is rounded to bf16 as it is dequantized, and the processor has an instruction for that."""
        rounds = self._has_bf16(tile) and any(is_rounding_to_bf16(op, tile.lanes) for op in view.body_ops)
        return rounds and dequantized_sum_of(view) is not None

    def _has_bf16(self, tile: TileSizes) -> bool:
        """Whether there are instructions of bf16 for whole vectors of a tile."""
        return self.bf16_dots and not tile.folds and tile.lanes * 4 == self.vector_bytes

    def _as_transform(self, generic: ir.Operation) -> bool:
        """Writes a Fourier transform in n log n steps; False if it is none."""
        transform = transform_of(generic)
        if transform is None:
            return False
        from pipeline.passes.cpu.microkernel.fourier_tiles import FourierEmitter

        fill = initial_fill(generic, 1)
        if fill is None:
            self.missed(generic, "a Fourier transform that is added to something is a sum of n² terms")
            return False
        self.passed(generic, f"Fourier transform of length {transform.n}")
        with generic.location, ir.InsertionPoint(generic):
            FourierEmitter(generic, transform, self.vector_bytes, self.fma, function_around(generic)).emit()
        for gone in (generic, fill):
            gone.erase()
        return True

    def _as_grouped_copy(self, view: LinalgOp) -> bool:
        """Writes a copy of groups of a few elements; False if it is none."""
        copy = grouped_copy(view, self.vector_bytes)
        if copy is None:
            return False
        self.passed(view.op, copy.described)
        with view.op.location, ir.InsertionPoint(view.op):
            copy.emit()
        view.op.erase()
        return True

    def _by_winograd(self, view: LinalgOp) -> bool:
        """Writes a convolution that is meant for it by Winograd's algorithm; False if it is not."""
        from pipeline.passes.cpu.microkernel.winograd_nest import WinogradEmitter, winograd_tile

        tile = winograd_tile(view, self.vector_bytes, self.registers, self.lane_factors)
        if tile is None:
            return False
        if isinstance(tile, str):
            self.missed(view.op, f"not by Winograd's algorithm: {tile}")
            return False
        nest = _FusedNest.around(view, tile.register_tile, self.masked_bits)
        self.passed(view.op, f"Winograd's algorithm, {tile.m} x {tile.m} results a tile{nest.others}")
        with view.op.location, ir.InsertionPoint(nest.last):
            WinogradEmitter(view, tile, self.fma, nest.context()).emit()
        nest.erase()
        return True


@dataclass(frozen=True)
class _FusedNest:
    """An op, and what its loops do besides.

    Attributes:
        fills: what the outputs of a reduction begin with, by their numbers.
        prologues, epilogues: elementwise ops that compute what a fold reads, and that read what a tile has.
        pads: what inputs are padded copies of, which are not made any more.
    """

    view: LinalgOp
    fills: dict[int, ir.Operation] = field(default_factory=dict)
    prologues: tuple[LinalgOp, ...] = ()
    epilogues: tuple[LinalgOp, ...] = ()
    pads: dict[int, Pad] = field(default_factory=dict)

    @classmethod
    def around(cls, view: LinalgOp, tile: TileSizes, masked_bits: int, reads_pads: bool = True) -> Self:
        """What the loops of an op take in; nothing but itself if it is no reduction. Pads, if these are read there."""
        if not any(view.reductions):
            return cls(view)
        fills = {output: fill for output in view.outputs if (fill := initial_fill(view.op, output)) is not None}
        if not tile.folds:
            behind = takewhile(lambda epilogue: fits_tile(epilogue, tile, masked_bits), epilogues(view))
            pads = _pads(view, tile, masked_bits) if reads_pads else {}
            return cls(view, fills, (), tuple(behind), pads)
        if computes_places(view.body):
            return cls(view, fills)
        before = prologues(view, lambda prologue: fits_fold(prologue, tile, masked_bits))
        return cls(view, fills, tuple(before))

    @property
    def last(self) -> ir.Operation:
        """The last op; the loops stand in front of it."""
        return self.epilogues[-1].op if self.epilogues else self.view.op

    @property
    def others(self) -> str:
        """What stands in the remark behind the tile."""
        if self.prologues:
            return f" with {len(self.prologues)} prologues"
        pads = " of what is padded" if self.pads else ""
        return pads + (f" with {len(self.epilogues)} epilogues" if self.epilogues else "")

    def context(self) -> Context:
        """What emitters are told of it."""
        from pipeline.passes.cpu.microkernel.loop_nest import Context

        views = (self.view, *self.prologues, *self.epilogues)
        ops = [*(view.op for view in views), *self.fills.values()]
        outputs = {view.operands[output] for view in views for output in view.outputs}
        fuses = bool(self.prologues or self.epilogues)
        between = frozenset(buffer for buffer in outputs if is_only_between(buffer, ops)) if fuses else frozenset()
        initials = {output: fill.operands[0] for output, fill in self.fills.items()}
        return Context(initials, self.epilogues, between, self.prologues, self.pads)

    def erase(self) -> None:
        """Erases the ops, which are done with."""
        behind, before = ([neighbour.op for neighbour in group] for group in (self.epilogues, self.prologues))
        made = [op for pad in self.pads.values() for op in reversed(pad.ops)]
        for op in (*reversed(behind), self.view.op, *reversed(before), *self.fills.values(), *made):
            op.erase()


def _blocks_of(view: LinalgOp, tile: TileSizes) -> object:
    """What the remark says of sums that are cut; None where they are not."""
    pooled = None if tile.folds else pooled_rows_of(view, tile.vector_dim)
    return cache_blocks_of(view, tile) or strided_sums_of(view, tile) or pooled or line_sums_of(view, tile)


def _pads(view: LinalgOp, tile: TileSizes, masked_bits: int) -> dict[int, Pad]:
    """The inputs that are padded copies which the op can do without."""
    found = {number: pad_of(view.op, number) for number in range(view.inputs)}
    pads = {number: pad for number, pad in found.items() if pad is not None}
    pooled = pooled_rows_of(view, tile.vector_dim)
    if pooled is not None:
        return {number: pad for number, pad in pads.items() if number == 0 and _is_left_out(view, pad, pooled)}
    return {
        number: pad
        for number, pad in pads.items()
        if can_do_without(ir.MemRefType(view.operands[number].type), view, number, tile.vector_dim, masked_bits)
    }


def _is_left_out(view: LinalgOp, pad: Pad, pooled: PooledRows) -> bool:
    """Whether a pool that folds rows before goes by a pad."""
    number = defining_op(pad.number)
    if number is None or number.name != "arith.constant":
        return False
    return reads_unpadded(pooled, view, pad.source.type, pad.low, number.attributes["value"])
