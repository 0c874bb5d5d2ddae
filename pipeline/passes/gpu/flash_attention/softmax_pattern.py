"""The parts of a softmax along the rows of a product: greatest scores, exponentials, their sums, and the division."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.mlir import defining_op, ir
from pipeline.passes.gpu.flash_attention.op_graph import GenericStep, NotOne, before_widening, depends, is_number


def is_fold(step: GenericStep, name: str, start: float) -> bool:
    """Whether a step combines the elements of a row, or what its body makes of each."""
    computes = all(op_name.startswith(("arith.", "math.")) or op_name == "linalg.index" for op_name in step.names)
    if not computes or sum(step.view.reductions) != 1 or len(step.sources) != step.view.inputs:
        return False
    op = defining_op(step.view.yielded[0])
    if op is None or op.name != name or step.view.body.arguments[step.view.inputs] not in list(op.operands):
        return False
    return is_number(step.start, start)


def folded(step: GenericStep) -> ir.Value:
    """What a fold takes of each element."""
    op = defining_op(step.view.yielded[0])
    assert op is not None
    out = step.view.body.arguments[step.view.inputs]
    return next(operand for operand in op.operands if operand != out)


@dataclass(frozen=True)
class SoftmaxOperand:
    """What the softmax is taken of: `score`, in the body of `highest`, from the product `scores`, of some sizes."""

    scores: GenericStep
    sizes: tuple[int, ...]
    highest: GenericStep
    score: ir.Value

    def loops(self, step: GenericStep) -> list[int]:
        """The loops of a step along the dims of the scores that it reads."""
        for operand, source in enumerate(step.sources):
            own = step.large(operand)
            if source is None or own is None or not depends(source, self.scores):
                continue
            if tuple(step.view.sizes[loop] for loop in own) == self.sizes:
                return own
        raise NotOne("rows are not read as they are written")

    def is_score(self, step: GenericStep, value: ir.Value) -> bool:
        """Whether a value of a body is `score`, computed in the same way from the same."""
        return self._text(step, value) == self._text(self.highest, self.score)

    def _text(self, step: GenericStep, value: ir.Value) -> object:
        """How a body computes a value."""
        own = self.loops(step)
        if value in list(step.view.body.arguments):
            operand = list(step.view.body.arguments).index(value)
            if operand >= step.view.inputs:
                raise NotOne("a result is read while it is computed")
            loops = step.large(operand)
            places = None if loops is None else tuple(own.index(loop) if loop in own else -1 for loop in loops)
            source = step.sources[operand]
            return (step.view.operands[operand] if source is None else source, places)
        op = defining_op(value)
        if op is None:
            return value
        if op.name == "arith.constant":
            return str(op)
        if op.name == "linalg.index":
            loop = ir.IntegerAttr(op.attributes["dim"]).value
            return ("index", own.index(loop) if loop in own else -1)
        attributes = tuple(f"{name}={op.attributes[name]}" for name in op.attributes)
        return (op.name, str(op.results[0].type), attributes, *(self._text(step, operand) for operand in op.operands))


def is_exponential(step: GenericStep, rows: SoftmaxOperand) -> bool:
    """exp(score - greatest score)."""
    by_argument = dict(zip(step.view.body.arguments, step.sources, strict=False))
    op = defining_op(step.view.yielded[0])
    difference = defining_op(op.operands[0]) if op is not None and op.name == "math.exp" else None
    if difference is None or difference.name != "arith.subf" or not step.is_elementwise:
        return False
    score, highest = difference.operands
    return by_argument.get(highest) == rows.highest and rows.is_score(step, score)


def is_all_masked(step: GenericStep, rows: SoftmaxOperand) -> bool:
    """Whether a step says of each row whether all of its scores are -inf."""
    out = step.view.body.arguments[len(step.view.body.arguments) - 1]
    both = defining_op(step.view.yielded[0])
    if sum(step.view.reductions) != 1 or both is None or both.name != "arith.andi" or out not in list(both.operands):
        return False
    (compare,) = [defining_op(operand) for operand in both.operands if operand != out] or [None]
    if compare is None or compare.name != "arith.cmpf" or ir.IntegerAttr(compare.attributes["predicate"]).value != 1:
        return False
    values = [operand for operand in compare.operands if not is_number(operand, float("-inf"))]
    starts = None if step.start is None else defining_op(step.start)
    is_true = starts is not None and starts.name == "arith.constant" and str(starts.attributes["value"]) == "true"
    if not is_true or len(values) != 1:
        return False
    return rows.is_score(step, values[0]) or rows.is_score(step, before_widening(values[0]))


def is_division(step: GenericStep, exponential: GenericStep, total: GenericStep, every: list[GenericStep]) -> bool:
    """exponential / total; 0 where every score is -inf; rounded to fewer bits, maybe."""
    value = step.view.yielded[0]
    op = defining_op(value)
    if op is not None and op.name == "arith.truncf":
        op = defining_op(op.operands[0])
    by_argument = dict(zip(step.view.body.arguments, step.sources, strict=False))
    if op is not None and op.name == "arith.select":
        condition, zero, other = op.operands
        if not every or by_argument.get(condition) != every[0] or not is_number(zero, 0.0):
            return False
        op = defining_op(other)
    elif every:
        return False
    if op is None or op.name != "arith.divf":
        return False
    known = {"arith.truncf", "arith.select", "arith.divf", "arith.extf", "arith.constant"}
    return [by_argument.get(operand) for operand in op.operands] == [exponential, total] and set(step.names) <= known


def is_of_rows(step: GenericStep, rows: SoftmaxOperand, key: int, by_rows: set[GenericStep]) -> bool:
    """Whether a step runs over the scores, or folds them along the keys, and reads numbers of rows at their rows."""
    own, output = rows.loops(step), step.view.inputs
    by_row = [loop for dim, loop in enumerate(own) if dim != key]
    for operand, source in enumerate(step.sources):
        if source is None or not depends(source, rows.scores):
            continue
        if step.large(operand) != (by_row if source in by_rows else own):
            return False
    if step in by_rows:
        return step.large(output) == by_row and step.view.reductions[own[key]]
    return step.is_elementwise and step.large(output) == own
