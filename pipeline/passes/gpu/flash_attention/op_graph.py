"""The ops of a kernel as steps that read each other's results, on tensors and on buffers alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ir.linalg_op import LinalgOp, bounded
from pipeline.ir.matchers import base, is_fill
from pipeline.ir.reshapes import RESHAPES
from pipeline.mlir import defining_op, ir

_BESIDE = ("arith.constant", "tensor.empty", "memref.alloc", "memref.alloca", "func.return")
_VIEWS = (*RESHAPES, "memref.expand_shape", "memref.collapse_shape")


@dataclass(frozen=True, eq=False)
class GenericStep:
    """A linalg.generic with one result.

    Attributes:
        view: the op and its loops, all of known size.
        sources: for each input the step that computes it; None for what comes from outside of the kernel.
        start: the number that the result is filled with before; None without one.
    """

    view: LinalgOp
    sources: tuple[GenericStep | None, ...]
    start: ir.Value | None

    @property
    def names(self) -> list[str]:
        """The names of the ops of the body without the terminator."""
        return [op.name for op in self.view.body_ops]

    @property
    def result(self) -> ir.Value:
        """The tensor that is computed, or the buffer that is written."""
        return self.view.op.results[0] if len(self.view.op.results) else self.view.operands[self.view.inputs]

    @property
    def element(self) -> ir.Type:
        """The type of the elements of the result."""
        return ir.ShapedType(self.result.type).element_type

    @property
    def is_elementwise(self) -> bool:
        """Whether each element of the result is computed by itself."""
        computes = all(name.startswith(("arith.", "math.")) or name == "linalg.index" for name in self.names)
        own = self.large(self.view.inputs)
        every = [loop for loop, size in enumerate(self.view.sizes) if size != 1]
        return (
            computes
            and not any(self.view.reductions)
            and own is not None
            and sorted(own) == every
            and self.view.ignores_outputs
        )

    def large(self, operand: int) -> list[int] | None:
        """The loop along each dim of an operand that has more than one element; None if an index is no loop."""
        if not isinstance(self.view.operands[operand].type, ir.ShapedType):
            return []
        found = []
        sizes = ir.ShapedType(self.view.operands[operand].type).shape
        for expression, size in zip(self.view.maps[operand].results, sizes, strict=True):
            if isinstance(expression, ir.AffineDimExpr):
                found += [ir.AffineDimExpr(expression).position] * (size != 1)
            elif expression != ir.AffineConstantExpr.get(0) or size != 1:
                return None
        return found


class NotOne(Exception):
    """Says why some ops are no attention."""


def need(condition: bool, reason: str) -> None:
    """Raises `NotOne` with the reason if a condition does not hold."""
    if not condition:
        raise NotOne(reason)


def read_steps(ops: Sequence[ir.Operation]) -> list[GenericStep]:
    """The steps of a kernel, in order; raises `NotOne` if there are other ops in it."""
    writers: dict[ir.Value, GenericStep] = {}
    fills: dict[ir.Value, ir.Value] = {}
    steps = []
    for op in ops:
        if op.name in _BESIDE or (op.name in _VIEWS and isinstance(op.operands[0], ir.BlockArgument)):
            continue
        need(op.name in ("linalg.generic", "linalg.fill"), f"there is a {op.name}")
        if is_fill(op):
            fills[op.results[0] if len(op.results) else op.operands[1]] = op.operands[0]
            continue
        view = bounded(op)
        need(view is not None and None not in view.sizes and 0 not in view.sizes, "a size is not known, or 0")
        assert view is not None
        need(len(view.outputs) == 1, "an op has several results")
        inputs = list(op.operands)[: view.inputs]
        others = {base(value) for value in writers if base(value) != value}
        need(not any(base(value) in others or base(value) in writers and value not in writers for value in inputs),
              "an op reads a part of what another one writes")  # fmt: skip
        output = op.operands[view.inputs]
        step = GenericStep(view, tuple(map(writers.get, inputs)), fills.pop(output, None))
        writers[step.result] = step
        steps.append(step)
    return steps


def is_product(step: GenericStep) -> bool:
    """0 + the sum of a * b along one loop, in float32, of numbers that may be widened before."""
    arguments = list(step.view.body.arguments)
    names = [name for name in step.names if name != "arith.extf"]
    if len(arguments) != 3 or sorted(names) != ["arith.addf", "arith.mulf"] or sum(step.view.reductions) != 1:
        return False
    total = defining_op(step.view.yielded[0])
    if total is None or total.name != "arith.addf" or arguments[2] not in list(total.operands):
        return False
    multiplied = next(op.operation for op in step.view.body.operations if op.operation.name == "arith.mulf")
    factors = {before_widening(value) for value in multiplied.operands}
    return step.large(2) is not None and factors == set(arguments[:2]) and is_number(step.start, 0.0)


def before_widening(value: ir.Value) -> ir.Value:
    """What an arith.extf widens; of any other value, itself."""
    op = defining_op(value)
    return op.operands[0] if op is not None and op.name == "arith.extf" else value


def is_number(value: ir.Value | None, number: float) -> bool:
    """Whether a value is known to be this float."""
    op = None if value is None else defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], ir.FloatAttr):
        return False
    return bool(ir.FloatAttr(op.attributes["value"]).value == number)


def depends(step: GenericStep, on: GenericStep) -> bool:
    """Whether a step is another one, or needs its result."""
    return step == on or any(source is not None and depends(source, on) for source in step.sources)
