"""What @prepare computes, told by digests: two programs of the same weights see by them what they both prepare.

A digest is of what lies in memory. So views of a tensor have that of the tensor, and a kernel that moves elements goes
by where it takes each from; of other kernels it is their text, without their names.
"""

from __future__ import annotations

import hashlib

from pipeline.ir.attributes import MOVE, ORIGINS, WEIGHT
from pipeline.ir.reshapes import RESHAPES_AND_CASTS
from pipeline.mlir import called_function, callee, function, ir, symbol_name, terminator, walk
from pipeline.runtime.interface.code import PreparedRecipe
from pipeline.targets.common.module_summary import entry_names


def recipes_of(module: ir.Module) -> tuple[PreparedRecipe, ...]:
    """The recipes of the results of @prepare, whose kernels still take tensors."""
    if "prepare" not in entry_names(module):
        return ()
    prepare = function(module, "prepare")
    digests = _Digests(prepare)
    return tuple(digests.recipe(value) for value in terminator(prepare.regions[0].blocks[0]).operands)


class _Digests:
    """The digests of the values of @prepare; that of a value which cannot be told is None."""

    def __init__(self, prepare: ir.Operation):
        self._known: dict[ir.Value, tuple[str | None, frozenset[str]]] = {}
        self._kernels: dict[str, str | None] = {}
        block = prepare.regions[0].blocks[0]
        marks = ir.ArrayAttr(prepare.attributes["arg_attrs"]) if len(block.arguments) else ()
        for argument, mark in zip(block.arguments, marks, strict=True):
            name = ir.StringAttr(mark[WEIGHT]).value
            self._known[argument] = (_digest("weight", name), frozenset([name]))
        for op in block.operations:
            self._learn(op.operation)

    def recipe(self, value: ir.Value) -> PreparedRecipe:
        """What a value is."""
        digest, weights = self._known[value]
        return PreparedRecipe(digest or "", tuple(sorted(weights)))

    def _learn(self, op: ir.Operation) -> None:
        read = [self._known[operand] for operand in op.operands]
        weights = frozenset().union(*(weights for _, weights in read))
        for number, result in enumerate(op.results):
            self._known[result] = (self._digest(op, number, [digest for digest, _ in read]), weights)

    def _digest(self, op: ir.Operation, number: int, read: list[str | None]) -> str | None:
        known = [digest for digest in read if digest is not None]
        if len(known) < len(read) or any(len(region.blocks) for region in op.regions):
            return None
        if op.name in RESHAPES_AND_CASTS:
            return known[0]
        if op.name == "tensor.empty":
            return _digest("empty")
        if op.name != "func.call":
            attributes = sorted(f"{name} = {op.attributes[name]}" for name in op.attributes if name != ORIGINS)
            return _digest(op.name, str(op.results[number].type), *attributes, *known)
        kernel = self._kernel(op)
        return None if kernel is None else _digest(kernel, str(number), *known)

    def _kernel(self, call: ir.Operation) -> str | None:
        """What a kernel does; None where that is not in its text."""
        name = callee(call)
        if name not in self._kernels:
            kernel = called_function(call)
            self._kernels[name] = _text(kernel)
        return self._kernels[name]


def _text(kernel: ir.Operation) -> str | None:
    if MOVE in kernel.attributes:
        return ir.StringAttr(kernel.attributes[MOVE]).value
    if not len(kernel.regions[0].blocks) or walk(kernel, "func.call"):
        return None
    text = kernel.get_asm(use_local_scope=True, enable_debug_info=False)
    return text.replace(f"@{symbol_name(kernel)}(", "@(", 1)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
