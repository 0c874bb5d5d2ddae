"""propagate-reshapes: reshapes move out from between linalg ops, whose loops are split instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.mlir import ir, walk
from pipeline.passes.tensor.expand_shape_of_concat import expand_parts
from pipeline.passes.tensor.loop_splitting import SplitLoops
from pipeline.passes.tensor.reshape_splits import Splits, splits_of_input, splits_of_result
from pipeline.passmanager.base import Pass

#: How often reshapes move down and up; each time they pass all ops that let them.
_SWEEPS = 4


@dataclass(frozen=True)
class PropagateReshapes(Pass):
    """Move tensor.collapse_shape down and tensor.expand_shape up through linalg ops.

    A reshape between two ops hides that they run over the same elements. An op that reads a collapsed tensor reads the
    tensor itself, with more loops, and its result is collapsed instead; an op whose result is expanded computes the
    expanded tensor, and so does a concatenation along another dim. Reshapes meet and cancel, or end up at arguments and
    results, where they cost nothing. Dims of size 1 are not looked at, see fold-unit-reshapes.
    """

    name: ClassVar[str] = "propagate-reshapes"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Moves what can be moved in one function."""
        for _ in range(_SWEEPS):
            down = [self._split(generic, splits_of_input) for generic in walk(op, "linalg.generic")]
            over = [self._pass_concat(expand) for expand in walk(op, "tensor.expand_shape")]
            up = [self._split(generic, splits_of_result) for generic in reversed(walk(op, "linalg.generic"))]
            if not any(down + over + up):
                return

    def _pass_concat(self, expand: ir.Operation) -> bool:
        last = expand_parts(expand)
        if last is not None:
            self.passed(last, "the parts of a concatenation are expanded instead of it")
        return last is not None

    def _split(self, generic: ir.Operation, find: Callable[[LinalgOp], Splits | None]) -> bool:
        view = any_structured(generic)
        assert view is not None
        splits = find(view)
        if splits is None:
            return False
        self.passed(generic, f"loop {splits}, so that a reshape can go")
        SplitLoops(view, splits).run()
        return True
