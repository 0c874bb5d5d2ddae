"""propagate-reshapes: reshapes move out from between linalg ops, whose loops are split instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.mlir import ir
from pipeline.passes.tensor.expand_shape_of_concat import expand_parts
from pipeline.passes.tensor.loop_splitting import SplitLoops
from pipeline.passes.tensor.reshape_splits import Splits, splits_of_input, splits_of_result
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class PropagateReshapes(PatternPass):
    """Move tensor.collapse_shape down and tensor.expand_shape up through linalg ops.

    A reshape between two ops hides that they run over the same elements. An op that reads a collapsed tensor reads the
    tensor itself, with more loops, and its result is collapsed instead; an op whose result is expanded computes the
    expanded tensor, and so does a concatenation along another dim. Reshapes meet and cancel, or end up at arguments and
    results, where they cost nothing. Dims of size 1 are not looked at, see fold-unit-reshapes.
    """

    name: ClassVar[str] = "propagate-reshapes"
    anchor: ClassVar[str] = "func.func"

    sweeps: ClassVar[int] = 4  # each time reshapes pass all ops that let them

    @pattern("linalg.generic")
    def move_down(self, generic: ir.Operation) -> bool:
        """generic(collapse(x))   ->   collapse(generic with split loops (x))"""
        return self._split(generic, splits_of_input)

    @pattern("tensor.expand_shape")
    def move_over_concat(self, expand: ir.Operation) -> bool:
        """expand(concat(x, y))   ->   concat(expand(x), expand(y))"""
        last = expand_parts(expand)
        if last is not None:
            self.passed(last, "the parts of a concatenation are expanded instead of it")
        return last is not None

    @pattern("linalg.generic", users_first=True)
    def move_up(self, generic: ir.Operation) -> bool:
        """expand(generic(x))   ->   generic with split loops (expand(x))"""
        return self._split(generic, splits_of_result)

    def _split(self, generic: ir.Operation, find: Callable[[LinalgOp], Splits | None]) -> bool:
        view = any_structured(generic)
        assert view is not None
        splits = find(view)
        if splits is None:
            return False
        self.passed(generic, f"loop {splits}, so that a reshape can go")
        SplitLoops(view, splits).run()
        return True
