"""Sizes of an FX graph that are expressions to torch, and one number whatever the arguments' sizes are."""

from __future__ import annotations

from typing import Any

import sympy
import torch
import torch.utils._pytree as torch_pytree
from torch import fx
from torch._ops import HigherOrderOperator
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from pipeline.frontend.numbers.assumed_sizes import bounds, equalities, may_be_zero


def known_sizes_as_numbers(graph: fx.Graph, is_region: bool) -> None:
    """[(s + 1) // 3, 4], where s is 3 or 4, or calls are held to it  →  [1, 4]; the arguments keep their types.

    torch takes such a size for the number that it is: it broadcasts it where it is 1, and puts it in the place of
    another 1. In MLIR a size that is unknown is none of these.
    """
    sizes = _KnownSizes()
    numbers: dict[fx.Node, int] = {}
    for node in graph.nodes:
        if node.op == "call_function" and not isinstance(node.target, HigherOrderOperator):
            node.args = fx.map_arg(node.args, lambda operand: numbers.get(operand, operand))
            node.kwargs = fx.map_arg(node.kwargs, lambda operand: numbers.get(operand, operand))
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            if isinstance(number := sizes.put_into(value), int):
                numbers[node] = number
        elif value is not None and (node.op == "call_function" or is_region):
            node.meta["val"] = torch_pytree.tree_map(sizes.put_into, value)
            node.meta.pop("tensor_meta", None)  # the importer would believe it rather than the value


class _KnownSizes:
    """What is known of the expressions that were seen."""

    def __init__(self) -> None:
        self._known: dict[sympy.Expr, int | None] = {}
        self._equal: dict[sympy.Expr, sympy.Expr] | None = None

    def put_into(self, value: Any) -> Any:
        """A size, or a tensor with sizes, as numbers where they are; itself where they are none."""
        if isinstance(value, torch.SymInt):
            return self._number(value)
        if not isinstance(value, torch.Tensor):
            return value
        shape = [self._number(size) for size in value.shape]
        if _unknown(shape) == _unknown(value.shape):
            return value
        with value.fake_mode:
            return torch.empty_strided(shape, [self._number(step) for step in value.stride()], dtype=value.dtype)

    def _number(self, size: int | torch.SymInt) -> int | torch.SymInt:
        if isinstance(size, int):
            return size
        expression = size.node.expr
        if expression not in self._known:
            self._known[expression] = self._found_number(expression, size.node.shape_env)
        known = self._known[expression]
        return size if known is None else known

    def _found_number(self, expression: sympy.Expr, environment: ShapeEnv) -> int | None:
        values = bounds(environment, expression)
        if values.is_singleton():
            return int(values.lower)
        if self._equal is None:
            self._equal = {condition.lhs: condition.rhs for condition in equalities(environment)}
        number = self._equal.get(may_be_zero(expression))
        return int(number) if number is not None and number.is_Integer else None


def _unknown(shape: Any) -> int:
    return sum(isinstance(size, torch.SymInt) for size in shape)
