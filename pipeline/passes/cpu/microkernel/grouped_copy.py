"""Writes copies whose innermost loop runs over a few elements: groups that are put together, or moved as they are.

Vectors along such a loop would be filled to a part. Where each element of a group comes from a line of its own, the
lines are interleaved; where groups lie together in the source, too, they are transposed as words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_bytes, is_scalar
from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir, memref, vector
from pipeline.passes.cpu.microkernel.narrow_elements import stored_view
from pipeline.passes.cpu.microkernel.vector_builders import parallel_loop, plus, times
from pipeline.passes.cpu.microkernel.vector_transpose import transposed

#: How many elements a group has.
_GROUPS = (2, 4)

#: How long the vectors are that are interleaved, in elements, at least.
_LEAST_LANES = 8

_WORD_BYTES = 4


@dataclass(frozen=True)
class GroupedCopy:
    """A copy to memory that has groups of elements innermost.

    Attributes:
        group: how many elements one has.
        lanes: how many groups are moved at a time, along the loop around that of a group.
        lines: where groups lie together in the source, the loop along which they follow each other there.
    """

    view: LinalgOp
    group: int
    lanes: int
    lines: int | None = None

    @property
    def described(self) -> str:
        """What it does, for a remark."""
        how = "interleaves lines of" if self.lines is None else "transposes squares of"
        return f"{how} {self.lanes} elements, {self.group} of which are a group"

    def emit(self) -> None:
        """Writes the loops at the insertion point."""
        view = self.view
        steps = {view.loops - 2: self.lanes} | ({} if self.lines is None else {self.lines: self.lanes})
        outer = range(view.loops - 1)

        def level(loop: int, at: list[ir.Value]) -> None:
            if loop == len(outer):
                (self._interleave if self.lines is None else self._transpose)(at)
                return
            size = view.sizes[loop]
            assert size is not None
            parallel_loop(as_index(0), as_index(size), steps.get(loop, 1), lambda i: level(loop + 1, [*at, i]))

        level(0, [])

    def _interleave(self, at: Sequence[ir.Value]) -> None:
        """[a0 a1 ..], [b0 b1 ..] -> [a0 b0 a1 b1 ..]"""
        source, kind = self._buffers[0], self._line(self.lanes)
        lines = [
            vector.LoadOp(kind, source, self._places([*at, as_index(number)])).result for number in range(self.group)
        ]
        while len(lines) > 1:
            half = len(lines) // 2
            pairs = zip(lines[:half], lines[half:], strict=True)
            lines = [vector.InterleaveOp(one, other).result for one, other in pairs]
        vector.StoreOp(lines[0], self._groups, [*at[:-1], times(at[-1], self.group)])

    def _transpose(self, at: Sequence[ir.Value]) -> None:
        """A square of groups, each of which is a word."""
        assert self.lines is not None
        source, count = self._buffers[0], self.lanes * self.group
        words = ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(8 * _WORD_BYTES))
        rows = []
        for number in range(self.lanes):
            place = [*at[:-1], plus(at[-1], number), as_index(0)]
            line = vector.LoadOp(self._line(count), source, self._places(place)).result
            rows.append(vector.BitCastOp(words, line).result)
        for number, row in enumerate(transposed(rows)):
            place = list(at)
            place[self.lines] = plus(place[self.lines], number)
            groups = vector.BitCastOp(self._line(count), row).result
            vector.StoreOp(groups, self._groups, [*place[:-1], times(place[-1], self.group)])

    @property
    def _buffers(self) -> list[ir.Value]:
        return [stored_view(operand) for operand in self.view.operands]

    @property
    def _groups(self) -> ir.Value:
        """The result with its groups one after the other, in one dim."""
        result = self._buffers[1]
        kind = ir.MemRefType(result.type)
        *outer, columns, group = kind.shape
        reassociation = [[dim] for dim in range(len(outer))] + [[len(outer), len(outer) + 1]]
        flat = ir.MemRefType.get([*outer, columns * group], kind.element_type)
        return memref.CollapseShapeOp(flat, result, reassociation).result

    def _line(self, count: int) -> ir.VectorType:
        return ir.VectorType.get([count], ir.MemRefType(self._buffers[0].type).element_type)

    def _places(self, counters: Sequence[ir.Value]) -> list[ir.Value]:
        """Where the source has what the result has at these counters."""
        return [counters[loop] for loop in self.view.loops_read(0)]


def grouped_copy(view: LinalgOp, vector_bytes: int) -> GroupedCopy | None:
    """The copy that an op is, if it has groups innermost; None for others, and for groups that fill no vectors."""
    if view.inputs != 1 or len(view.outputs) != 1 or view.body_ops or not view.is_elementwise or view.loops < 3:
        return None
    if any(map(is_scalar, view.operands)):
        return None
    result, source = (ir.MemRefType(view.operands[number].type) for number in (1, 0))
    loops, sizes = view.loops_read(0), view.sizes
    plain = is_identity(view.maps[1]) and _has_no_layout(result)
    if not plain or None in sizes or not view.reads_once(0) or view.yielded != [view.body.arguments[0]]:
        return None
    group, columns = view.loops - 1, view.loops - 2
    count, width = sizes[group], element_bytes(view.operands[0])
    if count not in _GROUPS or width not in (1, 2) or not _is_contiguous(source):
        return None
    return _choice(view, loops, count, width, vector_bytes, columns)


def _choice(
    view: LinalgOp, loops: list[int], count: int, width: int, vector_bytes: int, columns: int
) -> GroupedCopy | None:
    """See `grouped_copy`."""
    if loops[-1] == columns:
        lanes = _lanes(view.sizes[columns], vector_bytes // width)
        return GroupedCopy(view, count, lanes) if lanes >= _LEAST_LANES else None
    lines = loops[-2] if loops[-1] == view.loops - 1 and count * width == _WORD_BYTES else None
    if lines is None or lines == columns:
        return None
    words = vector_bytes // _WORD_BYTES
    fits = _lanes(view.sizes[columns], words) == words and _lanes(view.sizes[lines], words) == words
    return GroupedCopy(view, count, words, lines) if fits else None


def _lanes(size: int | None, most: int) -> int:
    """The largest power of two that divides a size, and is not larger than `most`."""
    lanes = most
    while lanes > 1 and (size or 0) % lanes:
        lanes //= 2
    return lanes


def _has_no_layout(kind: ir.MemRefType) -> bool:
    """Whether elements follow each other in the order of their dims."""
    return ir.AffineMap.get_identity(kind.rank) == kind.affine_map


def _is_contiguous(kind: ir.MemRefType) -> bool:
    """Whether the elements of the innermost dims follow each other."""
    strides, _ = kind.get_strides_and_offset()
    return bool(strides[-1] == 1)
