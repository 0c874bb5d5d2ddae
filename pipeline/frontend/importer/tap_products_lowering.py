"""`pipeline.tap_products` on its way from torch to linalg: one contraction that reads x[p * stride + t * dilation].

torch.operator "torch.pipeline.tap_products"(x, g) → pipeline.tap_products on torch's tensors, past torch-mlir's passes
                                                   → linalg.generic on builtin tensors, a convolution as any other
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.dialects.fusion import BARRIER
from pipeline.frontend.importer.own_ops import (
    builtin_operands,
    imported,
    lower_ops,
    number_of,
    numbers_of,
    result_type,
    take_over,
    wide,
)
from pipeline.ir.constants import zero
from pipeline.ir.rewriting import build_generic, empty_like, iterator_types, sizes_of
from pipeline.mlir import arith, ir, linalg, tensor, walk

_OP = "pipeline.tap_products"
_LISTS = ("taps", "stride", "dilation")

#: Elements of a vector of f32.
_VECTOR = 16


def take_over_tap_products(module: ir.Module) -> None:
    """Makes imported calls of `pipeline.tap_products` ops that torch's passes leave alone."""
    for call in imported(module, _OP):
        x, g, *lists, depthwise = call.operands
        attributes = dict(zip(_LISTS, map(numbers_of, lists), strict=True))
        take_over(call, _OP, [x, g], {**attributes, "depthwise": number_of(depthwise)})


def lower_tap_products(module: ir.Module) -> None:
    """pipeline.tap_products(x, g) → linalg.generic, between torch-mlir's own conversions."""
    lower_ops(walk(module, _OP), _contraction)


def _contraction(op: ir.Operation, x: ir.Value) -> ir.Value:
    _, g = builtin_operands(op, x)
    kind = result_type(op)
    taps, strides, dilations = ([ir.IntegerAttr(number).value for number in op.attributes[name]] for name in _LISTS)
    channels = 0 if ir.IntegerAttr(op.attributes["depthwise"]).value else 1
    rank = len(taps)
    groups = kind.rank - rank - 2 * channels
    counts = (rank, groups, channels, channels, 1, rank)
    tap, group, o, i, n, place = _loops(counts)
    read = [p * stride + t * dilation for p, t, stride, dilation in zip(place, tap, strides, dilations, strict=True)]
    wanted = (*group, *o, *tap, *i)
    made = (*tap, *group, *i, *o) if not channels or _has_few_channels(x, g) else wanted
    maps = [
        ir.AffineMap.get(sum(counts), 0, list(indexing))
        for indexing in ((*n, *read, *group, *i), (*n, *place, *group, *o), made)
    ]
    reductions = [number >= sum(counts[:4]) for number in range(sum(counts))]
    sizes = dict(zip(wanted, [*sizes_of(g)[1 + rank :], *taps, *(sizes_of(x)[-1:] * channels)], strict=True))
    empty = tensor.EmptyOp([sizes[loop] for loop in made], kind.element_type).result
    start = linalg.fill(zero(kind.element_type), outs=[empty])

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        left, right = (wide(element, kind.element_type) for element in elements[:2])
        return [arith.AddFOp(arith.MulFOp(left, right).result, elements[2]).result]

    total = build_generic([x, g], [start], maps, iterator_types(reductions), body).results[0]
    if not channels:
        total = _apart(total)
    if made != wanted:
        total = _permuted(total, [made.index(loop) for loop in wanted])
    if channels:
        total = _apart(total)
    return total if total.type == kind else tensor.CastOp(kind, total).result


def _has_few_channels(x: ir.Value, g: ir.Value) -> bool:
    """Whether vectors are to run along the channels of the gradient, since the others do not fill one."""
    inner, outer = (ir.RankedTensorType(value.type).shape[-1] for value in (x, g))
    return 0 < inner < min(_VECTOR, outer)


def _apart(value: ir.Value) -> ir.Value:
    """The same, not computed in another order of dims: lanes would be stored one by one, taps apart."""
    result: ir.Value = ir.Operation.create(BARRIER, [value.type], [value]).result
    return result


def _permuted(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    rank = len(permutation)
    read = [ir.AffineDimExpr.get(permutation.index(dim)) for dim in range(rank)]
    maps = [ir.AffineMap.get(rank, 0, read), ir.AffineMap.get_identity(rank)]
    empty = empty_like(value, ir.RankedTensorType(value.type).element_type, permutation)
    return build_generic(
        [value], [empty], maps, iterator_types([False] * rank), lambda elements: [elements[0]]
    ).results[0]


def _loops(counts: Sequence[int]) -> list[list[ir.AffineExpr]]:
    """So many loops of each kind, numbered one after the other."""
    found: list[list[ir.AffineExpr]] = []
    first = 0
    for count in counts:
        found.append([ir.AffineDimExpr.get(loop) for loop in range(first, first + count)])
        first += count
    return found
