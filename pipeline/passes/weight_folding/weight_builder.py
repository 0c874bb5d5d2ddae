"""Builds what is computed from weights alone: the vectors of `analysis/channel_vectors.py`, scaled weights, shifts.

All arithmetic is done in f32 (f64 where an operand has it), and rounded once where a weight of a narrower type is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from pipeline.analysis.channel_vectors import (
    Applied,
    Arithmetic,
    Combined,
    Given,
    Number,
    Repeated,
    Reshaped,
    Sliced,
    Vector,
)
from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import Contraction
from pipeline.analysis.scale_shift import Affine
from pipeline.analysis.widened_bf16 import was_bf16
from pipeline.ir.rewriting import build_generic, copy_value, empty_like, iterator_types
from pipeline.mlir import arith, captured_values, defining_op, ir, linalg, tensor

_OPS = {"add": arith.AddFOp, "sub": arith.SubFOp, "mul": arith.MulFOp, "div": arith.DivFOp}

#: A tensor, or a scalar, and the loop of each of its dims.
Operand = tuple[ir.Value, Sequence[int]]

#: Takes an element of each operand, then of the output; all in the type of the arithmetic.
Body = Callable[..., ir.Value]


class WeightSide:
    """Builds in front of `anchor`, where the weights are made available; the location is the current one."""

    def __init__(self, weights: ConstExprs, anchor: ir.Operation):
        self._weights = weights
        self._anchor = anchor

    def build(self, vector: Vector) -> ir.Value:
        """The tensor of a vector, or, without dims, a tensor of rank 0 or a scalar."""
        with ir.InsertionPoint(self._anchor):
            if isinstance(vector, Number):
                return self.constant(vector.value, ir.F64Type.get())
            if isinstance(vector, Given):
                self.make_available(vector.value)
                return self._reshape(vector.value, vector.shape)
            if isinstance(vector, Reshaped):
                return self._reshape(self.build(vector.source), vector.shape)
            if isinstance(vector, Sliced):
                return self._slice(vector)
            if isinstance(vector, Applied):
                return self._applied(vector)
            if isinstance(vector, Repeated):
                return self._repeated(vector)
            assert isinstance(vector, Combined)
            return self._combined(vector)

    def built(self, vector: Vector) -> Given:
        """The vector with its ops in place, which may be those that follow the anchor."""
        return Given(vector.dims, vector.shape, self.build(vector))

    def constant(self, value: float, kind: ir.Type) -> ir.Value:
        """A constant that counts as known."""
        return self.note(arith.ConstantOp(kind, value).operation)

    def scaled_weight(self, contraction: Contraction, scale: Vector) -> ir.Value:
        """The weight times the scale, for a scale along dims of the weight; of the weight's type.

        A product of bf16 that is written as one of f32 stays one: it reads the scaled weight rounded, as others do.
        """
        weight = contraction.view.operands[contraction.weight]
        kind = ir.RankedTensorType(weight.type)
        self.make_available(weight)
        operands: list[Operand] = [(weight, range(kind.rank)), (self.build(scale), scale.dims)]
        if not all(was_bf16(contraction.view.operands[number]) for number in (contraction.data, contraction.weight)):
            return self.pointwise(kind.shape, kind.element_type, operands, "mul")
        rounded = self.pointwise(kind.shape, ir.BF16Type.get(), operands, "mul")
        dims, out = range(kind.rank), tensor.EmptyOp(list(kind.shape), kind.element_type).result
        return self.note(generic(kind.rank, [(rounded, dims)], (out, dims), lambda number, _: number))

    def product(self, left: Operand, right: Operand, shape: Sequence[int], kept: Sequence[int]) -> ir.Value:
        """The products of two weights of one type, summed over the loops that are not `kept`."""
        for value, _ in (left, right):
            self.make_available(value)
        element = ir.RankedTensorType(left[0].type).element_type
        start = linalg.fill(self.constant(0.0, element), outs=[tensor.EmptyOp(list(shape), element).result])
        loops = {*left[1], *right[1]}
        summed = list(loops - {*kept})
        if (list(left[1]), list(right[1])) == ([*kept[:1], *summed], [*summed, *kept[1:]]):
            return self.note(linalg.matmul(left[0], right[0], outs=[start]).owner.operation)
        return self.note(generic(len(loops), [left, right], (start, kept), _add_product))

    def joined(self, values: Sequence[ir.Value], dim: int) -> ir.Value:
        """Weights of one type but for the size of `dim`, one behind the other along it."""
        for value in values:
            self.make_available(value)
        first = ir.RankedTensorType(values[0].type)
        shape = list(first.shape)
        shape[dim] = sum(ir.RankedTensorType(value.type).shape[dim] for value in values)
        kind = ir.RankedTensorType.get(shape, first.element_type)
        with ir.InsertionPoint(self._anchor):
            return self.note(tensor.ConcatOp(kind, dim, values).operation)

    def projected(self, contraction: Contraction, shift: Vector) -> Given:
        """What a shift of the data, along dims of the weight, adds to the result of the contraction.

        sum over c, k of (x[c] + shift[c]) * w[f, c, k] -> sum of x[c] * w[f, c, k] + sum of shift[c] * w[f, c, k]
        """
        weight = contraction.view.operands[contraction.weight]
        shape = ir.RankedTensorType(weight.type).shape
        self.make_available(weight)
        operands: list[Operand] = [(weight, range(len(shape))), (self.build(shift), shift.dims)]
        element = compute_type(value for value, _ in operands)
        kept = [dim for dim in range(len(shape)) if dim not in contraction.reduced_weight_dims()]
        start = linalg.fill(
            self.constant(0.0, element), outs=[tensor.EmptyOp([shape[dim] for dim in kept], element).result]
        )
        result = self.note(generic(len(shape), operands, (start, kept), _add_product))
        dims = dict(zip(contraction.weight_to_output(kept), [shape[dim] for dim in kept], strict=True))
        long = {dim: size for dim, size in dims.items() if size != 1}
        return Given(tuple(long), tuple(long.values()), result)

    def _combined(self, vector: Combined) -> ir.Value:
        operands = [(self.build(operand), axes) for operand, axes in vector.operands]
        element = compute_type(value for value, _ in operands)
        return self.pointwise(vector.shape, element, operands, vector.operation)

    def _applied(self, vector: Applied) -> ir.Value:
        leaves = [leaf for leaf, _, _ in vector.operands]
        operands: list[Operand] = [(self.build(operand), axes) for _, operand, axes in vector.operands]
        out = tensor.EmptyOp(list(vector.shape), vector.value.type).result

        def body(*elements: ir.Value) -> ir.Value:
            known = {leaf: convert(element, leaf.type) for leaf, element in zip(leaves, elements, strict=False)}
            return copy_value(vector.value, known)

        rank = len(vector.shape)
        return self.note(generic(rank, operands, (out, range(rank)), body))

    def _repeated(self, vector: Repeated) -> ir.Value:
        source = self.build(vector.source)
        rank = len(vector.shape)
        out = tensor.EmptyOp(list(vector.shape), compute_type([source])).result
        return self.note(generic(rank, [(source, vector.axes)], (out, range(rank)), lambda number, _: number))

    def pointwise(
        self, shape: Sequence[int], element: ir.Type, operands: Sequence[Operand], operation: Arithmetic
    ) -> ir.Value:
        """One operand op the other, in a tensor of this shape and element type."""
        out = tensor.EmptyOp(list(shape), element).result

        def body(left: ir.Value, right: ir.Value, _: ir.Value) -> ir.Value:
            return _OPS[operation](left, right).result

        return self.note(generic(len(shape), operands, (out, range(len(shape))), body))

    def _slice(self, vector: Sliced) -> ir.Value:
        source = self.build(vector.source)
        offsets = [vector.offset if axis == vector.axis else 0 for axis in range(len(vector.shape))]
        kind = ir.RankedTensorType.get(vector.shape, ir.RankedTensorType(source.type).element_type)
        ones = [1] * len(offsets)
        return self.note(tensor.ExtractSliceOp(kind, source, [], [], [], offsets, list(vector.shape), ones).operation)

    def _reshape(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """`value` with another shape, by way of one dim; scalars stay as they are."""
        if not isinstance(value.type, ir.RankedTensorType) or tuple(value.type.shape) == tuple(shape):
            return value
        element, rank = value.type.element_type, value.type.rank
        if rank > 1 or not shape:
            flat = ir.RankedTensorType.get([math.prod(shape)] if shape else [], element)
            groups = [list(range(rank))] if shape else []
            value = self.note(tensor.CollapseShapeOp(flat, value, groups).operation)
        if len(shape) > 1:
            kind = ir.RankedTensorType.get(shape, element)
            group = [list(range(len(shape)))]
            value = self.note(tensor.ExpandShapeOp(kind, value, group, [], list(shape)).operation)
        return value

    def note(self, op: ir.Operation) -> ir.Value:
        """The result of an op on weights, which counts as known from now on."""
        for operand in captured_values(op):
            producer = defining_op(operand)
            if operand not in self._weights and producer is not None:
                self.note(producer)
        self._weights.add(op)
        return op.results[0]

    def make_available(self, value: ir.Value) -> None:
        """Moves the ops behind `value`, all from weights, in front of the anchor where they are not so already."""
        producer = defining_op(value)
        if producer is None or _comes_before(producer, self._anchor):
            return
        for operand in captured_values(producer):
            self.make_available(operand)
        producer.move_before(self._anchor)


def apply_affine(data: ir.Value, affine: Affine, out: ir.Value, side: WeightSide) -> ir.Operation:
    """One generic that computes data * scale + shift, rounded once to the element type of the tensor `out`."""
    rank = ir.RankedTensorType(data.type).rank
    vectors = [vector for vector in (affine.scale, affine.shift) if vector is not None]
    operands: list[Operand] = [(data, range(rank))]
    operands += [(side.build(vector), vector.dims) for vector in vectors]

    def body(x: ir.Value, *others: ir.Value) -> ir.Value:
        numbers = iter(others)
        if affine.scale is not None:
            x = arith.MulFOp(x, next(numbers)).result
        return arith.AddFOp(x, next(numbers)).result if affine.shift is not None else x

    return generic(rank, operands, (out, range(rank)), body)


def generic(loops: int, operands: Sequence[Operand], out: Operand, body: Body) -> ir.Operation:
    """A linalg.generic whose body computes in `compute_type`; loops that `out` does not have are reductions."""
    tensors = [operand for operand in operands if isinstance(operand[0].type, ir.RankedTensorType)]
    compute = compute_type(value for value, _ in operands)
    maps = [ir.AffineMap.get(loops, 0, [ir.AffineExpr.get_dim(dim) for dim in dims]) for _, dims in (*tensors, out)]
    reductions = [loop not in out[1] for loop in range(loops)]
    sums = any(reductions)

    def build(arguments: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        elements = iter(arguments)
        values = [value if not isinstance(value.type, ir.RankedTensorType) else next(elements) for value, _ in operands]
        before = next(elements)  # of the output, which only sums read
        result = body(*(convert(value, compute) for value in values), convert(before, compute) if sums else before)
        return [convert(result, out[0].type.element_type)]

    return build_generic([value for value, _ in tensors], [out[0]], maps, iterator_types(reductions), build)


def _add_product(left: ir.Value, right: ir.Value, out: ir.Value) -> ir.Value:
    return arith.AddFOp(out, arith.MulFOp(left, right).result).result


def compute_type(values: Iterable[ir.Value]) -> ir.Type:
    """f64 if one of the values has it, else f32; constants, which have it for their precision alone, don't count."""
    for value in values:
        producer = defining_op(value)
        element = value.type.element_type if isinstance(value.type, ir.RankedTensorType) else value.type
        if isinstance(element, ir.F64Type) and (producer is None or producer.name != "arith.constant"):
            return ir.F64Type.get()
    return ir.F32Type.get()


