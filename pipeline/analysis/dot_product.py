"""Dot products of narrow elements: which sums of products processors compute several at a time."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.ir.byte_products import ANY, MIXED, SAME
from pipeline.mlir import defining_op, ir, terminator


@dataclass(frozen=True)
class DotProduct:
    """An instruction that adds several products to each sum of 32 bits.

    Attributes:
        steps: how many products.
        unsigned: for each factor whether it has no sign; None for bf16.
    """

    steps: int
    unsigned: tuple[bool, bool] | None = None

    @property
    def bits(self) -> int:
        """Those of a factor."""
        return 32 // self.steps

    def exists(self, bf16_dots: bool, int8_dots: str) -> bool:
        """Whether a processor has it that has dot products of bf16, or these of bytes (`pipeline.ir.byte_products`)."""
        if self.unsigned is None:
            return bf16_dots
        return int8_dots == ANY or int8_dots == (MIXED if len(set(self.unsigned)) == 2 else SAME)


#: f32 + bf16 * bf16 + bf16 * bf16, see AVX512_BF16, and BFDOT of AArch64.
BF16_PAIRS = DotProduct(2)


def dot_product_of(body: ir.Block) -> DotProduct | None:
    """The instruction for a body that yields out + ext(a) * ext(b), in any order; None if there is none.

    f32 + extf(bf16) * extf(bf16), or i32 + ext(i8) * ext(i8)
    """
    kinds = [str(argument.type) for argument in body.arguments]
    if kinds == ["bf16", "bf16", "f32"]:
        return BF16_PAIRS if _factors(body, "arith.addf", "arith.mulf") == ["arith.extf"] * 2 else None
    factors = _factors(body, "arith.addi", "arith.muli") if kinds == ["i8", "i8", "i32"] else None
    if factors is None or not {"arith.extsi", "arith.extui"} >= set(factors):
        return None
    left, right = (factor == "arith.extui" for factor in factors)
    return DotProduct(4, (left, right))


def _factors(body: ir.Block, add: str, multiply: str) -> list[str] | None:
    """The ops by which the two first arguments are extended; None for a body of another form."""
    left, right, total = body.arguments
    addition = defining_op(terminator(body).operands[0])
    if addition is None or addition.name != add or total not in list(addition.operands):
        return None
    sides = [value for value in addition.operands if value != total]
    product = defining_op(sides[0]) if len(sides) == 1 else None
    if product is None or product.name != multiply:
        return None
    extensions = [op for value in product.operands if (op := defining_op(value)) is not None]
    by_argument = {op.operands[0]: op.name for op in extensions if len(op.operands) == 1}
    return [by_argument[left], by_argument[right]] if set(by_argument) == {left, right} else None


def in_groups(column: ir.AffineExpr, row: ir.AffineExpr, steps: int) -> list[ir.AffineExpr]:
    """The indices [row / steps, column, row % steps], the last two as one: groups of rows side by side for a column."""
    place = ir.AffineExpr.get_add(ir.AffineExpr.get_mul(column, steps), ir.AffineExpr.get_mod(row, steps))
    return [ir.AffineExpr.get_floor_div(row, steps), place]


def lies_in_groups(indexing: ir.AffineMap, column: int, row: int, steps: int) -> bool:
    """Whether an operand has groups of elements along loop `row` side by side, for each iteration of `column`."""
    group, place = in_groups(ir.AffineDimExpr.get(column), ir.AffineDimExpr.get(row), steps)
    results = list(indexing.results)
    if len(results) < 2 or results[-1] != place or group not in results[:-1]:
        return False
    others = [expression for expression in results[:-1] if expression != group]
    return not any(expression.compose(_without(indexing.n_dims, column, row)) != expression for expression in others)


def _without(count: int, *loops: int) -> ir.AffineMap:
    """A map that puts 0 for some loops: an expression that it changes depends on one of them."""
    zero = ir.AffineConstantExpr.get(0)
    return ir.AffineMap.get(count, 0, [zero if d in loops else ir.AffineDimExpr.get(d) for d in range(count)])
