"""Linalg ops: the body runs once for all iterations, on arrays that broadcast along the loops.

Sums and other folds of which NumPy has the combiner run at once, too; sums of products as matrix products. Other loops
that are reductions run one iteration after the other, as the IR says, and so do all loops of a body with branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.debug.interpreter.contraction import contract
from pipeline.debug.interpreter.folds import Fold, folds_of
from pipeline.debug.interpreter.frame import Frame, UnknownOp
from pipeline.debug.interpreter.handlers import interprets
from pipeline.debug.interpreter.number_types import BF16, F16
from pipeline.debug.interpreter.windows import seen_along
from pipeline.ir.indexing_maps import coefficient, loop_of
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.mlir import ir

#: As many iterations run at once; of more it is a part after the other.
_AT_ONCE = 1 << 23


@interprets("linalg.index")
def _index(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [frame.indices[ir.IntegerAttr(op.attributes["dim"]).value]]


@interprets("linalg.*")
def _linalg(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    """The results of a linalg op on tensors."""
    view = any_structured(op)
    if view is None or not len(op.regions):
        raise UnknownOp(f"the interpreter does not know the op '{op.name}'")
    sizes = _sizes(view, operands)
    results = [operands[output].copy() for output in view.outputs]
    if 0 in sizes:
        return results
    inputs = [seen_along(np.asarray(operands[n]), view.maps[n], sizes) for n in range(view.inputs)]
    outputs = [
        seen_along(result, view.maps[output], sizes, writable=True)
        for result, output in zip(results, view.outputs, strict=True)
    ]
    _Loops(frame, view, sizes, inputs, outputs).run()
    return results


def _sizes(view: LinalgOp, operands: Sequence[Any]) -> list[int]:
    """How often each loop runs."""
    if len(view.bounds) != view.loops:
        raise UnknownOp(f"the interpreter does not know how often each loop of a '{view.op.name}' runs")
    return [operands[operand].shape[dim] for operand, dim in (view.bounds[loop] for loop in range(view.loops))]


class _Loops:
    """The iterations of one op, on its operands as they are seen along its loops."""

    def __init__(
        self, frame: Frame, view: LinalgOp, sizes: list[int], inputs: list[np.ndarray], outputs: list[np.ndarray]
    ):
        self._frame, self._view, self._sizes = frame, view, sizes
        self._inputs, self._outputs = inputs, outputs
        self._one_by_one = _one_by_one(view)
        self._folds = folds_of(view) if self._one_by_one and not _has_regions(view) else None
        if any(output.dtype in (BF16, F16) for output in outputs):
            self._folds = None  # each step rounds

    def run(self) -> None:
        """Writes the results to the outputs."""
        if self._folds is not None:
            self._fold([(0, size) for size in self._sizes])
            return
        loops = range(len(self._sizes)) if _has_regions(self._view) else self._one_by_one
        counts = [self._sizes[loop] if loop in loops else 1 for loop in range(len(self._sizes))]
        for at in np.ndindex(*counts):
            self._step([(i, i + 1) if loop in loops else (0, self._sizes[loop]) for loop, i in enumerate(at)])

    def _step(self, part: list[tuple[int, int]]) -> None:
        """Iterations that do not depend on each other, in parts if they are many."""
        halves = self._halves(part)
        if halves:
            for half in halves:
                self._step(half)
            return
        outputs = [_part(output, part) for output in self._outputs]
        values = self._run_body(part, outputs)
        for output, value in zip(outputs, values, strict=True):
            output[...] = value

    def _fold(self, part: list[tuple[int, int]]) -> None:
        """Iterations all of whose reductions are folds."""
        assert self._folds is not None
        if not all(fold.product for fold in self._folds):
            halves = self._halves(part)
            for half in halves:
                self._fold(half)
            if halves:
                return
        outputs = [_part(output, part) for output in self._outputs]
        self._run_body(part, outputs, frozenset(op for fold in self._folds for op in fold.skipped))
        sizes = [end - start for start, end in part]
        for fold, output in zip(self._folds, outputs, strict=True):
            output[...] = self._folded(fold, output, sizes)

    def _folded(self, fold: Fold, output: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
        values = self._frame.values
        rank = len(sizes)
        if fold.product is not None:
            left, right = (_with_rank(values[factor], rank) for factor in fold.product)
            product = contract(left, right, sizes, self._one_by_one)
            if product is not None:
                return fold.combine(output, product.astype(output.dtype, copy=False))
            term = left * right
        else:
            term = _with_rank(values[fold.term], rank)
        full = [size if loop in self._one_by_one else term.shape[loop] for loop, size in enumerate(sizes)]
        folded = fold.combine.reduce(
            np.broadcast_to(term, full), axis=self._one_by_one, keepdims=True, dtype=term.dtype
        )
        return fold.combine(output, folded)

    def _run_body(
        self, part: list[tuple[int, int]], outputs: list[np.ndarray], skipped: frozenset[ir.Operation] = frozenset()
    ) -> list[Any]:
        rank = len(part)
        before = self._frame.indices
        self._frame.indices = [
            np.arange(start, end).reshape([-1 if other == loop else 1 for other in range(rank)])
            for loop, (start, end) in enumerate(part)
        ]
        arguments = [_part(array, part) for array in self._inputs] + outputs
        if _has_regions(self._view):  # branches take numbers
            arguments = [array.reshape(()) for array in arguments]
            self._frame.indices = [index.reshape(()) for index in self._frame.indices]
        try:
            _, values = self._frame.run(self._view.op, 0, arguments, skipped)
        finally:
            self._frame.indices = before
        return values

    def _halves(self, part: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
        """Two parts of one, along its longest loop; none where all of it can run at once."""
        lengths = [end - start for start, end in part]
        if np.prod(lengths, dtype=float) <= _AT_ONCE:
            return []
        loop = int(np.argmax(lengths))
        start, end = part[loop]
        middle = (start + end) // 2
        return [[*part[:loop], half, *part[loop + 1 :]] for half in ((start, middle), (middle, end))]


def _part(array: np.ndarray, part: Sequence[tuple[int, int]]) -> np.ndarray:
    """The iterations `part` of an operand; it may not move with a loop."""
    slices = (slice(None) if size == 1 else slice(*ends) for size, ends in zip(array.shape, part, strict=True))
    return array[(*slices, ...)]  # of no dims a view, too


def _with_rank(value: np.ndarray, rank: int) -> np.ndarray:
    return value.reshape((1,) * rank) if np.ndim(value) == 0 else value


def _has_regions(view: LinalgOp) -> bool:
    return any(len(op.regions) for op in view.body_ops)


def _one_by_one(view: LinalgOp) -> tuple[int, ...]:
    """The loops whose iterations write to the same elements, or to elements that are no loops."""
    written = [
        {loop for result in view.maps[output].results if (loop := loop_of(result)) is not None}
        for output in view.outputs
    ]
    every = set.intersection(*written) if written else set()
    computed = {
        loop
        for output in view.outputs
        for result in view.maps[output].results
        if loop_of(result) is None
        for loop in range(view.loops)
        if coefficient(result, loop) != 0
    }
    return tuple(loop for loop in range(view.loops) if loop not in every or loop in computed)
