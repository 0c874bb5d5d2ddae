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
        """The transform of a few values, in order.

        For a prime factor p of their number: transforms of every p-th value, then those of length p across them.
        """
        count = len(values)
        if count == 1:
            return list(values)
        p = next(factor for factor in range(2, count + 1) if count % factor == 0)
        parts = [self.transform(values[start::p]) for start in range(p)]
        across = []
        for k in range(count // p):
            turned = [self.turned(part[k], j * k, count) for j, part in enumerate(parts)]
            across.append(self._prime(turned))
        return [value for values in zip(*across, strict=True) for value in values]

    def _prime(self, values: Sequence[Complex]) -> list[Complex]:
        """The transform of a prime number of values: those of j and p - j share a sum and a difference."""
        first, *rest = values
        p, half = len(values), len(rest) // 2
        if p == 2:
            return [self.add(first, rest[0]), self.sub(first, rest[0])]
        pairs = [(rest[j], rest[-1 - j]) for j in range(half)]
        sums, differences = ([combine(*pair) for pair in pairs] for combine in (self.add, self.sub))
        total = first
        for value in sums:
            total = self.add(total, value)
        upper, lower = [], []
        for k in range(1, half + 1):
            angles = [self.sign * 2 * numbers.pi * ((j + 1) * k % p) / p for j in range(half)]
            even = first
            odd: Complex | None = None
            for angle, added, taken in zip(angles, sums, differences, strict=True):
                even = self._plus_scaled(even, added, numbers.cos(angle))
                sine = numbers.sin(angle)
                odd = self.scaled(taken, sine) if odd is None else self._plus_scaled(odd, taken, sine)
            assert odd is not None
            upper.append((arith.SubFOp(even[0], odd[1]).result, arith.AddFOp(even[1], odd[0]).result))
            lower.append((arith.AddFOp(even[0], odd[1]).result, arith.SubFOp(even[1], odd[0]).result))
        return [total, *upper, *lower[::-1]]

    def _plus_scaled(self, value: Complex, other: Complex, factor: float) -> Complex:
        """The value plus the other one times a real number."""
        by = self.constant(factor)
        return self._fused(other[0], by, value[0]), self._fused(other[1], by, value[1])

    def turned(self, value: Complex, k: int, n: int) -> Complex:
        """The value times exp(sign 2 pi i k / n)."""
        re, im = value
        if k == 0:
            return value
        if 2 * k == n:
            return self._negated(re), self._negated(im)
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
