"""A plugin: passes that do wrong, for the bisector to find."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, ir, math, terminator, walk
from pipeline.passmanager.base import Pass


def _additions(module: ir.Operation, is_wanted=lambda view: True) -> list[ir.Operation]:
    """Those of two inputs of an elementwise op."""
    views = [structured(op) for op in walk(module, "linalg.generic")]
    wanted = [view for view in views if view.is_elementwise and view.inputs > 1 and is_wanted(view)]
    return [op for view in wanted for op in view.body_ops if op.name == "arith.addf"]


def _has_odd_size(view: LinalgOp) -> bool:
    return any(size is not None and size % 2 for size in view.sizes)


@dataclass(frozen=True)
class AddToSub(Pass):
    """Make a difference of the last sum."""

    name: ClassVar[str] = "add-to-sub"

    def run(self, op: ir.Operation) -> None:
        for addition in _additions(op)[-1:]:
            with before(addition):
                replace(addition, [arith.SubFOp(*addition.operands).result])


@dataclass(frozen=True)
class OddSizesTwice(Pass):
    """Add the first summand twice where a size is odd."""

    name: ClassVar[str] = "odd-sizes-twice"

    def run(self, op: ir.Operation) -> None:
        for addition in _additions(op, _has_odd_size):
            with before(addition):
                replace(addition, [arith.AddFOp(addition.operands[0], addition.operands[0]).result])


@dataclass(frozen=True)
class ManySines(Pass):
    """Compute what nobody needs, and add next to nothing of it."""

    name: ClassVar[str] = "many-sines"

    def run(self, op: ir.Operation) -> None:
        for addition in _additions(op):
            with before(terminator(addition.parent.regions[0].blocks[0])):
                value = addition.results[0]
                for _ in range(12):
                    value = math.SinOp(value).result
                tiny = arith.ConstantOp(value.type, 1e-30).result
                end = terminator(addition.parent.regions[0].blocks[0])
                end.operands[0] = arith.AddFOp(end.operands[0], arith.MulFOp(value, tiny).result).result


@dataclass(frozen=True)
class AbortOnTanh(Pass):
    """End the process where there is a hyperbolic tangent."""

    name: ClassVar[str] = "abort-on-tanh"

    def run(self, op: ir.Operation) -> None:
        if walk(op, "math.tanh"):
            os.abort()


@dataclass(frozen=True)
class TanhToErf(Pass):
    """Make error functions of hyperbolic tangents, on buffers."""

    name: ClassVar[str] = "tanh-to-erf"

    def run(self, op: ir.Operation) -> None:
        for tangent in walk(op, "math.tanh"):
            with before(tangent):
                replace(tangent, [math.ErfOp(tangent.operands[0]).result])


@dataclass(frozen=True)
class TanhToSine(Pass):
    """Make sines of hyperbolic tangents in the tiles of kernels."""

    name: ClassVar[str] = "tanh-to-sine"

    def run(self, op: ir.Operation) -> None:
        for tangent in walk(op, "math.tanh"):
            with before(tangent):
                replace(tangent, [math.SinOp(tangent.operands[0]).result])
