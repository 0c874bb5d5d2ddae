"""Masks that are computed from positions: from which key on a query's scores are -inf."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.mlir import constant_integer, defining_op, ir
from pipeline.passes.gpu.flash_attention.op_graph import GenericStep, is_number

_LESS, _AT_MOST, _GREATER, _AT_LEAST = 2, 3, 4, 5  # of arith.cmpi, signed
_OPPOSITE = {_LESS: _AT_LEAST, _AT_MOST: _GREATER, _GREATER: _AT_MOST, _AT_LEAST: _LESS}
_MIRRORED = {_LESS: _GREATER, _AT_MOST: _AT_LEAST, _GREATER: _LESS, _AT_LEAST: _AT_MOST}


def limit_of_keys(step: GenericStep, value: ir.Value, own: list[int], key: int, query: int) -> int | None:
    """The least number n known such that all scores of keys from `query + n` on are -inf; None without one.

    The body of `step` computes them as `value`; its loops along the dims of the scores are `own`, of which `key` and
    `query` are numbers. -inf stays -inf when something is added to it.
    """
    if query < 0:
        return None
    arguments = list(step.view.body.arguments)
    if value in arguments:
        number = arguments.index(value)
        source = step.sources[number] if number < len(step.sources) else None
        there = None if source is None else source.large(source.view.inputs)
        if source is None or there is None or not source.is_elementwise or step.large(number) != own:
            return None
        return limit_of_keys(source, source.view.yielded[0], there, key, query)
    op = defining_op(value)
    if op is None:
        return None
    if op.name in ("arith.extf", "arith.truncf", "arith.addf"):
        found = [limit_of_keys(step, operand, own, key, query) for operand in op.operands]
        return min((limit for limit in found if limit is not None), default=None)
    if op.name != "arith.select":
        return None
    condition, chosen, other = op.operands
    if is_number(other, float("-inf")):
        return _holds_below(condition, own[key], own[query], negated=False)
    return _holds_below(condition, own[key], own[query], negated=True) if is_number(chosen, float("-inf")) else None


def _holds_below(condition: ir.Value, key: int, query: int, negated: bool) -> int | None:
    """n, if a condition says `key < query + n`."""
    op = defining_op(condition)
    if op is None or op.name != "arith.cmpi":
        return None
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    left, right = (_linear(operand) for operand in op.operands)
    if predicate not in _OPPOSITE or left is None or right is None:
        return None
    difference = left.minus(right)
    predicate = _OPPOSITE[predicate] if negated else predicate
    if difference.steps == {query: 1, key: -1}:
        difference, predicate = _Linear({}, 0).minus(difference), _MIRRORED[predicate]
    if difference.steps != {key: 1, query: -1} or predicate not in (_LESS, _AT_MOST):
        return None
    return (predicate == _AT_MOST) - difference.constant


@dataclass(frozen=True)
class _Linear:
    """A sum of multiples of loop counters and a number."""

    steps: dict[int, int]
    constant: int

    def minus(self, other: _Linear) -> _Linear:
        steps = {loop: self.steps.get(loop, 0) - other.steps.get(loop, 0) for loop in {*self.steps, *other.steps}}
        return _Linear({loop: step for loop, step in steps.items() if step}, self.constant - other.constant)


def _linear(value: ir.Value) -> _Linear | None:
    number = constant_integer(value)
    if number is not None:
        return _Linear({}, number)
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "linalg.index":
        return _Linear({ir.IntegerAttr(op.attributes["dim"]).value: 1}, 0)
    if op.name in ("arith.index_cast", "arith.extsi"):
        return _linear(op.operands[0])
    if op.name not in ("arith.addi", "arith.subi"):
        return None
    left, right = (_linear(operand) for operand in op.operands)
    if left is None or right is None:
        return None
    return left.minus(right) if op.name == "arith.subi" else left.minus(_Linear({}, 0).minus(right))
