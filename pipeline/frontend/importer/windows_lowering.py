"""`pipeline.windows` on its way from torch to linalg: a copy that reads x[w * step + k].

torch.operator "torch.pipeline.windows"(x) → pipeline.windows on torch's tensors, past torch-mlir's passes
                                           → linalg.generic on builtin tensors, which fuses as any elementwise op
"""

from __future__ import annotations

from pipeline.frontend.importer.own_ops import imported, lower_ops, number_of, result_type, take_over
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import build_generic, iterator_types, size_of, sizes_of
from pipeline.mlir import arith, ir, tensor, walk

_OP = "pipeline.windows"
_NUMBERS = ("dim", "size", "step")


def take_over_windows(module: ir.Module) -> None:
    """Makes imported calls of `pipeline.windows` ops that torch's passes leave alone."""
    for call in imported(module, _OP):
        x, *told = call.operands
        take_over(call, _OP, [x], dict(zip(_NUMBERS, map(number_of, told), strict=True)))


def lower_windows(module: ir.Module) -> None:
    """pipeline.windows(x) → linalg.generic, between torch-mlir's own conversions."""
    lower_ops(walk(module, _OP), _copy)


def _copy(op: ir.Operation, x: ir.Value) -> ir.Value:
    kind = result_type(op)
    dim, _, step = (ir.IntegerAttr(op.attributes[name]).value for name in _NUMBERS)
    sizes = [*sizes_of(x), kind.get_dim_size(kind.rank - 1)]
    sizes[dim] = kind.get_dim_size(dim)
    if kind.is_dynamic_dim(dim):
        sizes[dim] = _count(size_of(x, dim), kind.get_dim_size(kind.rank - 1), step)
    loops = [ir.AffineDimExpr.get(loop) for loop in range(kind.rank)]
    read: list[ir.AffineExpr] = list(loops[:-1])
    read[dim] = loops[dim] * step + loops[-1]
    maps = [ir.AffineMap.get(kind.rank, 0, indexing) for indexing in (read, loops)]
    empty = tensor.EmptyOp(sizes, kind.element_type).result
    parallel = iterator_types([False] * kind.rank)
    copied = build_generic([x], [empty], maps, parallel, lambda elements: [elements[0]]).results[0]
    return copied if copied.type == kind else tensor.CastOp(kind, copied).result


def _count(length: ir.Value, size: int, step: int) -> ir.Value:
    """How many windows there are: (length - size) // step + 1."""
    size_value, step_value, one = (as_index(number) for number in (size, step, 1))
    return arith.AddIOp(arith.DivSIOp(arith.SubIOp(length, size_value).result, step_value).result, one).result
