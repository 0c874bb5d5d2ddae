"""Splitting loops: what a linalg op's loops have to become so that a reshape beside it is not needed.

collapse_shape [[0, 1]] : 2x3 -> 6, read along loop i   =>   loops i0 of 2 and i1 of 3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.nibbles import nibble_of
from pipeline.ir.reshapes import reassociation
from pipeline.mlir import defining_op, ir

#: The sizes of the loops that one loop becomes; none is 1.
Sizes = tuple[int, ...]

#: Rows of fewer elements do not fill a vector.
_SHORT = 16


@dataclass(frozen=True)
class Splits:
    """What loops are split into.

    Attributes:
        sizes: for each loop that is split, the sizes of those that it becomes.
    """

    sizes: dict[int, Sizes]

    def parts(self, loop: int) -> int:
        """How many loops a loop becomes."""
        return len(self.sizes.get(loop, (1,)))

    def __str__(self) -> str:
        return ", ".join(f"{loop} into {'x'.join(map(str, sizes))}" for loop, sizes in sorted(self.sizes.items()))


def splits_of_input(view: LinalgOp) -> Splits | None:
    """Those for reading what an input is collapsed from; None if no input is, or a loop cannot be split so."""
    for number in range(view.inputs):
        producer = defining_op(view.op.operands[number])
        if producer is None or producer.name != "tensor.collapse_shape":
            continue
        source = producer.operands[0]
        found = _splits(view, view.maps[number], reassociation(producer), source)
        if found is not None and not _tears_rows(view, number, found):
            return found
    return None


def _tears_rows(view: LinalgOp, number: int, splits: Splits) -> bool:
    """Whether rows of results would be split into short ones that do not come from rows of an input.

    So would a transpose of an image whose pixels lie in phases: with the reshape before it, it moves whole rows.
    """
    innermost = [indexing.results[-1] for indexing in view.maps[view.inputs :] if len(indexing.results)]
    torn = [
        loop for loop, sizes in splits.sizes.items() if ir.AffineDimExpr.get(loop) in innermost and sizes[-1] < _SHORT
    ]
    return any(view.maps[number].results[-1] != ir.AffineDimExpr.get(loop) for loop in torn)


def splits_of_result(view: LinalgOp) -> Splits | None:
    """Those for computing what a result is expanded to; None if none is, or a loop cannot be split so."""
    for number, result in enumerate(view.op.results):
        for use in result.uses:
            user = use.owner.operation
            if user.name != "tensor.expand_shape" or _goes_to_halves(user):
                continue
            found = _splits(view, view.maps[view.inputs + number], reassociation(user), user.results[0])
            if found is not None:
                return found
    return None


def _goes_to_halves(expand: ir.Operation) -> bool:
    """Whether a reshape is read along the halves of bytes: rows of two are for what reads them alone."""
    readers = [structured(use.owner.operation) for use in expand.results[0].uses]
    return any(reader is not None and nibble_of(reader) is not None for reader in readers)


def _splits(view: LinalgOp, indexing: ir.AffineMap, groups: Sequence[Sequence[int]], source: ir.Value) -> Splits | None:
    kind = ir.RankedTensorType(source.type)
    sizes: dict[int, Sizes] = {}
    for expression, group in zip(indexing.results, groups, strict=True):
        parts = tuple(
            kind.get_dim_size(dim) for dim in group if kind.is_dynamic_dim(dim) or kind.get_dim_size(dim) != 1
        )
        if len(parts) < 2:
            continue
        loop = _plain_loop(view, expression)
        if loop is None or any(kind.is_dynamic_dim(dim) for dim in group) or sizes.get(loop, parts) != parts:
            return None
        sizes[loop] = parts
    return Splits(sizes) if sizes else None


def _plain_loop(view: LinalgOp, expression: ir.AffineExpr) -> int | None:
    """The loop that an index is, if all operands are indexed by it alone or not at all."""
    if not isinstance(expression, ir.AffineDimExpr):
        return None
    for indexing in view.maps:
        for other in indexing.results:
            if (
                not isinstance(other, ir.AffineDimExpr)
                and other != ir.AffineConstantExpr.get(0)
                and _uses(other, expression)
            ):
                return None
    return ir.AffineDimExpr(expression).position


def _uses(expression: ir.AffineExpr, dim: ir.AffineExpr) -> bool:
    if isinstance(expression, (ir.AffineDimExpr, ir.AffineConstantExpr, ir.AffineSymbolExpr)):
        return expression == dim
    binary = ir.AffineBinaryExpr(expression)
    return _uses(binary.lhs, dim) or _uses(binary.rhs, dim)
