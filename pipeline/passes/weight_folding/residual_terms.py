"""Branches: terms of a sum of data that are contractions, and the data that these read, up to scales and shifts."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.channel_vectors import Vector, combine
from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import read_contraction, read_init
from pipeline.analysis.scale_shift import Affine, Elementwise, compose, read_elementwise
from pipeline.ir.reshapes import RESHAPES, reassociation
from pipeline.mlir import defining_op, has_one_use, ir
from pipeline.passes.weight_folding.conv_window import ConvWindow, Places, own_places, read_window
from pipeline.passes.weight_folding.scale_propagation import UPWARDS, NotScalableError


@dataclass(frozen=True)
class Branch:
    """A contraction, plus a shift, perhaps in another shape.

    Attributes:
        window: of the contraction.
        shift: what is added to its result, the init included, along dims of the result.
        steps: the ops that add, last first.
        reshapes: the ops that give another shape, last first.
    """

    window: ConvWindow
    shift: Vector | None
    steps: tuple[Elementwise, ...]
    reshapes: tuple[ir.Operation, ...]

    @property
    def form(self) -> list[tuple[str, list[list[int]]]]:
        """What the reshapes do."""
        return [(op.name, reassociation(op)) for op in self.reshapes]


@dataclass(frozen=True)
class Diagonal:
    """The data that a contraction reads, times a scale, plus a shift: a weight that is zero but at some places.

    Attributes:
        places: in the contraction's weight.
        scale: along dims of the weight; None for 1.
        shift: along dims of the result.
    """

    places: Places
    scale: Vector | None
    shift: Vector | None


def read_branch(value: ir.Value, weights: ConstExprs, affine: Affine | None = None) -> Branch | None:
    """`value` as a branch; None if it is something else, or if it or a value behind it has another user.

    An `affine` is taken on it before it is added.
    """
    affine = affine or Affine()
    steps: list[Elementwise] = []
    reshapes: list[ir.Operation] = []
    while (op := defining_op(value)) is not None and has_one_use(value):
        elementwise = read_elementwise(op, weights)
        contraction = read_contraction(op, weights)
        if contraction is not None:
            window = read_window(contraction)
            known, bias = read_init(contraction, weights)
            shift = add(bias, affine.shift)
            if window is None or not known or affine.scale is not None or (shift is None and affine.shift is not None):
                return None
            return Branch(window, shift, tuple(steps), tuple(reshapes))
        if elementwise is not None:
            steps.append(elementwise)
            composed = compose(affine, elementwise)
        elif op.name in RESHAPES:
            reshapes.append(op)
            composed = _above(op, affine)
        else:
            return None
        if composed is None:
            return None
        affine, value = composed, op.operands[0] if elementwise is None else elementwise.data
    return None


def read_diagonal(value: ir.Value, branch: Branch, weights: ConstExprs) -> Diagonal | None:
    """`value`, which is added to the branch, as the data that the branch reads; None if it is something else."""
    affine: Affine | None = Affine()
    kind, source = value.type, branch.window.value
    while value != source:
        elementwise = read_elementwise(defining_op(value), weights)
        if elementwise is None or affine is None or len(list(value.uses)) > 1:
            return None
        affine = compose(affine, elementwise)
        value = elementwise.data
    groups = [[dim] for dim in range(ir.RankedTensorType(kind).rank)]
    for op in branch.reshapes:
        if op.name != "tensor.collapse_shape":
            return None
        affine = affine and _above(op, affine)
        groups = [[part for dim in group for part in reassociation(op)[dim]] for group in groups]
    if affine is None or kind != value.type or tuple(map(tuple, groups)) != branch.window.groups:
        return None
    scale = affine.scale and branch.window.contraction.output_to_weight(affine.scale)
    if (scale is None) != (affine.scale is None):
        return None
    try:
        return Diagonal(own_places(branch.window), scale, affine.shift)
    except NotScalableError:
        return None


def add(left: Vector | None, right: Vector | None) -> Vector | None:
    """The sum of two shifts; None if there is none, or if it would have more numbers than either."""
    if left is None or right is None:
        return right if left is None else left
    return combine("add", left, right)


def _above(op: ir.Operation, affine: Affine) -> Affine | None:
    try:
        return UPWARDS[op.name](op, affine)
    except NotScalableError:
        return None
