"""Types and math functions that a target lacks, replaced by those that it has: 16-bit floats, exp, erf, tanh.

Runs on vectors and scalars of any level; what it leaves is arith alone.
"""
