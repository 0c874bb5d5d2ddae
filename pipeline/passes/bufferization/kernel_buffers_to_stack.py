"""kernel-buffers-to-stack: small buffers of kernels lie on the stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.kernels import has_control_flow
from pipeline.mlir import ir, run_pipeline
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class KernelBuffersToStack(Pass):
    """Put what a kernel without control flow keeps between its ops on its stack, if that is small and of known size.

    %row = memref.alloc() : memref<64xf32>  ->  %row = memref.alloca() : memref<64xf32>

    With MLIR's passes buffer-loop-hoisting and promote-buffers-to-stack, in kernels that call no others: a function
    that calls kernels in loops might take the buffer again and again, which leaves no stack.
    """

    name: ClassVar[str] = "kernel-buffers-to-stack"
    anchor: ClassVar[str] = "func.func"

    most_bytes: int = field(default=1 << 18, metadata={"help": "the largest buffer that a stack holds"})

    def run(self, op: ir.Operation) -> None:
        """Does so in one function."""
        if has_control_flow(op):
            return
        size = f"max-alloc-size-in-bytes={self.most_bytes} max-rank-of-allocated-memref=1"
        run_pipeline(op, f"func.func(buffer-loop-hoisting, promote-buffers-to-stack{{{size}}})")
