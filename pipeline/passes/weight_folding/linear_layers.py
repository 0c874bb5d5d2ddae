"""Linear layers: matrix products of data and a weight, by named ops and generics, with the weight on either side.

Which loop is which is told by the maps: the inner one is summed over, the column is a loop of weight and result alone,
rows are loops of data and result alone, and stacks those of all three.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import Contraction, read_contraction
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.rewriting import build_generic, copy_attributes, copy_body, iterator_types, replace
from pipeline.mlir import ir
from pipeline.passes.weight_folding.weight_builder import WeightSide


@dataclass(frozen=True)
class Linear:
    """A contraction that is a linear layer.

    Attributes:
        inner: the loop of the sum.
        column: the loop that the weight has and the data has not.
    """

    contraction: Contraction
    inner: int
    column: int

    @property
    def op(self) -> ir.Operation:
        """The product."""
        return self.contraction.view.op

    @property
    def data(self) -> ir.Value:
        """The factor that is data."""
        return self.op.operands[self.contraction.data]

    @property
    def weight(self) -> ir.Value:
        """The factor that is a weight."""
        return self.op.operands[self.contraction.weight]

    @cached_property
    def data_loops(self) -> list[int]:
        """The loop of each dim of the data."""
        return self.contraction.view.loops_read(self.contraction.data)

    @property
    def element(self) -> ir.Type:
        """The type of the elements of factors and result."""
        return ir.RankedTensorType(self.weight.type).element_type

    @property
    def inner_size(self) -> int:
        """How many terms a sum has."""
        return self._size(self.inner)

    @property
    def column_size(self) -> int:
        """How many columns the weight has."""
        return self._size(self.column)

    def _size(self, loop: int) -> int:
        dim = self.contraction.weight_loops.index(loop)
        return int(ir.RankedTensorType(self.weight.type).shape[dim])

    def is_read_by(self, second: Linear) -> bool:
        """Whether `second` sums over the columns of this one, and the stacks of the two are the same."""
        mine, read = self.contraction.output_loops, second.data_loops
        if mine.index(self.column) != read.index(second.inner) or self.element != second.element:
            return False
        return {read[mine.index(loop)] for loop in self.stacks} == set(second.stacks)

    @property
    def stacks(self) -> list[int]:
        """The loops of data, weight and result."""
        return [loop for loop in self.contraction.weight_loops if loop not in (self.inner, self.column, None)]


def read_linear(op: ir.Operation | None, weights: ConstExprs) -> Linear | None:
    """`op` as a linear layer in f32 or f64; None if it is something else."""
    contraction = read_contraction(op, weights)
    if op is None or contraction is None:
        return None
    view = contraction.view
    elements = {ir.RankedTensorType(value.type).element_type for value in op.operands}
    if len(elements) != 1 or not isinstance(elements.pop(), (ir.F32Type, ir.F64Type)):
        return None
    of_data = [loop_of(expression) for expression in view.maps[contraction.data].results]
    of_weight, of_result = contraction.weight_loops, contraction.output_loops
    if None in of_data or any(len(set(loops)) != len(loops) for loops in (of_data, of_weight, of_result)):
        return None
    columns = [loop for loop in of_weight if loop in of_result and loop not in of_data]
    if len(view.summed) != 1 or len(columns) != 1 or columns[0] is None:
        return None
    if view.summed[0] not in of_data or view.summed[0] not in of_weight:
        return None
    return Linear(contraction, view.summed[0], columns[0])


def merged_weight(first: Linear, second: Linear, side: WeightSide) -> ir.Value:
    """The product of two weights, with the dims of the second one: its inner dim is that of the first."""
    of_first, of_second = first.contraction.weight_loops, second.contraction.weight_loops
    mine, read = first.contraction.output_loops, second.data_loops
    terms = second.contraction.view.loops  # a loop more: the columns of `first`, which are summed over
    loops = {first.inner: second.inner, first.column: terms}
    loops |= {loop: read[mine.index(loop)] for loop in first.stacks}
    used = sorted({loop for loop in of_second if loop is not None} | {terms})
    numbers = {loop: number for number, loop in enumerate(used)}
    left = [numbers[loops[loop]] for loop in of_first if loop is not None]
    right = [numbers[terms if loop == second.inner else loop] for loop in of_second if loop is not None]
    out = [numbers[loop] for loop in of_second if loop is not None]
    shape = list(ir.RankedTensorType(second.weight.type).shape)
    shape[of_second.index(second.inner)] = first.inner_size
    return side.product((first.weight, left), (second.weight, right), shape, out)


def read_before(first: Linear, second: Linear) -> None:
    """Has `second` read the data of `first`, in its place among the operands, by a map of its own if it needs one."""
    view, number = second.contraction.view, second.contraction.data
    mine, read = first.contraction.output_loops, second.data_loops
    loops = [second.inner if loop == first.inner else read[mine.index(loop)] for loop in first.data_loops]
    indexing = ir.AffineMap.get(view.loops, 0, [ir.AffineExpr.get_dim(loop) for loop in loops])
    if indexing == view.maps[number]:
        second.op.operands[number] = first.data
        return
    inputs = list(second.op.operands)[: view.inputs]
    inputs[number] = first.data
    maps = [indexing if place == number else each for place, each in enumerate(view.maps)]
    outputs = list(second.op.operands)[view.inputs :]
    iterators = iterator_types(view.reductions)
    made = build_generic(inputs, outputs, maps, iterators, lambda elements: copy_body(view, elements))
    copy_attributes(second.op, made, "pipeline.")
    replace(second.op, list(made.results))
