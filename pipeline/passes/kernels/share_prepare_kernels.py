"""share-prepare-kernels: kernels of @prepare that differ in sizes alone become one that takes any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import CALLS, CUSTOM, KERNEL, SCHEDULE
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import calls_of, func, ir, symbol_name, tensor, walk
from pipeline.passes.kernels.sized_kernel import SizedKernel
from pipeline.passmanager.base import Pass

#: What is on kernels that are called as they are.
_OWN = (CALLS, CUSTOM, SCHEDULE)


@dataclass(frozen=True)
class SharePrepareKernels(Pass):
    """Let kernels of @prepare that compute the same of tensors of other sizes be one, of symbolic sizes.

    @prepare runs once, when weights are loaded: its kernels take longer to compile than to run, and each layer of a
    network has its own sizes. Only the sizes in which kernels differ become symbolic. Kernels of @main keep theirs.
    """

    name: ClassVar[str] = "share-prepare-kernels"

    def run(self, op: ir.Operation) -> None:
        """Makes kernels of a module one where they are equal but for sizes."""
        calls = calls_of(op)
        alike: dict[tuple[str, ...], list[SizedKernel]] = {}
        for function in walk(op, "func.func"):
            if not _is_for_weights(function, calls.get(symbol_name(function), [])):
                continue
            kernel = SizedKernel(function)
            if kernel.is_readable:
                alike.setdefault(kernel.key, []).append(kernel)
        with op.location:
            for first, *others in alike.values():
                if others:
                    self._share(first, others, calls)

    def _share(self, first: SizedKernel, others: Sequence[SizedKernel], calls: dict[str, list[ir.Operation]]) -> None:
        of_each = list(zip(first.sizes, *(kernel.sizes for kernel in others), strict=True))
        self.passed(first.function, f"is the kernel for weights of {len(others) + 1} shapes")
        first.forget_sizes([number for number, sizes in enumerate(of_each) if len(set(sizes)) > 1])
        for kernel in (first, *others):
            for call in calls[symbol_name(kernel.function)]:
                _redirect(call, first.function)
        for kernel in others:
            kernel.function.erase()


def _is_for_weights(function: ir.Operation, calls: Sequence[ir.Operation]) -> bool:
    """Whether a function is a kernel of its own that only @prepare calls."""
    attributes = function.attributes
    is_own = (
        KERNEL in attributes and not any(key in attributes for key in _OWN) and len(function.regions[0].blocks) == 1
    )
    return is_own and bool(calls) and all(_caller(call) == "prepare" for call in calls)


def _caller(call: ir.Operation) -> str:
    parent = call.parent.operation
    while parent.name != "func.func":
        parent = parent.parent.operation
    return symbol_name(parent)


def _redirect(call: ir.Operation, kernel: ir.Operation) -> None:
    """call @other(%a : tensor<8xf32>)   ->   call @kernel(cast %a : tensor<?xf32>), its results cast back"""
    kind = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    with before(call):
        operands = [_cast(value, expected) for value, expected in zip(call.operands, kind.inputs, strict=True)]
        made = func.CallOp(kind.results, ir.FlatSymbolRefAttr.get(symbol_name(kernel)), operands).operation
        for name, attribute in call.attributes.items():
            if name != "callee":
                made.attributes[name] = attribute
        results = [_cast(new, old.type) for new, old in zip(made.results, call.results, strict=True)]
    replace(call, results)


def _cast(value: ir.Value, kind: ir.Type) -> ir.Value:
    return value if value.type == kind else tensor.CastOp(kind, value).result
