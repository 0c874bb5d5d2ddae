"""outline-kernels: every `fusion.group` becomes a function, equal groups the same one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.concat import INSERT
from pipeline.analysis.op_naming import words_of
from pipeline.dialects.fusion import GROUP
from pipeline.ir.attributes import CALLS, CUSTOM, KERNEL, OPS, ORIGINS, OUTPUTS, SIZES, WORDS
from pipeline.ir.destination_passing import origin
from pipeline.ir.locations import origins, origins_attribute
from pipeline.ir.rewriting import is_unused
from pipeline.mlir import clone, defining_op, func, ir, remap_operands, symbol_name, terminator, walk
from pipeline.passes.fusion.group_builder import INITIAL, own_initial_values
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class OutlineKernels(Pass):
    """Turn each fusion.group into a call of a private function named after its label.

    The function takes the group's operands and then, for each result that the group computes into an empty tensor, that
    tensor: the caller says where results go. Groups with the same body share a function.
    """

    name: ClassVar[str] = "outline-kernels"
    mandatory: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Outlines every group of the module."""
        functions = walk(op, "func.func")
        kernels = _Kernels(op, {symbol_name(function) for function in functions})
        for group in walk(op, GROUP):
            _outline(group, kernels)


@dataclass
class _Kernels:
    """The functions made so far, by body, and the names that are taken."""

    module: ir.Operation
    taken: set[str]
    by_body: dict[str, str] = field(default_factory=dict)
    uses_of_label: dict[str, int] = field(default_factory=dict)

    def share(self, kernel: ir.Operation, label: str) -> str:
        """The name of a function equal to `kernel`: an earlier one (then `kernel` is erased), or its own."""
        body = kernel.get_asm(enable_debug_info=False, use_local_scope=True)  # global scope would walk all the module
        known = self.by_body.get(body)
        if known is not None:
            kernel.erase()
            return known
        name = self._new_name(label)
        kernel.attributes["sym_name"] = ir.StringAttr.get(name, self.module.context)
        self.by_body[body] = name
        return name

    def _new_name(self, label: str) -> str:
        """`label`, with a number after it where the label itself is taken or is one word.

        One word may be a C function's name (exp, powf, div), which code that calls that would then call.
        """
        name = label
        while name in self.taken or "_" not in name:
            count = self.uses_of_label.get(label, 0)
            self.uses_of_label[label] = count + 1
            name = f"{label}_{count}"
        self.taken.add(name)
        return name


def _outline(group: ir.Operation, kernels: _Kernels) -> None:
    label = ir.StringAttr(group.attributes["label"]).value
    block = group.regions[0].blocks[0]
    if CUSTOM in group.attributes:
        _separate_destinations(block)  # passes that ran since it was formed may have made one empty tensor of several
    yielded = list(terminator(block).operands)
    destinations = list(dict.fromkeys(filter(None, map(_destination, yielded))))
    taken = _needed_inputs(group, destinations)
    kernel = _create_kernel(group, taken, destinations, kernels.module)
    name = kernels.share(kernel, label)
    with group.location, ir.InsertionPoint(group):
        outer = dict(zip(block.arguments, group.operands, strict=True))
        empties = [_clone_empty(empty, outer) for empty in destinations]
        call = func.CallOp(
            [result.type for result in group.results],
            ir.FlatSymbolRefAttr.get(name),
            [group.operands[number] for number in taken] + empties,
        )
        call.attributes[ORIGINS] = origins_attribute(origins(_ops(group)))
    for before, after in zip(group.results, call.results, strict=True):
        before.replace_all_uses_with(after)
    group.erase()


def _separate_destinations(block: ir.Block) -> None:
    for op in [op.operation for op in block.operations]:
        with op.location, ir.InsertionPoint(op):
            own_initial_values(op)
    for op in reversed([op.operation for op in block.operations]):
        if op.name in INITIAL and is_unused(op.results[0]):
            op.erase()


def _clone_empty(empty: ir.Operation, outer: dict[ir.Value, ir.Value]) -> ir.Value:
    copy = empty.clone()
    remap_operands(copy, outer)
    return copy.results[0]


def _destination(value: ir.Value) -> ir.Operation | None:
    """The tensor.empty that a yielded value is computed into; None where it updates an input in place."""
    producer = defining_op(origin(value))
    return producer if producer is not None and producer.name == "tensor.empty" else None


def _needed_inputs(group: ir.Operation, destinations: list[ir.Operation]) -> list[int]:
    """The numbers of the operands that the kernel reads: not those that only size its destinations."""
    block = group.regions[0].blocks[0]
    return [
        argument.arg_number
        for argument in block.arguments
        if any(use.owner.operation not in destinations for use in argument.uses)
    ]


def _only_sizes(argument: ir.BlockArgument) -> bool:
    """Whether a group reads an argument only for the sizes of what it keeps between its ops."""
    return all(use.owner.operation.name == "tensor.empty" for use in argument.uses)


def _create_kernel(
    group: ir.Operation, taken: list[int], destinations: list[ir.Operation], module: ir.Operation
) -> ir.Operation:
    block = group.regions[0].blocks[0]
    results = [result.type for result in group.results]
    types = [block.arguments[number].type for number in taken] + [empty.results[0].type for empty in destinations]
    with group.location, ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        kernel = func.FuncOp("kernel", ir.FunctionType.get(types, results), visibility="private").operation
        kernel.attributes[KERNEL] = group.attributes["kind"]
        kernel.attributes[OPS] = _strings(op.name for op in _ops(group))
        kernel.attributes[WORDS] = _strings(_words(group))
        if CUSTOM in group.attributes:
            kernel.attributes[CUSTOM] = group.attributes[CUSTOM]
        if CALLS in group.attributes:
            kernel.attributes[CALLS] = group.attributes[CALLS]
            i64 = ir.IntegerType.get_signless(64)
            kernel.attributes[OUTPUTS] = ir.IntegerAttr.get(i64, len(destinations))
            sizes = [index for index, number in enumerate(taken) if _only_sizes(block.arguments[number])]
            kernel.attributes[SIZES] = ir.ArrayAttr.get([ir.IntegerAttr.get(i64, index) for index in sizes])
        entry = ir.Block.create_at_start(kernel.regions[0], types)
    known = {block.arguments[number]: entry.arguments[index] for index, number in enumerate(taken)}
    known |= {empty.results[0]: entry.arguments[len(taken) + index] for index, empty in enumerate(destinations)}
    with ir.InsertionPoint(entry):
        for op in block.operations:
            op = op.operation
            if op in destinations:
                continue
            if op.name == "fusion.yield":
                with op.location:
                    func.ReturnOp([known[value] for value in op.operands])
                continue
            clone(op, known)
    return kernel


def _words(group: ir.Operation) -> list[str]:
    """What the group computes, in words; initial values count where there is nothing else."""
    ops = _ops(group)
    computing = [
        op for op in ops if op.name != "linalg.fill" and (op.name == INSERT or not op.name.startswith("tensor."))
    ]
    return words_of(computing or ops)


def _strings(words: Iterable[str]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(word) for word in words])


def _ops(group: ir.Operation) -> list[ir.Operation]:
    """What the group computes: not its constants, its empty tensors and its terminator."""
    silent = ("arith.constant", "tensor.empty", "tensor.extract_slice", "fusion.yield")
    return [op.operation for op in group.regions[0].blocks[0].operations if op.operation.name not in silent]
