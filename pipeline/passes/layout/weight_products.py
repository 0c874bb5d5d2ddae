"""Which weights a program multiplies data with, and along which dims it sums: what quantize-weights may round."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.const_expr import ConstExprs, weight_arguments
from pipeline.analysis.kept_weights import weight_name
from pipeline.analysis.matrix_product import read_matrix_product
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir, walk_where
from pipeline.passes.layout.dequantization import Compute, Expression, Read, read_known


@dataclass(frozen=True)
class WeightProduct:
    """A weight that a matrix product multiplies data with, both in f32 or 16 bits.

    Attributes:
        name: that of the weight.
        summed: its dims along which products are added up; groups are cut of the last one.
    """

    name: str
    summed: tuple[int, ...]


def weight_products(main: ir.Operation) -> list[WeightProduct]:
    """The weights of all products of a function, each once, in program order: those that are moved at most."""
    weights, arguments = ConstExprs(main), set(weight_arguments(main))
    found: dict[WeightProduct, None] = {}
    for op in walk_where(main, lambda op: op.name.startswith("linalg."), in_bodies=False):
        product = read_matrix_product(op, ir.F32Type, ir.BF16Type, ir.F16Type)
        known = [] if product is None else [number for number in range(2) if product.operands[number] in weights]
        read = _read(product, known[0], arguments) if product is not None and len(known) == 1 else None
        if read is not None:
            found[read] = None
    return list(found)


def _read(product: LinalgOp, number: int, arguments: set[ir.Value]) -> WeightProduct | None:
    read = read_known(product.operands[number], None, product.maps[number])
    if read is None or not _is_moved(read.element) or len(read.sources) != 1:
        return None
    (source,) = read.sources
    if source.value not in arguments or not source.lies_along_loops:
        return None
    loops = [loop_of(place) for place in source.places]
    return WeightProduct(
        weight_name(source.value), tuple(loops.index(loop) for loop in product.summed if loop in loops)
    )


def _is_moved(element: Expression) -> bool:
    """Whether an element is one of a source, in the same type or a wider one."""
    while isinstance(element, Compute) and element.op.name == "arith.extf":
        (element,) = element.operands
    return isinstance(element, Read)
