"""Views of numbers as another dtype of the same width, in the torch dialect, where torch-mlir's own lowering fails."""

from __future__ import annotations

from pipeline.frontend.importer.own_ops import builtin_type, lower_ops, result_type
from pipeline.ir.rewriting import build_generic, empty_like, iterator_types
from pipeline.mlir import arith, ir, walk


def lower_bitcasts(module: ir.Module) -> None:
    """view(x, dtype) -> bitcast(x) for dtypes of the same width; others stay."""
    lower_ops([view for view in walk(module, "torch.aten.view.dtype") if _keeps_width(view)], _bitcast)


def _keeps_width(view: ir.Operation) -> bool:
    given, result = builtin_type(view.operands[0].type), builtin_type(view.results[0].type)
    return given is not None and result is not None and given.element_type.width == result.element_type.width


def _bitcast(view: ir.Operation, numbers: ir.Value) -> ir.Value:
    kind = result_type(view)
    if numbers.type == kind:
        return numbers
    element, rank = kind.element_type, kind.rank
    maps = [ir.AffineMap.get_identity(rank)] * 2
    parallel = iterator_types([False] * rank)
    empty = empty_like(numbers, element)
    generic = build_generic(
        [numbers], [empty], maps, parallel, lambda given: [arith.BitcastOp(element, given[0]).result]
    )
    return generic.results[0]
