"""Which weights the user wants to be left as they are, by patterns of names."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.const_expr import ConstExprs
from pipeline.ir.attributes import WEIGHT
from pipeline.ir.rewriting import argument_marks
from pipeline.ir.weight_names import matches
from pipeline.mlir import ir


def kept_weight(value: ir.Value, weights: ConstExprs, patterns: Sequence[str]) -> str | None:
    """The name of a weight behind a value that matches a pattern; None if there is none."""
    if not patterns or value not in weights:
        return None
    names = sorted(map(weight_name, weights.sources[value]))
    return next((name for name in names if any(matches(name, pattern) for pattern in patterns)), None)


def weight_name(weight: ir.Value) -> str:
    """The name of the weight that an argument stands for."""
    argument = ir.BlockArgument(weight)
    return ir.StringAttr(argument_marks(argument.owner.owner)[argument.arg_number][WEIGHT]).value
