"""Contractions: linalg ops that sum products of data and a weight, such as convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.channel_vectors import Number, Vector, along_loops
from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.vector_reading import read_vector
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.ir.matchers import is_zero
from pipeline.mlir import defining_op, ir, seen_through, terminator

_CASTS = ("arith.extf", "arith.truncf")


@dataclass(frozen=True)
class Contraction:
    """out[..] = init[..] + the sum of data[..] * weight[..] over the reduction loops.

    Attributes:
        view: a named op or a generic, told by its body.
        data: the number of the operand of data.
        weight: the number of the operand from weights alone.
    """

    view: LinalgOp
    data: int
    weight: int

    @property
    def weight_loops(self) -> list[int | None]:
        """The loop of each dim of the weight."""
        return [loop_of(expression) for expression in self.view.maps[self.weight].results]

    @property
    def output_loops(self) -> list[int | None]:
        """The loop of each dim of the result."""
        return [loop_of(expression) for expression in self.view.maps[2].results]

    def output_to_weight(self, vector: Vector) -> Vector | None:
        """A vector along dims of the result as one along dims of the weight; None if the weight lacks one."""
        loops = along_loops(vector, self.view.maps[2])
        return loops and self._at(loops, self.weight_loops)

    def data_to_weight(self, vector: Vector) -> Vector | None:
        """A vector along dims of the data as one along dims of the weight; None if the weight lacks one."""
        loops = along_loops(vector, self.view.maps[self.data])
        return loops and self._at(loops, self.weight_loops)

    @property
    def sums_over_weight(self) -> bool:
        """Whether every sum runs over a dim of the weight."""
        loops = {*self.output_loops, *self.weight_loops}
        return all(loop in loops for loop in range(self.view.loops))

    def reduced_weight_dims(self) -> list[int]:
        """The dims of the weight that are summed over."""
        return [dim for dim, loop in enumerate(self.weight_loops) if loop not in self.output_loops]

    def weight_to_output(self, dims: Sequence[int]) -> list[int]:
        """The dims of the result that run along these dims of the weight."""
        return [self.output_loops.index(self.weight_loops[dim]) for dim in dims]

    @staticmethod
    def _at(vector: Vector, loops: Sequence[int | None]) -> Vector | None:
        if not all(loop in loops for loop in vector.dims):
            return None
        return vector.along([loops.index(loop) for loop in vector.dims])


def read_contraction(op: ir.Operation | None, weights: ConstExprs) -> Contraction | None:
    """`op` as a contraction of data with a weight; None if it is something else."""
    if op is None or not op.name.startswith("linalg.") or len(op.operands) != 3 or len(op.results) != 1:
        return None
    if not sums_products(op.regions[0].blocks[0]):
        return None
    known = [operand in weights for operand in list(op.operands)[:2]]
    if known not in ([True, False], [False, True]):
        return None
    view = any_structured(op)
    if view is None:
        return None
    weight = known.index(True)
    contraction = Contraction(view, 1 - weight, weight)
    plain = None not in contraction.weight_loops and None not in contraction.output_loops
    return contraction if plain else None


def sums_products(body: ir.Block) -> bool:
    """Whether a body yields out + in0 * in1, up to casts and the order of operands."""
    if len(body.arguments) != 3 or not isinstance(body.arguments[2].type, ir.FloatType):
        return False
    total = seen_through(terminator(body).operands[0], _CASTS)
    addition = defining_op(total)
    if addition is None or addition.name != "arith.addf":
        return False
    sides = [seen_through(side, _CASTS) for side in addition.operands]
    if body.arguments[2] not in sides:
        return False
    product = defining_op(sides[1 - sides.index(body.arguments[2])])
    if product is None or product.name != "arith.mulf":
        return False
    factors = {seen_through(factor, _CASTS) for factor in product.operands}
    return factors == {body.arguments[0], body.arguments[1]}


def read_init(contraction: Contraction, weights: ConstExprs) -> tuple[bool, Vector | None]:
    """(whether the init comes from weights alone, what it is if that is not zero)."""
    init = contraction.view.operands[2]
    if is_zero(init):
        return True, None
    vector = read_vector(init, weights)
    return (True, None) if vector == Number(value=0.0) else (vector is not None, vector)
