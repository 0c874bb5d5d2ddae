"""Views of numbers as another dtype of the same width, in the torch dialect, where torch-mlir's own lowering fails."""

from __future__ import annotations

import re

from pipeline.mlir import arith, ir, run_pipeline, walk
from pipeline.passes.rewriting import before, build_generic, empty_like, iterator_types, replace

#: The sizes and the element type of a tensor type of the torch dialect.
_TENSOR = re.compile(r"!torch\.vtensor<\[([\d,?]*)\],[su]?((?:i|f|bf)\d+)>")


def lower_bitcasts(module: ir.Module) -> None:
    """view(x, dtype) -> bitcast(x) for dtypes of the same width; others stay."""
    views = walk(module, "torch.aten.view.dtype")
    if views:
        _load_torch_c(module.context)
    for view in views:
        before_type, after_type = _builtin(view.operands[0].type), _builtin(view.results[0].type)
        if before_type is None or after_type is None:
            continue
        if before_type.element_type.width != after_type.element_type.width:
            continue
        with before(view):
            numbers = ir.Operation.create("torch_c.to_builtin_tensor", [before_type], [view.operands[0]]).result
            bits = numbers if before_type == after_type else _bitcast(numbers, after_type.element_type)
            result = ir.Operation.create("torch_c.from_builtin_tensor", [view.results[0].type], [bits]).result
        replace(view, [result])


def _load_torch_c(context: ir.Context) -> None:
    """Has a pass load the dialect of the conversions, which cannot be asked for by name."""
    with context, ir.Location.unknown():
        run_pipeline(ir.Module.create().operation, "builtin.module(torch-func-backend-type-conversion)")


def _bitcast(numbers: ir.Value, element: ir.Type) -> ir.Value:
    rank = ir.RankedTensorType(numbers.type).rank
    maps = [ir.AffineMap.get_identity(rank)] * 2
    parallel = iterator_types([False] * rank)
    empty = empty_like(numbers, element)
    generic = build_generic(
        [numbers], [empty], maps, parallel, lambda given: [arith.BitcastOp(element, given[0]).result]
    )
    return generic.results[0]


def _builtin(kind: ir.Type) -> ir.RankedTensorType | None:
    """The builtin type for a tensor of the torch dialect, without signs; None if it has another form."""
    match = _TENSOR.fullmatch(str(kind))
    if match is None:
        return None
    sizes = "".join(f"{size}x" for size in match.group(1).split(",") if size)
    return ir.RankedTensorType(ir.Type.parse(f"tensor<{sizes}{match.group(2)}>", kind.context))
