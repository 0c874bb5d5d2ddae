"""inline-kernels: a kernel that is a whole loop has its steps in the place of calls of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.kernels import LOOP, kernel_kind
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import callee, clone, ir, symbol_name, walk
from pipeline.passes.bufferization.stack_buffers import is_local
from pipeline.passmanager.base import Pass

_SCRATCH = "memref.alloca"


@dataclass(frozen=True)
class InlineKernels(Pass):
    """Put the bodies of kernels in the place of their calls in kernels that are loops.

    Their scratch on the stack is in front of the loop then, so that the stack does not grow from round to round; a
    kernel whose scratch cannot be there stays a call. Kernels that nothing calls any more go. Runs on buffers, when
    kernels have become loops.
    """

    name: ClassVar[str] = "inline-kernels"

    def run(self, op: ir.Operation) -> None:
        """Inlines calls in the loop kernels of a module."""
        functions = {symbol_name(function): function for function in walk(op, "func.func")}
        inlined = set()
        for kernel in functions.values():
            if kernel_kind(kernel) == LOOP:
                for call in walk(kernel, "func.call"):
                    name = callee(call)
                    if self._inline(call, functions[name], kernel.regions[0].blocks[0]):
                        inlined.add(name)
        if not inlined:
            return
        called = {callee(call) for call in walk(op, "func.call")}
        for name in inlined - called:
            functions[name].erase()

    def _inline(self, call: ir.Operation, kernel: ir.Operation, entry: ir.Block) -> bool:
        """call @k(%a) -> the body of @k with %a for its argument."""
        if kernel_kind(kernel) is None or len(kernel.regions[0].blocks) != 1:
            return False
        if not all(not list(scratch.operands) and is_local(scratch.results[0]) for scratch in walk(kernel, _SCRATCH)):
            self.missed(call, "stays a call: its scratch has no known size, or is handed on")
            return False
        if walk(kernel, "func.call"):
            self.missed(call, "stays a call: threads share its loops")
            return False
        self.passed(call, "is a part of the loop's kernel")
        block = kernel.regions[0].blocks[0]
        *ops, terminator = [op.operation for op in block.operations]
        known: dict[ir.Value, ir.Value] = dict(zip(block.arguments, call.operands, strict=True))
        with before(call):
            for op in ops:
                copy = clone(op, known)
                _hoist(copy, entry)
        replace(call, [known[value] for value in terminator.operands])
        return True


def _hoist(copy: ir.Operation, entry: ir.Block) -> None:
    """Moves the scratch in an op, or the op if that is its scratch, to the start of the kernel."""
    first = entry.operations[0].operation
    for scratch in [copy] if copy.name == _SCRATCH else walk(copy, _SCRATCH):
        scratch.move_before(first)
