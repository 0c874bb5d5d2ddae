"""Transposes in registers: as many vectors as each has elements, rows become columns."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.mlir import ir


def transpose(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The columns of a square matrix, given by its rows; their number is a power of two.

    Halves of pairs of rows change places, then quarters, and so on: n log2(n) shuffles.
    """
    result = list(rows)
    count = len(result)
    step = count // 2
    while step:
        for first in range(count):
            if not first & step:
                left, right = result[first], result[first + step]
                lanes = range(count)
                upper = [lane if not lane & step else count + lane - step for lane in lanes]
                lower = [lane + step if not lane & step else count + lane for lane in lanes]
                result[first] = _shuffle(left, right, upper)
                result[first + step] = _shuffle(left, right, lower)
        step //= 2
    return result


def _shuffle(left: ir.Value, right: ir.Value, lanes: list[int]) -> ir.Value:
    mask = ir.DenseI64ArrayAttr.get(lanes)
    return ir.Operation.create(
        "vector.shuffle", results=[left.type], operands=[left, right], attributes={"mask": mask}
    ).result
