"""outline-loops: a loop of small steps becomes one kernel, with all the kernels that it calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.iter_args import Carry, carries_of
from pipeline.analysis.op_naming import label_of
from pipeline.ir.attributes import CALLS, KERNEL, OPS, ORIGINS, WORDS
from pipeline.ir.kernels import LOOP
from pipeline.ir.locations import origins_attribute, origins_of
from pipeline.ir.rewriting import before, is_unused, unused_name
from pipeline.mlir import (
    callee,
    captured_values,
    defining_op,
    func,
    ir,
    linalg,
    remap_operands,
    symbol_name,
    tensor,
    walk,
)
from pipeline.passes.kernels.loop_profitability import LOOPS, LoopLimits, is_in_place, why_no_kernel
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class OutlineLoops(Pass):
    """Turn each loop of calls of small kernels into one call of a kernel that has the whole loop.

    The kernel takes what the loop reads and then the tensors that it writes, like any other; what the loop updates in
    place is one that it reads. Taken are the outermost loops whose steps are small enough: threads share the work of a
    kernel, so a step that is worth their while stays a kernel of its own. `inline-kernels` puts the steps in the place
    of their calls once they have become loops over buffers.
    """

    name: ClassVar[str] = "outline-loops"

    calls: int = field(default=16, metadata={"help": "how many calls of kernels a loop may have"})
    work: int = field(default=1 << 18, metadata={"help": "how many operations one of its kernels may take"})
    scratch: int = field(default=1 << 16, metadata={"help": "how many bytes a loop may keep between its kernels"})

    def run(self, op: ir.Operation) -> None:
        """Outlines the loops of the functions of a module that are no kernels."""
        functions = walk(op, "func.func")
        named = {symbol_name(function): function for function in functions if KERNEL in function.attributes}
        kernels = {name: kernel for name, kernel in named.items() if CALLS not in kernel.attributes}
        for function in functions:
            if KERNEL not in function.attributes:
                for block in function.regions[0].blocks:
                    self._visit(block, kernels)

    def _visit(self, block: ir.Block, kernels: dict[str, ir.Operation]) -> None:
        """Outlines the loops of a block, and of what is in it."""
        for op in [op.operation for op in block.operations]:
            if op.name in LOOPS:
                reason = why_no_kernel(op, kernels, LoopLimits(self.calls, self.work, self.scratch))
                if reason is None:
                    self._outline(op, kernels)
                    continue
                self.missed(op, f"the loop is no kernel: {reason}")
            if op.name in (*LOOPS, "scf.if"):
                for region in op.regions:
                    for inner in region.blocks:
                        self._visit(inner, kernels)

    def _outline(self, loop: ir.Operation, kernels: dict[str, ir.Operation]) -> None:
        calls = walk(loop, "func.call")
        words = [word for call in calls for word in _strings(kernels[callee(call)], WORDS)]
        module = next(iter(kernels.values())).parent.operation
        name = unused_name(module, f"loop_{label_of(words)}")
        self.passed(loop, f"one kernel, {name}, for {len(calls)} calls of kernels in each round")
        kernel = _LoopKernel(loop)
        made = kernel.create(name, module)
        made.attributes[KERNEL] = ir.StringAttr.get(LOOP)
        ops = [op for call in calls for op in _strings(kernels[callee(call)], OPS)]
        for key, values in ((OPS, ops), (WORDS, words)):
            made.attributes[key] = ir.ArrayAttr.get([ir.StringAttr.get(value) for value in values])
        known = [one for call in calls if ORIGINS in call.attributes for one in origins_of(call.attributes[ORIGINS])]
        kernel.call(name, origins_attribute(dict.fromkeys(known)))


def _strings(kernel: ir.Operation, key: str) -> list[str]:
    return (
        [ir.StringAttr(string).value for string in ir.ArrayAttr(kernel.attributes[key])]
        if key in kernel.attributes
        else []
    )


class _LoopKernel:
    """A loop on its way into a function: what that takes, and what it returns.

    Attributes:
        updated: the carries of tensors that are updated in place; each has an argument of its own.
        returned: the results of the loop that the function returns.
        computed: those among them that it computes into a tensor that it is given.
    """

    def __init__(self, loop: ir.Operation):
        self._loop = loop
        carries = {carry.result: carry for carry in carries_of(loop) or []}
        tensors = [carry for carry in carries.values() if isinstance(carry.kind, ir.RankedTensorType)]
        for carry in tensors:
            if carry.is_kept:
                carry.result.replace_all_uses_with(carry.initial)
        self.updated = [carry for carry in tensors if not carry.is_kept and is_in_place(carry)]
        self.returned = [result for result in loop.results if not is_unused(result)]
        in_place = [carry.result for carry in self.updated]
        self.computed = [
            result
            for result in self.returned
            if isinstance(result.type, ir.RankedTensorType) and result not in in_place
        ]
        handed = [loop.operands[_operand(loop, carry)] for carry in self.updated]
        read = [value for value in captured_values(loop) if _is_read(value, loop, self.updated)]
        self._constants = [value for value in read if _is_constant(value)]
        self._read = [value for value in read if value not in self._constants]
        self._inputs = [*self._read, *handed]

    def create(self, name: str, module: ir.Operation) -> ir.Operation:
        """The function, with a copy of the loop in it."""
        outputs = [result.type for result in self.computed]
        kinds = [value.type for value in self._inputs] + outputs
        signature = ir.FunctionType.get(kinds, [result.type for result in self.returned])
        with self._loop.location, ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
            made = func.FuncOp(name, signature, visibility="private").operation
            block = ir.Block.create_at_start(made.regions[0], kinds)
        arguments = list(block.arguments)
        known: dict[ir.Value, ir.Value] = dict(zip(self._read, arguments, strict=False))
        with self._loop.location, ir.InsertionPoint(block):
            for value in self._constants:
                producer = defining_op(value)
                assert producer is not None
                known[value] = producer.clone().results[0]
            copy = self._loop.clone()
            remap_operands(copy, known)
            for carry, argument in zip(self.updated, arguments[len(self._read) :], strict=False):
                copy.operands[_operand(copy, carry)] = argument
            destinations = iter(arguments[len(self._inputs) :])
            values = []
            for result in self.returned:
                value = copy.results[result.result_number]
                values.append(linalg.copy(value, outs=[next(destinations)]) if result in self.computed else value)
            func.ReturnOp(values)
        return made

    def call(self, name: str, origins: ir.Attribute) -> None:
        """Puts a call of the function in the place of the loop."""
        with before(self._loop):
            empties = []
            for result in self.computed:
                kind = ir.RankedTensorType(result.type)
                empties.append(tensor.EmptyOp(list(kind.shape), kind.element_type).result)
            kinds = [result.type for result in self.returned]
            call = func.CallOp(kinds, ir.FlatSymbolRefAttr.get(name), [*self._inputs, *empties])
            call.attributes[ORIGINS] = origins
        for old, new in zip(self.returned, call.results, strict=True):
            old.replace_all_uses_with(new)
        self._loop.erase()


def _operand(loop: ir.Operation, carry: Carry) -> int:
    """The number of the operand that is a carry's initial value."""
    return carry.number + (3 if loop.name == "scf.for" else 0)


def _is_read(value: ir.Value, loop: ir.Operation, updated: list[Carry]) -> bool:
    """Whether the loop needs a value for more than to update it in place."""
    numbers = {_operand(loop, carry) for carry in updated}
    others = (operand for number, operand in enumerate(loop.operands) if number not in numbers)
    return any(value == operand for operand in others) or any(
        use.owner.operation != loop for use in _uses_inside(value, loop)
    )


def _uses_inside(value: ir.Value, loop: ir.Operation) -> Iterator[ir.OpOperand]:
    for use in value.uses:
        op = use.owner.operation
        while op != loop and op.name != "func.func":
            op = op.parent.operation
        if op == loop:
            yield use


def _is_constant(value: ir.Value) -> bool:
    producer = defining_op(value)
    return producer is not None and producer.name == "arith.constant" and not isinstance(value.type, ir.MemRefType)
