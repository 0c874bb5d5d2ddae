"""How much a kernel computes, for profiles: arithmetic operations counted from its linalg ops."""

from __future__ import annotations

import math
from collections.abc import Callable

from pipeline.analysis.fourier import transform_of
from pipeline.analysis.trip_count import trip_count
from pipeline.ir.kernels import LOOP, kernel_kind
from pipeline.ir.linalg_op import any_structured
from pipeline.mlir import called_function, ir

#: Ops of a body that compute nothing: they choose, move, convert or index.
_SILENT = {"arith.constant", "arith.select", "linalg.index", "linalg.yield", "tensor.extract", "arith.bitcast"}
_CONVERSIONS = ("ext", "trunc", "sitofp", "uitofp", "fptosi", "fptoui", "index_cast")


def operations(kernel: ir.Operation) -> int | None:
    """The arithmetic operations of a call, each op of a body one an iteration; None if that depends on the call."""
    return _total(kernel, _operations)


def _operations(op: ir.Operation) -> int | None:
    """Of one linalg op; of a Fourier transform by the usual count, 5 n log2 n, not the sum that its body says."""
    transform = transform_of(op)
    if transform is None:
        return _times(_iterations(op), sum(map(_computes, _body(op))))
    source = ir.ShapedType(op.operands[0].type)
    if source.is_dynamic_dim(0):
        return None
    return source.get_dim_size(0) * (transform.columns or 1) * transform.operations


def iterations(kernel: ir.Operation) -> int | None:
    """How often the bodies of a kernel's linalg ops run in all; None if that depends on the call."""
    return _total(kernel, _iterations)


def _times(count: int | None, weight: int) -> int | None:
    return None if count is None else count * weight


def _total(kernel: ir.Operation, weight: Callable[[ir.Operation], int | None]) -> int | None:
    """The sum over the linalg ops of a kernel, and of the kernels in a loop, of what each weighs."""
    return _sum(kernel.regions[0].blocks[0], weight, kernel_kind(kernel) == LOOP)


def _sum(block: ir.Block, weight: Callable[[ir.Operation], int | None], has_calls: bool) -> int | None:
    total = 0
    for op in block.operations:
        op = op.operation
        count: int | None = 0
        if op.name.startswith("linalg."):
            count = weight(op)
        elif has_calls and op.name == "scf.for":
            rounds, inside = trip_count(op), _sum(op.regions[0].blocks[0], weight, has_calls)
            count = None if rounds is None or inside is None else rounds * inside
        elif has_calls and op.name == "func.call":
            count = _total(called_function(op), weight)
        elif op.name.startswith(("scf.", "func.call")) and op.name != "scf.yield":
            count = None
        if count is None:
            return None
        total += count
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
