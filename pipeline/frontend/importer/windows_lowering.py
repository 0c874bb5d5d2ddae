"""`pipeline.windows` on its way from torch to linalg: a copy that reads x[w * step + k].

torch.operator "torch.pipeline.windows"(x) → pipeline.windows on torch's tensors, past torch-mlir's passes
                                           → linalg.generic on builtin tensors, which fuses as any elementwise op
"""

from __future__ import annotations

from pipeline.frontend.importer.builtin_tensors import builtin_type, from_builtin, load_conversions, to_builtin
from pipeline.ir.rewriting import before, build_generic, iterator_types, replace, size_of, sizes_of
from pipeline.mlir import arith, defining_op, ir, tensor, walk

_IMPORTED, _OP = "torch.pipeline.windows", "pipeline.windows"
_NUMBERS = ("dim", "size", "step")


def take_over_windows(module: ir.Module) -> None:
    """Makes imported calls of `pipeline.windows` ops that torch's passes leave alone."""
    for op in walk(module, "torch.operator"):
        if ir.StringAttr(op.attributes["name"]).value != _IMPORTED:
            continue
        x, *told = op.operands
        numbers = dict(zip(_NUMBERS, map(_number_of, told), strict=True))
        with before(op):
            taken = ir.Operation.create(_OP, [op.results[0].type], [x], attributes=numbers)
        replace(op, list(taken.results))


def _number_of(value: ir.Value) -> ir.Attribute:
    """The value of a torch.constant."""
    constant = defining_op(value)
    assert constant is not None
    return constant.attributes["value"]


def lower_windows(module: ir.Module) -> None:
    """pipeline.windows(x) → linalg.generic, between torch-mlir's own conversions."""
    ops = walk(module, _OP)
    if ops:
        load_conversions(module.context)
    for op in ops:
        with before(op):
            kind = builtin_type(op.results[0].type)
            assert kind is not None
            dim, _, step = (ir.IntegerAttr(op.attributes[name]).value for name in _NUMBERS)
            result = from_builtin(_copy(to_builtin(op.operands[0]), kind, dim, step), op.results[0].type)
        replace(op, [result])


def _copy(x: ir.Value, kind: ir.RankedTensorType, dim: int, step: int) -> ir.Value:
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
    index = ir.IndexType.get()
    size_value, step_value, one = (arith.ConstantOp(index, number).result for number in (size, step, 1))
    return arith.AddIOp(arith.DivSIOp(arith.SubIOp(length, size_value).result, step_value).result, one).result
