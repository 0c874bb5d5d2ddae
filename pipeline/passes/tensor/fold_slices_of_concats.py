"""fold-slices-of-concats: a slice of a concatenation is made of the parts that it covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.concat import INSERT, parts_of
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import defining_op, ir, tensor
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class FoldSlicesOfConcats(PatternPass):
    """Take a tensor.extract_slice of a concatenation from its parts.

    A slice of one part alone is the slice of that part, or the part itself. As `torch.diff` with `prepend` and shifted
    copies need it. Places and sizes have to be known.
    """

    name: ClassVar[str] = "fold-slices-of-concats"
    anchor: ClassVar[str] = "func.func"

    @pattern("tensor.extract_slice")
    def slice_parts(self, cut: ir.Operation) -> bool:
        """slice(concat(x, y, z))   ->   concat(slice(x), slice(y)), of the parts that it covers"""
        last = defining_op(cut.operands[0])
        parts = parts_of(last) if last is not None and last.name == INSERT else None
        box = _box(cut)
        if parts is None or box is None:
            return False
        covered = [(part, overlap) for part in parts if (overlap := _overlap(_place(part), box)) is not None]
        self.passed(cut, f"is made of {len(covered)} of {len(parts)} parts")
        with before(cut):
            replace(cut, [_made_of(cut, box, covered)])
        return True


#: For each dim where something starts in a tensor, and its size.
_Box = list[tuple[int, int]]


def _box(cut: ir.Operation) -> _Box | None:
    """Where a slice of known place lies that drops and strides over nothing, and is not empty."""
    offsets, sizes, strides = (_numbers(cut, name) for name in ("offsets", "sizes", "strides"))
    kind = ir.RankedTensorType(cut.results[0].type)
    if len(cut.operands) != 1 or list(kind.shape) != sizes or any(stride != 1 for stride in strides) or 0 in sizes:
        return None
    return list(zip(offsets, sizes, strict=True))


def _place(part: ir.Operation) -> _Box:
    return list(zip(_numbers(part, "offsets"), _numbers(part, "sizes"), strict=True))


def _numbers(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))


def _overlap(one: _Box, other: _Box) -> _Box | None:
    """What two boxes have in common."""
    found = []
    for (first, size), (start, length) in zip(one, other, strict=True):
        low, high = max(first, start), min(first + size, start + length)
        if low >= high:
            return None
        found.append((low, high - low))
    return found


def _made_of(cut: ir.Operation, box: _Box, covered: list[tuple[ir.Operation, _Box]]) -> ir.Value:
    """The slice, of those parts that it covers, each with what it has in common with the slice."""
    pieces = [_piece(part.operands[0], _relative(common, _place(part))) for part, common in covered]
    if len(pieces) == 1:
        return pieces[0]
    whole = tensor.EmptyOp([size for _, size in box], ir.RankedTensorType(cut.results[0].type).element_type).result
    for piece, (_, common) in zip(pieces, covered, strict=True):
        offsets, sizes = map(list, zip(*_relative(common, box), strict=True))
        whole = tensor.InsertSliceOp(piece, whole, [], [], [], offsets, sizes, [1] * len(sizes)).result
    return whole


def _relative(box: _Box, around: _Box) -> _Box:
    return [(first - start, size) for (first, size), (start, _) in zip(box, around, strict=True)]


def _piece(source: ir.Value, box: _Box) -> ir.Value:
    kind = ir.RankedTensorType(source.type)
    offsets, sizes = map(list, zip(*box, strict=True))
    if sizes == list(kind.shape):
        return source
    cut = ir.RankedTensorType.get(sizes, kind.element_type)
    return tensor.ExtractSliceOp(cut, source, [], [], [], offsets, sizes, [1] * len(sizes)).result
