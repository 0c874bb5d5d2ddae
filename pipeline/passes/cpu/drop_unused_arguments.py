"""drop-unused-arguments: what kernels are given and do not read, in LLVM dialect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import CHUNK, NUMBERED, SHARED, TAKEN
from pipeline.ir.rewriting import before, copy_attributes, is_unused
from pipeline.mlir import callee, ir, symbol_name, walk
from pipeline.passmanager.base import Pass

#: What a function that runs a chunk of a loop is always given: where the chunk begins and ends.
_OF_CHUNKS = 2

#: What it is given last if its threads are numbered: how many there may be, and which one it is.
_OF_NUMBERED = 2


@dataclass(frozen=True)
class DropUnusedArguments(Pass):
    """Drop the arguments of functions that their bodies do not read, at all calls.

    A buffer comes as a pointer, an offset, sizes and strides, of which most are constants where its type says them.
    Functions that nothing inside of the module calls are called from outside, and stay as they are. A kernel that is
    shared is told which arguments are left, `pipeline.taken`; where its code is not in the module, that says which go.
    """

    name: ClassVar[str] = "drop-unused-arguments"

    def run(self, op: ir.Operation) -> None:
        """Drops them in a whole module, and then what was only handed on to those."""
        functions = {symbol_name(function): function for function in walk_functions(op)}
        calls: dict[str, list[ir.Operation]] = defaultdict(list)
        for call in walk(op, "llvm.call"):
            if "callee" in call.attributes:
                calls[callee(call)].append(call)
        for name, function in functions.items():
            if TAKEN in function.attributes and not function.regions[0].blocks and calls[name]:
                calls[name] = _without_untaken(function, calls[name])
        waiting = [name for name, function in functions.items() if name in calls and function.regions[0].blocks]
        while waiting:
            name = waiting.pop()
            function = functions[name]
            unread = _unread(function)
            if not unread:
                continue
            self.passed(function, f"{len(unread)} of {len(function.regions[0].blocks[0].arguments)} arguments")
            _drop_arguments(function, unread)
            calls[name] = [_without(call, unread) for call in calls[name]]
            waiting += [caller for call in calls[name] if (caller := symbol_name(call.parent)) in calls]


def walk_functions(module: ir.Operation) -> list[ir.Operation]:
    """The functions of a module in LLVM dialect."""
    ops = [op.operation for op in module.regions[0].blocks[0].operations]
    return [op for op in ops if op.name == "llvm.func"]


def _unread(function: ir.Operation) -> list[int]:
    """The numbers of the arguments that may go."""
    arguments = list(function.regions[0].blocks[0].arguments)
    first = _OF_CHUNKS if CHUNK in function.attributes else 0
    end = len(arguments) - (_OF_NUMBERED if NUMBERED in function.attributes else 0)
    return [number for number in range(first, end) if is_unused(arguments[number])]


def _without_untaken(function: ir.Operation, calls: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The calls of a function whose code is elsewhere, which are given what that takes, and no more."""
    taken = _taken(function)
    unread = [number for number in range(len(calls[0].operands)) if number not in taken]
    left = [_without(call, unread) for call in calls]
    _set_parameters(function, [operand.type for operand in left[0].operands], unread)
    return left


def _taken(function: ir.Operation) -> list[int]:
    return list(ir.DenseI64ArrayAttr(function.attributes[TAKEN]))


def _drop_arguments(function: ir.Operation, numbers: Sequence[int]) -> None:
    block = function.regions[0].blocks[0]
    if SHARED in function.attributes:
        count = len(block.arguments)
        originals = _taken(function) if TAKEN in function.attributes else list(range(count))
        left = [originals[number] for number in range(count) if number not in numbers]
        function.attributes[TAKEN] = ir.DenseI64ArrayAttr.get(left, function.context)
    for number in reversed(numbers):
        block.erase_argument(number)
    _set_parameters(function, [argument.type for argument in block.arguments], numbers)


def _set_parameters(function: ir.Operation, kinds: Sequence[ir.Type], dropped: Sequence[int]) -> None:
    """Makes `kinds` the types of the function's parameters, of which some have been dropped."""
    result = str(ir.TypeAttr(function.attributes["function_type"]).value).removeprefix("!llvm.func<").partition(" (")[0]
    taken = ", ".join(map(str, kinds))
    function.attributes["function_type"] = ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<{result} ({taken})>"))
    if "arg_attrs" in function.attributes:
        kept = [entry for number, entry in enumerate(function.attributes["arg_attrs"]) if number not in dropped]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)


def _without(call: ir.Operation, numbers: Sequence[int]) -> ir.Operation:
    operands = [operand for number, operand in enumerate(call.operands) if number not in numbers]
    sizes = ir.DenseI32ArrayAttr.get([len(operands), 0])
    with before(call):
        kinds = [result.type for result in call.results]
        new = ir.Operation.create("llvm.call", kinds, operands, {"operandSegmentSizes": sizes})
    copy_attributes(call, new)
    for old, value in zip(call.results, new.results, strict=True):
        old.replace_all_uses_with(value)
    call.erase()
    return new
