"""The lengths of Fourier transforms that are kernels, and the steps by which each is computed."""

from __future__ import annotations

import math
from functools import cache

#: The lengths that fit into registers.
IN_REGISTERS = range(1, 11)

#: The shortest and the longest transform of complex numbers that is a kernel.
_SHORTEST, _LONGEST = 4, 4096

#: Up to so many numbers, rows are transformed side by side: one row would not fill the vectors of its two steps.
_SHORT = 32

#: The vectors that steps are chosen for, and the fewest columns that a step has.
_LANES, _FEWEST_COLUMNS = 16, 4


def is_short(n: int) -> bool:
    """Whether rows of n complex numbers are transformed side by side."""
    return n <= _SHORT


@cache
def in_registers(n: int) -> tuple[int, int] | None:
    """The lengths of the two steps in registers that n numbers take, the longer one first; None if there are none."""
    pairs = [(n // k, k) for k in IN_REGISTERS if n % k == 0 and n // k in IN_REGISTERS and k * k <= n]
    return min(pairs, key=sum, default=None)


@cache
def in_cache(n: int) -> tuple[int, int] | None:
    """The lengths of the two steps on vectors that a row of n numbers takes, the longer one first."""
    pairs = [(n // k, k) for k in range(_FEWEST_COLUMNS, math.isqrt(n) + 1) if n % k == 0]
    return min((pair for pair in pairs if all(map(in_registers, pair))), key=_cost, default=None)


def is_kernel(n: int) -> bool:
    """Whether a transform of n complex numbers is a kernel."""
    return _SHORTEST <= n <= _LONGEST and (in_registers(n) if is_short(n) else in_cache(n)) is not None


def _cost(steps: tuple[int, int]) -> tuple[float, int]:
    """The operations on vectors, and how unlike the steps are; steps fill whole vectors, if need be by overlaps."""
    lanes = min(_LANES, power_of_two(steps[1]))
    operations = sum(
        math.ceil(other / lanes) * n * math.log2(n) for n, other in zip(steps, reversed(steps), strict=True)
    )
    return operations, steps[0] - steps[1]


def power_of_two(n: int) -> int:
    """The largest one that is at most n."""
    return 1 << (n.bit_length() - 1)
