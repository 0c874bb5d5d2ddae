"""Fourier transforms of a few vectors of complex numbers in registers, element by element."""

from __future__ import annotations

import cmath
import math as numbers
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.mlir import arith, ir, math
from pipeline.passes.cpu.microkernel.vector_builders import splat_of_number

Complex = tuple[ir.Value, ir.Value]


@dataclass(frozen=True)
class Butterflies:
    """Arithmetic on vectors of complex numbers, with the real and the imaginary parts in vectors of their own.

    Attributes:
        kind: the type of the vectors.
        sign: that of the exponent of the transforms.
        fma: whether products are fused with sums.
    """

    kind: ir.VectorType
    sign: int
    fma: bool

    def transform(self, values: Sequence[Complex]) -> list[Complex]:
        """The transform of 1, 2, 4 or 8 values, in order: of those at even places, of those at odd ones, then both."""
        count = len(values)
        if count == 1:
            return list(values)
        even, odd = self.transform(values[::2]), self.transform(values[1::2])
        turned = [self.turned(value, k, count) for k, value in enumerate(odd)]
        sums = [self.add(one, other) for one, other in zip(even, turned, strict=True)]
        return sums + [self.sub(one, other) for one, other in zip(even, turned, strict=True)]

    def turned(self, value: Complex, k: int, n: int) -> Complex:
        """The value times exp(sign 2 pi i k / n)."""
        re, im = value
        if k == 0:
            return value
        if 4 * k == n:
            return (self._negated(im), re) if self.sign > 0 else (im, self._negated(re))
        if 8 * k in (n, 3 * n):
            return self._by_an_eighth(re, im, is_second=8 * k == n)
        root = cmath.exp(self.sign * 2j * numbers.pi * k / n)
        return self.product(value, (self.constant(root.real), self.constant(root.imag)))

    def _by_an_eighth(self, re: ir.Value, im: ir.Value, is_second: bool) -> Complex:
        """Times (±1 ± i) / sqrt(2): a sum and a difference, scaled."""
        total, difference = arith.AddFOp(re, im).result, arith.SubFOp(re, im).result
        positive, negative = (self.constant(sign * numbers.sqrt(0.5)) for sign in (1, -1))
        first, second = (difference, total) if self.sign > 0 else (total, difference)
        if is_second:  # (1 + sign i) / sqrt(2)
            flipped = positive if self.sign > 0 else negative
            return arith.MulFOp(first, positive).result, arith.MulFOp(second, flipped).result
        flipped = positive if self.sign > 0 else negative  # (-1 + sign i) / sqrt(2)
        return arith.MulFOp(second, negative).result, arith.MulFOp(first, flipped).result

    def add(self, one: Complex, other: Complex) -> Complex:
        """The sum."""
        return arith.AddFOp(one[0], other[0]).result, arith.AddFOp(one[1], other[1]).result

    def sub(self, one: Complex, other: Complex) -> Complex:
        """The difference."""
        return arith.SubFOp(one[0], other[0]).result, arith.SubFOp(one[1], other[1]).result

    def product(self, one: Complex, other: Complex) -> Complex:
        """The product of finite numbers."""
        (a, b), (c, d) = one, other
        return self._fused(a, c, self._negated(arith.MulFOp(b, d).result)), self._fused(a, d, arith.MulFOp(b, c).result)

    def scaled(self, value: Complex, factor: float) -> Complex:
        """The value times a real number."""
        if factor == 1:
            return value
        by = self.constant(factor)
        return arith.MulFOp(value[0], by).result, arith.MulFOp(value[1], by).result

    def conjugated(self, value: Complex) -> Complex:
        """(re, -im)."""
        return value[0], self._negated(value[1])

    def constant(self, number: float) -> ir.Value:
        """A vector of one number."""
        return splat_of_number(self.kind, number)

    def _fused(self, left: ir.Value, right: ir.Value, addend: ir.Value) -> ir.Value:
        if self.fma:
            return math.FmaOp(left, right, addend).result
        return arith.AddFOp(arith.MulFOp(left, right).result, addend).result

    def _negated(self, value: ir.Value) -> ir.Value:
        return arith.NegFOp(value).result
