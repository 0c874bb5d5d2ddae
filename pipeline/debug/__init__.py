"""Owns the search for what a compilation does wrong: a reference that interprets IR on tensors, and a bisector.

    found = pipeline.debug.bisect(model, (x,))  # the first pass that changes the numbers, or crashes; None if none does
    print(found)
    pipeline.debug.interpret(exe.ir("fused"), x)  # what IR on tensors gives, with no pass and no code generator

`interpreter/` is the reference. `trail` runs the passes in a child and keeps the module after each, `bisection` finds
the pass, `extraction` and `reduction` the ops; `lowering` goes on where tensors have become memory. This room stands
above the compiler, which asks `checked` alone, where `check=True` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from pipeline.debug.finding import Finding

__all__ = ["bisect", "interpret"]


def bisect(
    model: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    slower: bool = False,
    **options: Any,
) -> Finding | None:
    """The first pass that changes the numbers of a model beyond rounding, that crashes or that fails.

    Args:
        model, args, kwargs, dynamic_shapes, options: as of `pipeline.compile`; the model is run on `args` and `kwargs`.
        slower: looks for the pass without which the code is faster by a tenth or more.

    Raises:
        CaptureError, UnsupportedOpError, OptionError: as `pipeline.compile`.
        PipelineError: the program has an op that the interpreter does not know; names it.
    """
    from pipeline.debug import bisection

    return bisection.bisect(model, args, kwargs, dynamic_shapes, options, slower=slower)


def interpret(
    module: str | Path, *args: Any, weights: Mapping[str, Any] | None = None, exact: bool = True
) -> tuple[np.ndarray, ...]:
    """The results of @main of IR on tensors, as an interpreter computes them in NumPy.

    Args:
        module: MLIR text, such as `exe.ir("kernels")`, or the path of an `.mlir` file.
        args: arrays, tensors and numbers. With `weights`, those of the model's call; without, all that @main takes.
        weights: the tensors of the model by their names in the IR.
        exact: computes in the dtypes that the IR says, each op rounded; else floats are float64, and nothing rounds.

    Raises:
        PipelineError: an op is not known, which is named; an argument does not fit; a check of the program fails.
    """
    from pipeline.debug.tracing import interpret_text

    return interpret_text(module, args, weights or {}, exact)
