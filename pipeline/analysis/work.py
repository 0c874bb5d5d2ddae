"""How much a kernel computes, for profiles: arithmetic operations counted from its linalg ops."""

from __future__ import annotations

import math
from collections.abc import Callable

from pipeline.analysis.structured import any_structured
from pipeline.mlir import ir

#: Ops of a body that compute nothing: they choose, move, convert or index.
_SILENT = {"arith.constant", "arith.select", "linalg.index", "linalg.yield", "tensor.extract", "arith.bitcast"}
_CONVERSIONS = ("ext", "trunc", "sitofp", "uitofp", "fptosi", "fptoui", "index_cast")


def operations(function: ir.Operation) -> int | None:
    """The arithmetic operations of a call, each op of a body one an iteration; None if that depends on the call."""
    return _total(function, lambda op: sum(map(_computes, _body(op))))


def iterations(function: ir.Operation) -> int | None:
    """How often the bodies of a kernel's linalg ops run in all; None if that depends on the call."""
    return _total(function, lambda op: 1)


def _total(function: ir.Operation, weight: Callable[[ir.Operation], int]) -> int | None:
    """The sum over the linalg ops of a kernel of what each iteration weighs."""
    total = 0
    for op in function.regions[0].blocks[0].operations:
        op = op.operation
        if op.name.startswith(("scf.", "func.call")):
            return None
        if not op.name.startswith("linalg."):
            continue
        count = _iterations(op)
        if count is None:
            return None
        total += count * weight(op)
    return total


def _body(op: ir.Operation) -> list[str]:
    return [inner.operation.name for inner in op.regions[0].blocks[0].operations] if op.regions else []


def _computes(name: str) -> bool:
    dialect, _, short = name.partition(".")
    return dialect in ("arith", "math") and name not in _SILENT and not short.startswith(_CONVERSIONS)


def _iterations(op: ir.Operation) -> int | None:
    view = any_structured(op)
    if view is None:
        return None
    sizes: dict[int, int] = {}
    for indexing, operand in zip(view.maps, op.operands, strict=True):
        if not isinstance(operand.type, ir.ShapedType):
            continue
        kind = ir.ShapedType(operand.type)
        for position, expression in enumerate(indexing.results):
            if isinstance(expression, ir.AffineDimExpr):
                if kind.is_dynamic_dim(position):
                    return None
                sizes[ir.AffineDimExpr(expression).position] = kind.get_dim_size(position)
    return math.prod(sizes.values()) if len(sizes) == view.loops else None
