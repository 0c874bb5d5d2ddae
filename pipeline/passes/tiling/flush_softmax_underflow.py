"""flush-softmax-underflow: weights of an attention that would be denormal numbers are 0."""

from __future__ import annotations

import math as numbers
from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.product_body import sums_products
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import behind
from pipeline.mlir import arith, defining_op, ir
from pipeline.passes.tiling.softmax_sum import summed_exponentials
from pipeline.passmanager.patterns import PatternPass, pattern

#: How many exponentials a row sums that has an unknown length.
_LONG_ROW = 1 << 16

#: The smallest numbers that are not denormal.
_SMALLEST = {"f32": 2.0**-126, "f64": 2.0**-1022}

#: What may stand between the exponentials and the product: quotients, masks of dropout and of whole rows, casts.
_SCALING = ("arith.divf", "arith.mulf", "arith.truncf", "arith.extf", "arith.select", "arith.constant")


@dataclass(frozen=True)
class FlushSoftmaxUnderflow(PatternPass):
    """Take 0 for exp(y - max(y)) where its share of a sum over the row may be denormal, and products alone read that.

    Processors multiply denormal numbers up to ten times as slowly as others, and rows of logits that are 90 apart are
    full of them. A sum of products loses less than 2**-126 (2**-1022 in f64) of what such a share is multiplied with.
    What another op reads stays as it is: the logarithm of a denormal number is one that counts.
    """

    name: ClassVar[str] = "flush-softmax-underflow"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def flush(self, generic: ir.Operation) -> bool:
        """exp(y - max(y))   ->   select(y - max(y) < log(length * 2**-126), 0, exp(y - max(y)))"""
        if len(generic.results) != 1 or str(generic.results[0].type.element_type) not in _SMALLEST:
            return False
        powers = summed_exponentials(generic.results[0])
        if powers is None or not _reaches_products_only(powers.op, generic):
            return False
        _rewrite(powers, _row_length(generic))
        self.passed(powers.op, "takes 0 for exponentials whose share of their sum would be a denormal number")
        return True


def _reaches_products_only(op: ir.Operation, total: ir.Operation) -> bool:
    """Whether an op's results are read by sums of products, behind what scales them, and by one sum."""
    readers = [use.owner.operation for use in op.results[0].uses if use.owner.operation != total]
    return bool(readers) and all(_is_product(reader) or _scales(reader, total) for reader in readers)


def _is_product(op: ir.Operation) -> bool:
    view = structured(op)
    return view is not None and any(view.reductions) and len(op.results) == 1 and sums_products(view)


def _scales(op: ir.Operation, total: ir.Operation) -> bool:
    view = structured(op)
    return (
        view is not None
        and view.is_elementwise
        and len(op.results) == 1
        and all(inner.name in _SCALING for inner in view.body_ops)
        and _reaches_products_only(op, total)
    )


def _row_length(total: ir.Operation) -> int:
    """How many exponentials are summed."""
    view = structured(total)
    assert view is not None  # it is a sum of exponentials
    return numbers.prod(view.sizes[loop] or _LONG_ROW for loop in view.summed)


def _rewrite(powers: LinalgOp, length: int) -> None:
    power = powers.yielded[0]
    producer = defining_op(power)
    assert producer is not None  # its value is an exponential
    kind, exponent = power.type, producer.operands[0]
    lowest = numbers.log(max(length, 1)) + numbers.log(_SMALLEST[str(kind)])
    with behind(power):
        zero, limit = (arith.ConstantOp(kind, ir.FloatAttr.get(kind, number)).result for number in (0.0, lowest))
        underflows = arith.CmpFOp(arith.CmpFPredicate.OLT, exponent, limit).result
        flushed = arith.SelectOp(underflows, zero, power).result
    power.replace_all_uses_except(flushed, flushed.owner.operation)
