"""Long sums as sums of partial sums: rounding errors grow with the length of a chain of additions.

A chain of n additions in f32 loses about n / 2 units of the last place of one addition, partial sums of b terms each
about sqrt(n * b) / 2. Libraries of matrix products do the same, since they block the sum for their caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from pipeline.ir.constants import as_index
from pipeline.mlir import arith, ir, scf
from pipeline.passes.cpu.microkernel.vector_builders import combine, splat_of

#: The most terms of a partial sum. Adding it to the total takes half a percent of the time of that many terms.
_MOST_TERMS = 192

#: Adds up the iterations from the first to before the last of a loop, to the values that it is given.
EmitLoop = Callable[[ir.Value, ir.Value, list[ir.Value]], list[ir.Value]]


@dataclass(frozen=True)
class Blocks:
    """Where a nest of reductions is cut.

    Attributes:
        depth: the number of the reduction whose iterations are cut into blocks, 0 for the outermost.
        iterations: of it, in a block.
        count: how many iterations it has, None if that is not known.
        folds: the associative op that adds to each output.
    """

    depth: int
    iterations: int
    count: int | None
    folds: tuple[str, ...]

    def run(
        self, end: ir.Value, totals: list[ir.Value], run: EmitLoop, step: int = 1, start: ir.Value | None = None
    ) -> list[ir.Value]:
        """`totals` with what `run` computes from `start` (or 0) to `end` by steps, a block of iterations at a time."""
        block = as_index(self.iterations * step)
        loop = scf.ForOp(as_index(0) if start is None else start, end, block, totals)
        with ir.InsertionPoint(loop.body):
            first = loop.induction_variable
            after = arith.AddIOp(first, block).result
            last = after if self._is_even() else arith.MinUIOp(after, end).result
            folds = [fold for fold in self.folds for _ in range(len(totals) // len(self.folds))]
            starts = [splat_of(total.type, fold) for total, fold in zip(totals, folds, strict=True)]
            parts = run(first, last, starts)
            sums = zip(folds, loop.inner_iter_args, parts, strict=True)
            scf.YieldOp([combine(fold, total, part) for fold, total, part in sums])
        return list(loop.results)

    def _is_even(self) -> bool:
        return self.count is not None and self.count % self.iterations == 0


def blocks_of(
    sizes: Sequence[int | None], folds: tuple[str, ...] | None, most_terms: int = _MOST_TERMS
) -> Blocks | None:
    """Where to cut reductions of these sizes, outermost first, whose outputs are computed by `folds`.

    None if they are short, or compute no sum of floats. Sizes that are not known count as long.
    """
    if not folds or "arith.addf" not in folds:
        return None
    for depth in reversed(range(len(sizes))):
        inner = prod(size for size in sizes[depth + 1 :] if size is not None)
        size = sizes[depth]
        most = max(1, most_terms // max(1, inner))
        if size is None:
            return Blocks(depth, most, None, folds)
        if size > most:
            return Blocks(depth, -(-size // -(-size // most)), size, folds)
    return None
