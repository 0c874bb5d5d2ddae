"""`pipeline.transform` on its way from torch to linalg: a sum with roots of unity, marked as a Fourier transform.

torch.operator "torch.pipeline.transform"(x) → pipeline.transform on torch's tensors, past torch-mlir's passes
                                             → linalg.generic {pipeline.transform} between two fusion.barriers
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

from pipeline.analysis.fourier import Transform, read_transform
from pipeline.dialects.fusion import BARRIER
from pipeline.frontend.importer.own_ops import imported, lower_ops, number_of, result_type, take_over
from pipeline.ir.attributes import TRANSFORM
from pipeline.ir.rewriting import build_generic, iterator_types, sizes_of
from pipeline.mlir import arith, ir, linalg, math, tensor, walk

_OP = "pipeline.transform"


def take_over_transforms(module: ir.Module) -> None:
    """Makes imported calls of `pipeline.transform` ops that torch's passes leave alone."""
    for call in imported(module, _OP):
        x, *told = call.operands
        numbers = dict(zip(("n", "sign", "scale"), map(number_of, told), strict=False))
        take_over(call, _OP, [x], {TRANSFORM: ir.DictAttr.get(numbers, module.context)})


def lower_transforms(module: ir.Module) -> None:
    """pipeline.transform(x) → the marked linalg.generic, between torch-mlir's own conversions.

    Nothing fuses with it, since what computes it in n log n steps has no place for another op.
    """

    def lowering(op: ir.Operation, x: ir.Value) -> ir.Value:
        return _barrier(_generic(_barrier(x), result_type(op), op.attributes[TRANSFORM]))

    lower_ops(walk(module, _OP), lowering)


def _barrier(value: ir.Value) -> ir.Value:
    return ir.Operation.create(BARRIER, [value.type], [value]).result


def _generic(x: ir.Value, kind: ir.RankedTensorType, mark: ir.Attribute) -> ir.Value:
    """out[r, l] = the sum over k of x[r, k] times a number; out[r, l, c] that over k and d of x[r, k, d] times one."""
    transform = read_transform(mark, x.type, kind)
    sizes = [*sizes_of(x)[:-1], kind.get_dim_size(kind.rank - 1)]
    number = arith.ConstantOp(kind.element_type, 0.0).result
    zeros = linalg.fill(number, outs=[tensor.EmptyOp(sizes, kind.element_type).result])
    rank = kind.rank - 1
    loops = [ir.AffineDimExpr.get(loop) for loop in range(1 + 2 * rank)]
    maps = [ir.AffineMap.get(len(loops), 0, [loops[0], *dims]) for dims in (loops[1 + rank :], loops[1 : 1 + rank])]

    def body(elements: Sequence[ir.Value]) -> list[ir.Value]:
        places = [_to_i64(linalg.IndexOp(loop).result) for loop in range(1, len(loops))]
        factor = _factor(transform, places[:rank], places[rank:], kind.element_type)
        return [arith.AddFOp(elements[1], arith.MulFOp(elements[0], factor).result).result]

    sums = [number > rank for number in range(len(loops))]
    generic = build_generic([x], [zeros], maps, iterator_types(sums), body)
    generic.attributes[TRANSFORM] = mark
    return generic.results[0]


def _factor(transform: Transform, made: Sequence[ir.Value], given: Sequence[ir.Value], element: ir.Type) -> ir.Value:
    """scale * cos(2 pi (sign k l + (q - p) n / 4) / n), of element q of the number k in element p of the number l.

    It is sign * sin where p is the imaginary part and q is not, and the other way round.
    """
    n = transform.n
    (k, q), (number, p) = _part(given, transform.takes_pairs), _part(made, transform.gives_pairs)
    quarters = arith.muli(arith.subi(q, p), _constant(n))
    steps = arith.addi(arith.muli(arith.muli(k, number), _constant(4 * transform.sign)), quarters)
    angle = arith.sitofp(element, arith.trunci(_i32(), arith.remsi(steps, _constant(4 * n))))
    cosine = math.cos(arith.mulf(angle, arith.ConstantOp(element, pi / (2 * n)).result))
    factor = arith.mulf(cosine, arith.ConstantOp(element, transform.scale).result)
    if not transform.gives_pairs:
        return arith.mulf(factor, _weight(k, q, n, element))
    return factor if len(made) == 1 else _where_equal(_number(given[1]), _number(made[1]), factor)


def _part(place: Sequence[ir.Value], is_of_pair: bool) -> tuple[ir.Value, ir.Value]:
    """The number along the transform, and 0 or 1: its real or its imaginary part."""
    if not is_of_pair:
        return place[0], _constant(0)
    return place[0] if len(place) == 2 else _number(place[0]), arith.andi(place[-1], _constant(1))


def _number(place: ir.Value) -> ir.Value:
    """The number of the pair that an element is of."""
    return arith.shrui(place, _constant(1))


def _weight(k: ir.Value, q: ir.Value, n: int, element: ir.Type) -> ir.Value:
    """How often an element of half a spectrum counts: twice, but the ends once, and not their imaginary parts."""
    is_inner = arith.cmpi(arith.CmpIPredicate.ne, arith.remsi(k, _constant(n // 2)), _constant(0))
    is_real = arith.cmpi(arith.CmpIPredicate.eq, q, _constant(0))
    zero, one, two = (arith.ConstantOp(element, number).result for number in (0.0, 1.0, 2.0))
    return arith.select(is_inner, two, arith.select(is_real, one, zero))


def _where_equal(left: ir.Value, right: ir.Value, value: ir.Value) -> ir.Value:
    zero = arith.ConstantOp(value.type, 0.0).result
    return arith.select(arith.cmpi(arith.CmpIPredicate.eq, left, right), value, zero)


def _constant(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(64), value).result


def _to_i64(index: ir.Value) -> ir.Value:
    return arith.index_cast(ir.IntegerType.get_signless(64), index)


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)
