"""Views of numbers as another dtype of the same width, in the torch dialect, where torch-mlir's own lowering fails."""

from __future__ import annotations

from pipeline.frontend.importer.builtin_tensors import builtin_type, from_builtin, load_conversions, to_builtin
from pipeline.ir.rewriting import before, build_generic, empty_like, iterator_types, replace
from pipeline.mlir import arith, ir, walk


def lower_bitcasts(module: ir.Module) -> None:
    """view(x, dtype) -> bitcast(x) for dtypes of the same width; others stay."""
    views = walk(module, "torch.aten.view.dtype")
    if views:
        load_conversions(module.context)
    for view in views:
        before_type, after_type = builtin_type(view.operands[0].type), builtin_type(view.results[0].type)
        if before_type is None or after_type is None:
            continue
        if before_type.element_type.width != after_type.element_type.width:
            continue
        with before(view):
            numbers = to_builtin(view.operands[0])
            bits = numbers if before_type == after_type else _bitcast(numbers, after_type.element_type)
            result = from_builtin(bits, view.results[0].type)
        replace(view, [result])


def _bitcast(numbers: ir.Value, element: ir.Type) -> ir.Value:
    rank = ir.RankedTensorType(numbers.type).rank
    maps = [ir.AffineMap.get_identity(rank)] * 2
    parallel = iterator_types([False] * rank)
    empty = empty_like(numbers, element)
    generic = build_generic(
        [numbers], [empty], maps, parallel, lambda given: [arith.BitcastOp(element, given[0]).result]
    )
    return generic.results[0]
