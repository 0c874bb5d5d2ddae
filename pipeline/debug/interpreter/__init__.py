"""Owns the reference: an interpreter of IR on tensors, in NumPy, with no pass of ours and none of MLIR's in between.

What it takes is what all passes before bufferization take and leave: linalg with named ops or generic ones, tensor,
arith, math, scf, groups and kernels. One file interprets the ops of a kind; `handlers` is the table that they fill.
"""

from pipeline.debug.interpreter import (  # noqa: F401  # each enters its ops into the table
    control_flow,
    conversions,
    floats,
    integers,
    memory,
    scans,
    structured,
    tensors,
)
from pipeline.debug.interpreter.frame import FailedCheck, Interpretation, UnknownOp

__all__ = ["FailedCheck", "Interpretation", "UnknownOp"]
