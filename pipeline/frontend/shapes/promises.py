"""What torch says about the sizes of a program: those of its arguments and of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import fx

from pipeline.frontend.shapes.expressions import Expressions
from pipeline.frontend.shapes.held_casts import drop_proved_asserts, judge_casts, resolve_sizes
from pipeline.frontend.shapes.promised_results import ask_for_sizes, check_results
from pipeline.mlir import function, ir


@dataclass(frozen=True)
class Promises:
    """Expressions in torch's symbols.

    Attributes:
        arguments: the sizes of each argument of `@main`, or the number that it is.
        results: the sizes of each result; None for a number.
        ranges: the least and the greatest value of symbols, by their names.
        is_symbolic: whether any size of the program depends on the call.
    """

    arguments: Sequence[Any]
    results: Sequence[Sequence[sympy.Expr] | None]
    ranges: Mapping[str, tuple[int, int]]
    is_symbolic: bool = True

    @staticmethod
    def of_graph(graph: fx.Graph, ranges: Mapping[str, tuple[int, int]]) -> Promises:
        """Those of a graph whose placeholders are the arguments."""
        placeholders = [node.meta["val"] for node in graph.nodes if node.op == "placeholder"]
        (results,) = next(node for node in graph.nodes if node.op == "output").args
        values = [result.meta["val"] for result in results]
        sizes = [_sizes(value) if isinstance(value, torch.Tensor) else None for value in values]
        is_symbolic = any(map(_is_symbolic, graph.nodes))
        return Promises([_sizes(value) for value in placeholders], sizes, ranges, is_symbolic)

    def keep(self, module: ir.Module) -> dict[str, int]:
        """Compares casts that are held and the shapes of results with these; see `held_casts`, `promised_results`.

        Returns:
            The least values of symbols, by name, that a call needs beyond those in `ranges`.
        """
        main = function(module, "main")
        ask_for_sizes(main)
        resolve_sizes(module)
        expressions = Expressions(main, self.arguments, self.ranges)
        check_results(main, self.results, expressions)
        drop_proved_asserts(module, expressions)
        judge_casts(module, expressions)
        return expressions.raised


def _is_symbolic(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape)


def _sizes(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [_expression(size) for size in value.shape]
    return _expression(value)


def _expression(size: Any) -> sympy.Expr:
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)
