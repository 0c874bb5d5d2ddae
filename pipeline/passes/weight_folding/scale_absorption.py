"""Where an affine of data can go: into the contractions that the data comes from, or into those that it goes to.

    (conv(x, w) + b) * s + t  ->  conv(x, w * s) + (b * s + t)                into producers
    conv(x * s + t, w)        ->  conv(x, w * s) + sum of w * t               into consumers

Both look through casts, reshapes, transposes and the like. Questions alone:
`passes/weight_folding/weight_builder.py` does the rewriting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from pipeline.analysis.channel_vectors import Vector, combine
from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import Contraction, read_contraction, read_init
from pipeline.analysis.op_naming import op_label
from pipeline.analysis.scale_shift import Affine, Elementwise, compose, read_elementwise
from pipeline.mlir import defining_op, ir
from pipeline.passes.weight_folding.scale_propagation import (
    DOWNWARDS,
    UPWARDS,
    NotScalableError,
    each,
    or_refuse,
    slice_vector,
)


@dataclass(frozen=True)
class Sink:
    """A contraction and what it takes in.

    Attributes:
        contraction: what changes.
        scale: what its weight is multiplied by, along dims of the weight.
        shift: what is added to its result, along dims of the result; its init, if not zero, is part of it.
        projected: what is added to its data, along dims of the weight.
    """

    contraction: Contraction
    scale: Vector | None
    shift: Vector | None
    projected: Vector | None = None


@dataclass
class Absorption:
    """The contractions that take in an affine, and the ops that are gone then, consumers first."""

    sinks: list[Sink] = field(default_factory=list)
    gone: list[Elementwise] = field(default_factory=list)
    biases: int = 0

    @property
    def saves(self) -> bool:
        """Whether less is left to be done: some scale goes, or several shifts become one."""
        steps = [step for elementwise in self.gone for step in elementwise.steps]
        shifts = sum(step.shifts for step in steps)
        return any(step.scales for step in steps) or shifts + min(self.biases, 1) > 1


def into_producers(root: Elementwise, weights: ConstExprs) -> Absorption:
    """How the steps of `root` and those before it go into the contractions that its data comes from.

    Raises `NotScalableError` if they cannot.
    """
    absorption = Absorption()
    _Producers(weights, absorption).elementwise(root, Affine())
    return absorption


class _Producers:
    """Walks from a value to the contractions behind it; the affine is what the value still has to go through."""

    def __init__(self, weights: ConstExprs, absorption: Absorption):
        self._weights = weights
        self._absorption = absorption

    def elementwise(self, elementwise: Elementwise, affine: Affine) -> None:
        self._absorption.gone.append(elementwise)
        composed = compose(affine, elementwise)
        if composed is None:
            raise NotScalableError("its factors run along different dims, or it rounds to fewer bits in between")
        self._value(elementwise.data, composed)

    def _value(self, value: ir.Value, affine: Affine) -> None:
        op = defining_op(value)
        if op is None:
            raise NotScalableError("its data comes from an argument, not from a convolution or matrix product")
        if len(list(value.uses)) > 1:
            raise NotScalableError(f"the unscaled result of {describe(op)} has another user")
        elementwise = read_elementwise(op, self._weights)
        contraction = read_contraction(op, self._weights)
        if elementwise is not None:
            self.elementwise(elementwise, affine)
        elif contraction is not None:
            self._contraction(contraction, affine)
        elif op.name == "tensor.concat":
            self._concat(op, affine)
        elif op.name in UPWARDS:
            self._value(op.operands[0], UPWARDS[op.name](op, affine))
        else:
            raise NotScalableError(f"its data comes from {describe(op)}, through which no factor can pass")

    def _concat(self, op: ir.Operation, affine: Affine) -> None:
        """concat(a, b) * s -> concat(a * s[first], b * s[last])."""
        dim = ir.IntegerAttr(op.attributes["dim"]).value
        offset = 0
        for piece in op.operands:
            size = ir.RankedTensorType(piece.type).shape[dim]
            self._value(piece, each(affine, partial(slice_vector, dim=dim, offset=offset, size=size)))
            offset += size

    def _contraction(self, contraction: Contraction, affine: Affine) -> None:
        known, bias = read_init(contraction, self._weights)
        if not known:
            raise NotScalableError("the convolution or product adds to data")
        self._absorption.biases += bias is not None
        scale, shift = affine.scale, affine.shift
        if scale is not None:
            bias = bias and or_refuse(combine("mul", bias, scale))
            scale = contraction.output_to_weight(scale)
            if scale is None:
                raise NotScalableError(
                    f"the factors run along a dim that the weight of {describe(contraction.view.op)} has not"
                )
        if bias is not None and shift is not None:
            shift = or_refuse(combine("add", bias, shift))
        self._absorption.sinks.append(Sink(contraction, scale, shift or bias))


def into_consumers(value: ir.Value, affine: Affine, weights: ConstExprs) -> Absorption:
    """How `affine`, which `value` has gone through, goes into the contractions that read it; all must take it in.

    Raises `NotScalableError` if they cannot.
    """
    absorption = Absorption()
    _Consumers(weights, absorption).value(value, affine)
    return absorption


class _Consumers:
    """Walks from a value to the contractions that read it."""

    def __init__(self, weights: ConstExprs, absorption: Absorption):
        self._weights = weights
        self._absorption = absorption

    def value(self, value: ir.Value, affine: Affine) -> None:
        for use in value.uses:
            op = use.owner.operation
            contraction = read_contraction(op, self._weights)
            elementwise = read_elementwise(op, self._weights)
            if contraction is not None and use.operand_number == contraction.data:
                self._contraction(contraction, affine)
            elif elementwise is not None and not elementwise.steps and use.operand_number == elementwise.operand:
                self.value(op.results[0], _below(elementwise, affine))
            elif op.name in DOWNWARDS and use.operand_number == 0:
                self.value(op.results[0], DOWNWARDS[op.name](op, affine))
            else:
                raise NotScalableError(f"{describe(op)} reads it, through which no factor can pass")

    def _contraction(self, contraction: Contraction, affine: Affine) -> None:
        scale = affine.scale and contraction.data_to_weight(affine.scale)
        projected = affine.shift and contraction.data_to_weight(affine.shift)
        if (scale is None) != (affine.scale is None) or (projected is None) != (affine.shift is None):
            raise NotScalableError(
                f"the factors run along a dim that the weight of {describe(contraction.view.op)} has not"
            )
        if projected is not None and not contraction.sums_over_weight:
            raise NotScalableError(f"{describe(contraction.view.op)} sums over more than its weight")
        known, bias = read_init(contraction, self._weights)
        if not known and projected is not None:
            raise NotScalableError("the convolution or product adds to data")
        self._absorption.sinks.append(Sink(contraction, scale, bias, projected))


def _below(cast: Elementwise, affine: Affine) -> Affine:
    """cast(x * s) -> cast(x) * s, also for what moves elements."""
    loops = cast.from_data(affine)
    moved = loops and cast.at_result(loops)
    if moved is None:
        raise NotScalableError(f"{describe(cast.op)} reads it, through which no factor can pass")
    return moved


def describe(op: ir.Operation) -> str:
    """What an op does, in a word: `conv2d`, `relu`, `tensor.concat`."""
    return "_".join(op_label(op)) if op.name.startswith("linalg.") else op.name
