"""Small pieces of vector code: constants, loops, and which additions become fused multiply-adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.analysis.reduction_combiners import neutral
from pipeline.ir.attributes import PARALLEL, PLACES
from pipeline.ir.constants import as_index
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import arith, has_one_use, ir, memref, scf, vector
from pipeline.passes.cpu.microkernel import narrow_elements


@dataclass(frozen=True)
class MultiplyAdds:
    """Additions to an accumulator that become fused multiply-adds: each with its factors and addend."""

    products: dict[ir.Operation, tuple[ir.Value, ir.Value, ir.Value]]
    absorbed: set[ir.Operation]


def multiply_adds(view: LinalgOp) -> MultiplyAdds:
    """A contraction's out + a * b, as every BLAS computes it; arithmetic of the model's own is left as written."""
    accumulators = list(view.body.arguments)[view.inputs :] if any(view.reductions) else []
    products: dict[ir.Operation, tuple[ir.Value, ir.Value, ir.Value]] = {}
    absorbed: set[ir.Operation] = set()
    for op in view.body_ops:
        if op.name != "arith.addf" or op.results[0] not in view.yielded:
            continue
        for product, addend in (list(op.operands), list(op.operands)[::-1]):
            factor = product.owner
            if isinstance(factor, ir.Block) or addend not in accumulators:
                continue
            if factor.operation.name == "arith.mulf" and has_one_use(product):
                left, right = factor.operation.operands
                products[op] = (left, right, addend)
                absorbed.add(factor.operation)
                break
    return MultiplyAdds(products, absorbed)


def splat(constant: ir.Operation, lanes: int) -> ir.Value:
    """A vector of a constant."""
    if isinstance(constant.results[0].type, ir.BF16Type):
        bits = narrow_elements.number(constant.clone().results[0])
        return vector.BroadcastOp(ir.VectorType.get([lanes], bits.type), bits).result
    kind = ir.VectorType.get([lanes], constant.results[0].type)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, constant.attributes["value"])).result


def combine(fold: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """Two values by an op that folds."""
    return ir.Operation.create(fold, results=[left.type], operands=[left, right]).result


def splat_of(kind: ir.VectorType, fold: str) -> ir.Value:
    """What an op that folds starts from, in every element."""
    value = neutral(fold, kind.element_type)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, value)).result


def splat_of_number(kind: ir.VectorType, number: float) -> ir.Value:
    """A vector of floats that are one number."""
    value = ir.FloatAttr.get(kind.element_type, number)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, value)).result


def zeros(kind: ir.VectorType) -> ir.Value:
    """A vector of zeros."""
    element = kind.element_type
    zero = ir.IntegerAttr.get(element, 0) if isinstance(element, ir.IntegerType) else ir.FloatAttr.get(element, 0.0)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, zero)).result


def parallel_loop(first: ir.Value, last: ir.Value, step: int, body: Callable[[ir.Value], None]) -> None:
    """A loop whose iterations write to different places, which threads may share."""
    loop = scf.ForOp(first, last, as_index(step))
    loop.operation.attributes[PARALLEL] = ir.StringAttr.get(PLACES)
    with ir.InsertionPoint(loop.body):
        body(loop.induction_variable)
        scf.YieldOp([])


def sequential_loop(first: ir.Value, last: ir.Value, step: int, body: Callable[[ir.Value], None]) -> None:
    """A loop that one thread runs through."""
    loop = scf.ForOp(first, last, as_index(step))
    with ir.InsertionPoint(loop.body):
        body(loop.induction_variable)
        scf.YieldOp([])


def buffer_size(buffer: ir.Value, dim: int) -> ir.Value:
    """The size of one dim of a buffer, as an index; a constant where it is known, so that loops have known trips."""
    kind = ir.MemRefType(buffer.type)
    if not kind.is_dynamic_dim(dim):
        return as_index(kind.get_dim_size(dim))
    return memref.DimOp(buffer, as_index(dim)).result


def scratch(shape: Sequence[int], element: ir.Type) -> ir.Value:
    """Memory for the time being, which plan-kernel-scratch gives its place where it is freed again."""
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
    return memref.AllocOp(ir.MemRefType.get(list(shape), element), [], [], alignment=alignment).result


def plus(index: ir.Value, number: int) -> ir.Value:
    """An index and a number."""
    return index if number == 0 else arith.AddIOp(index, as_index(number)).result


def times(index: ir.Value, number: int) -> ir.Value:
    """An index times a number."""
    return index if number == 1 else arith.MulIOp(index, as_index(number)).result


def floor_to(value: ir.Value, step: int) -> ir.Value:
    """The largest multiple of a step that is not larger than an index."""
    rest = arith.RemUIOp(value, as_index(step)).result
    return arith.SubIOp(value, rest).result
