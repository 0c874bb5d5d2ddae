"""What a function of a module is: a kernel of some kind, or not one."""

from __future__ import annotations

from pipeline.ir.attributes import KERNEL
from pipeline.mlir import ir

#: The kind of a kernel that is a whole loop, with calls of other kernels in it.
LOOP = "loop"


def kernel_kind(function: ir.Operation) -> str | None:
    """The kind of a kernel: `matmul`, `elementwise`, ...; None for other functions."""
    return ir.StringAttr(function.attributes[KERNEL]).value if KERNEL in function.attributes else None


def has_control_flow(function: ir.Operation) -> bool:
    """Whether a function calls kernels in branches and loops: it is no kernel, or one that is a loop."""
    return kernel_kind(function) in (None, LOOP)
