"""Complex numbers as pairs of real ones, so that nothing behind the frontend knows of them.

While torch decomposes a program, each op on complex tensors becomes ops on their real and imaginary parts (`on_parts`):
its result is `complex(re, im)`, which the next op takes apart again. What is left of complex tensors in the graph then
are pairs that lie side by side in memory, at the program's borders (`pairs`).
"""

from __future__ import annotations

from pipeline.frontend.complex_numbers import (
    arithmetic,
    casts,
    comparisons,
    fourier,
    functions,
    movement,
    products,
    reductions,
    short_time,
)
from pipeline.frontend.complex_numbers.pairs import complex_as_pairs, pairs_of
from pipeline.frontend.complex_numbers.table import on_parts

__all__ = [
    "arithmetic",
    "casts",
    "comparisons",
    "complex_as_pairs",
    "fourier",
    "functions",
    "movement",
    "on_parts",
    "pairs_of",
    "products",
    "reductions",
    "short_time",
]
