"""fold-unit-transposes: transposes move dims of more than one element; reshapes add and drop the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.reshapes import unit_groups
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import ir, linalg, tensor
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class FoldUnitTransposes(PatternPass):
    """Let transposes leave dims of size 1 alone, where those are all that moves, or one is the innermost.

    A transpose is a copy, a reshape is none. Products that are written as `einsum` are full of such dims, and an
    innermost one hides along which dim the elements lie.
    """

    name: ClassVar[str] = "fold-unit-transposes"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.transpose")
    def reshape(self, transpose: ir.Operation) -> bool:
        """transpose [0, 2, 1] : 8x1x64 to 8x64x1   ->   expand_shape(collapse_shape : 8x64) : 8x64x1"""
        source = ir.RankedTensorType(transpose.operands[0].type)
        kept = [dim for dim, size in enumerate(source.shape) if size != 1]
        if not 0 < len(kept) < source.rank or not source.has_static_shape:
            return False
        if not _is_reshape(transpose, kept) and not _hides_lines(transpose):
            return False
        self.passed(transpose, f"moves {len(kept)} of {source.rank} dims: the others have one element")
        with before(transpose):
            replace(transpose, [_without_units(transpose, source, kept)])
        return True


def _permutation(transpose: ir.Operation) -> list[int]:
    return [int(dim) for dim in ir.DenseI64ArrayAttr(transpose.attributes["permutation"])]


def _is_reshape(transpose: ir.Operation, kept: list[int]) -> bool:
    """Whether the dims of more than one element stay in their order."""
    return [dim for dim in _permutation(transpose) if dim in kept] == kept


def _hides_lines(transpose: ir.Operation) -> bool:
    """Whether there is but one element along the innermost dim, before or behind."""
    values = transpose.operands[0], transpose.results[0]
    return 1 in [ir.RankedTensorType(value.type).shape[-1] for value in values]


def _without_units(transpose: ir.Operation, source: ir.RankedTensorType, kept: list[int]) -> ir.Value:
    order = [kept.index(dim) for dim in _permutation(transpose) if dim in kept]
    element = source.element_type
    small = ir.RankedTensorType.get([source.shape[dim] for dim in kept], element)
    value = tensor.CollapseShapeOp(small, transpose.operands[0], unit_groups(kept, source.rank)).result
    if order != sorted(order):
        empty = tensor.EmptyOp([small.shape[dim] for dim in order], element).result
        value = linalg.transpose(value, outs=[empty], permutation=order).results[0]
    result = ir.RankedTensorType(transpose.results[0].type)
    large = [dim for dim, size in enumerate(result.shape) if size != 1]
    groups = unit_groups(large, result.rank)
    return tensor.ExpandShapeOp(result, value, groups, [], list(result.shape)).result