def convert(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A float as another type, rounded if that is narrower."""
    if value.type == kind:
        return value
    if value.type.width == kind.width:  # f16 and bf16
        value = arith.ExtFOp(ir.F32Type.get(), value).result
    return (arith.ExtFOp if value.type.width < kind.width else arith.TruncFOp)(kind, value).result


def cast_to(data: ir.Value, element: ir.Type) -> ir.Value:
    """`data` with elements of another type; itself if it has them."""
    kind = ir.RankedTensorType(data.type)
    if kind.element_type == element:
        return data
    out = (empty_like(data, element), range(kind.rank))
    return generic(kind.rank, [(data, range(kind.rank))], out, lambda x, _: x).results[0]


def _comes_before(op: ir.Operation, anchor: ir.Operation) -> bool:
    """Whether `op` dominates `anchor`: it stands earlier in the same block or in one around it."""
    place = anchor
    while place.block != op.block:
        if place.name == "func.func":
            return False
        place = place.parent.operation
    return op.is_before_in_block(place)


def fold_into(contraction: Contraction, scale: Vector | None, shift: Vector | None, side: WeightSide) -> None:
    """Multiplies the weight by `scale` and adds `shift` to the result, in the place of the init.

    Args:
        scale: along dims of the weight.
        shift: along dims of the result, the init included.
    """
    op = contraction.view.op
    if scale is not None:
        op.operands[contraction.weight] = side.scaled_weight(contraction, scale)
    if shift is None:
        return
    element = ir.RankedTensorType(op.results[0].type).element_type
    empty = empty_like(op.operands[2], element)
    op.operands[2] = linalg.fill(side.constant(0.0, element), outs=[empty])
    shift = side.built(shift)  # first: an insertion point moves along with the op that it stands in front of
    with ir.InsertionPoint.after(op):
        shifted = apply_affine(op.results[0], Affine(shift=shift), empty, side)
    op.results[0].replace_all_uses_except(shifted.results[0], shifted)
