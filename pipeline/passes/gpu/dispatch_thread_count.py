"""How many threads a launch of a device needs, where that is known at run time only."""

from __future__ import annotations

from pipeline.ir.constants import as_index
from pipeline.ir.linalg_op import bounded
from pipeline.mlir import arith, constant_integer, ir, memref
from pipeline.passes.gpu.thread.launch_patterns import block_nest, iterations, parallel_nest


def dynamic_threads(root: ir.Operation) -> ir.Value | None:
    """The number of parallel iterations of `root` as a value at the insertion point; None where it is a constant."""
    if root.name == "memref.copy":
        sizes = _copied_sizes(root)
    elif nest := parallel_nest(root) or block_nest(root):
        return _dynamic_product([iterations(loop) for loop in nest])
    elif root.name == "linalg.generic":
        view = bounded(root)
        if view is None:
            return None
        places = [view.bounds[dim] for dim, reduction in enumerate(view.reductions) if not reduction]
        sizes = [(root.operands[operand], dim) for operand, dim in places]
    else:
        return None
    if not any(ir.MemRefType(value.type).is_dynamic_dim(dim) for value, dim in sizes):
        return None
    total = as_index(1)
    for value, dim in sizes:
        size = memref.DimOp(value, as_index(dim)).result
        total = arith.MulIOp(total, size).result
    return total


def _dynamic_product(factors: list[ir.Value | int]) -> ir.Value | None:
    """The product of numbers; None if all of them are known."""
    if all(isinstance(factor, int) or constant_integer(factor) is not None for factor in factors):
        return None
    total = as_index(1)
    for factor in factors:
        known = as_index(factor) if isinstance(factor, int) else factor
        total = arith.MulIOp(total, known).result
    return total


def _copied_sizes(op: ir.Operation) -> list[tuple[ir.Value, int]]:
    target = op.operands[1]
    return [(target, dim) for dim in range(ir.MemRefType(target.type).rank)]
