"""Fourier transforms as linalg ops: how one is told, and how its loops are tiled.

The op is a sum with roots of unity that its body computes, n² cosines: right for whatever does not know it. Its mark
says that it is a transform, which is computed in n log n steps then (see
passes/cpu/microkernel/fourier_tiles.py). Complex numbers are pairs that lie side by
side in the last dim; `[r, n]` below are r rows of n real numbers.

    [r, 2 n] -> [r, 2 n]        rows of n complex numbers
    [r, n] -> [r, n + 2]        real numbers to the first half of their spectrum
    [r, n + 2] -> [r, n]        and back
    [r, n, 2 c] -> [r, n, 2 c]  along the columns of rows of c complex numbers
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipeline.analysis.fourier_lengths import in_cache, is_short, power_of_two
from pipeline.ir.attributes import TRANSFORM
from pipeline.mlir import ir


@dataclass(frozen=True)
class Transform:
    """A transform.

    Attributes:
        n: its length.
        sign: that of the exponent.
        scale: what the results are multiplied by.
        columns: complex numbers in a row of which the columns are transformed; None if rows are.
        takes_pairs, gives_pairs: whether operand and result are complex.
    """

    n: int
    sign: int
    scale: float
    columns: int | None
    takes_pairs: bool
    gives_pairs: bool

    @property
    def complex_length(self) -> int:
        """The length of the complex transform that does it: half of that of a real one."""
        return self.n if self.takes_pairs and self.gives_pairs else self.n // 2

    @property
    def is_short(self) -> bool:
        """Whether rows are transformed side by side: one row would not fill the vectors of its two steps."""
        return self.columns is None and is_short(self.complex_length)

    @property
    def operations(self) -> int:
        """The arithmetic operations of one, by the usual count: 5 n log2 n, half of it for real numbers."""
        return round(5 * self.n * math.log2(self.n) / (1 if self.takes_pairs and self.gives_pairs else 2))

    def lanes(self, most: int) -> int:
        """The elements of the vectors, at most so many: the rows and columns of steps fill at least one."""
        if self.columns is not None:
            return min(most, power_of_two(self.columns))
        if self.is_short:
            return min(most, power_of_two(2 * self.complex_length))
        return min(most, power_of_two(min(self.steps())))

    def steps(self) -> tuple[int, int]:
        """The lengths of the two steps that transform a row, the longer one first."""
        steps = in_cache(self.complex_length)
        assert steps is not None
        return steps


def transform_of(op: ir.Operation) -> Transform | None:
    """What a marked op on tensors or buffers computes; None for any other op."""
    if TRANSFORM not in op.attributes:
        return None
    return read_transform(op.attributes[TRANSFORM], op.operands[0].type, op.operands[len(op.operands) - 1].type)


def read_transform(mark: ir.Attribute, source: ir.Type, target: ir.Type) -> Transform:
    """What a mark says of an op from tensors or buffers of one type to another."""
    told = ir.DictAttr(mark)
    n, sign = (ir.IntegerAttr(told[key]).value for key in ("n", "sign"))
    kinds = [ir.ShapedType(kind) for kind in (source, target)]
    widths = [kind.get_dim_size(kind.rank - 1) for kind in kinds]
    scale = ir.FloatAttr(told["scale"]).value
    if kinds[0].rank == 3:
        return Transform(n, sign, scale, widths[0] // 2, True, True)
    return Transform(n, sign, scale, None, widths[0] != n, widths[1] != n)
