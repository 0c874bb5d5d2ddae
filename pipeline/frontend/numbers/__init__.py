"""Numbers that are known only as the program runs: sizes, what is read from tensors, and what is computed from them.

Whole numbers that are added, subtracted, multiplied and divided stay what they are, since sizes are made of them. All
other numbers are tensors of no dimensions (int64, float64, bool), computed by tensor ops; `scalarize-unit-tensors`
makes numbers in registers of them.
"""

from pipeline.frontend.numbers.checks import lower_assertions
from pipeline.frontend.numbers.lowering import lower_numbers
from pipeline.frontend.numbers.selects import check_numbers_that_select

__all__ = ["check_numbers_that_select", "lower_assertions", "lower_numbers"]
