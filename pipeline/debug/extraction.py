"""Parts of @main as programs of their own: what a part reads of the rest becomes arguments, with their values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.debug.interpreter.number_types import own_dtype
from pipeline.debug.tracing import Call, value_of
from pipeline.ir.attributes import ARGUMENT, IN_PLACE, PREPARED, UPDATED
from pipeline.ir.rewriting import inline_block
from pipeline.mlir import (
    called_function,
    callee,
    captured_values,
    defining_op,
    function,
    ir,
    ops_of,
    symbol_name,
    terminator,
    walk,
)
from pipeline.targets.common.module_summary import sources_of

_CHEAP = ("arith.constant", "tensor.empty")


@dataclass(frozen=True)
class Part:
    """A program, and what it is run on.

    Attributes:
        kernels: the names of the kernels and groups that it was inside of, outermost first.
    """

    module: ir.Module
    call: Call
    kernels: tuple[str, ...] = ()

    @property
    def ops(self) -> int:
        """How many ops @main has, without constants and the return."""
        return len(ops_to_keep(self.module))

    def positional(self) -> tuple[np.ndarray | int, ...]:
        """What @main is given by its caller, in order, in the dtypes of its arguments; not what @prepare computes."""
        main = function(self.module, "main")
        kinds = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs
        given = [pair for pair in zip(sources_of(main), kinds, strict=True) if pair[0].kind != "prepared"]
        return tuple(_given(value_of(source, self.call, ()), kind) for source, kind in given)


def _given(value: Any, kind: ir.Type) -> np.ndarray | int:
    return np.asarray(value).astype(own_dtype(kind)) if isinstance(kind, ir.RankedTensorType) else int(value)


def ops_to_keep(module: ir.Module) -> list[int]:
    """The numbers of the ops of @main that compute something."""
    ops = [op.operation for op in _body(module).operations]
    return [number for number, op in enumerate(ops[:-1]) if not _is_cheap(op)]


def _is_cheap(op: ir.Operation) -> bool:
    return op.name in _CHEAP and not len(op.operands)


def extract(whole: Part, kept: Collection[int], values: Mapping[ir.Value, Any]) -> Part:
    """The ops of @main with the numbers `kept`, alone.

    They give what other ops or the caller read of them, else all that they compute.

    Args:
        values: of all values of @main in `whole`, as an interpretation left them.
    """
    module = _copy(whole.module)
    main, original = function(module, "main"), function(whole.module, "main")
    block, before = main.regions[0].blocks[0], original.regions[0].blocks[0]
    ops = [op.operation for op in block.operations]
    numbers = set(kept)
    inside = [op for number, op in enumerate(ops[:-1]) if number in numbers and not _is_cheap(op)]
    given = {new: values[old] for new, old in _pairs(block, before) if old in values}
    results = _results(inside)
    with module.context:
        call = _replace_outside(main, inside, given, whole.call)
        _return(main, results)
    for op in reversed([op for number, op in enumerate(ops[:-1]) if number not in numbers or _is_cheap(op)]):
        if all(not list(result.uses) for result in op.results):
            op.erase()
    with module.context:
        _drop_unused_arguments(main)
        _drop_unused_functions(module)
    return Part(module, call, whole.kernels)


def unwrapped(whole: Part, values: Mapping[ir.Value, Any]) -> Part | None:
    """The program with what is inside of its one op in the place of that: a group's ops, a kernel's, a branch's.

    None if it has several ops, or one that has nothing inside which runs once.
    """
    numbers = ops_to_keep(whole.module)
    if len(numbers) != 1:
        return None
    module = _copy(whole.module)
    ops = [[op.operation for op in _body(one).operations] for one in (whole.module, module)]
    original, op = (of_module[numbers[0]] for of_module in ops)
    name: tuple[str, ...] = ()
    if op.name == "fusion.group":
        name = (ir.StringAttr(op.attributes["label"]).value,)
        block, arguments = op.regions[0].blocks[0], list(op.operands)
    elif op.name == "func.call":
        name = (callee(op),)
        block, arguments = called_function(op).regions[0].blocks[0], list(op.operands)
    elif op.name == "scf.if" and len(op.results):
        block, arguments = op.regions[0 if values[original.operands[0]] else 1].blocks[0], []
    else:
        return None
    for result, value in zip(op.results, inline_block(block, arguments, op), strict=True):
        result.replace_all_uses_with(value)
    op.erase()
    with module.context:
        _drop_unused_arguments(function(module, "main"))
        _drop_unused_functions(module)
    return Part(module, whole.call, (*whole.kernels, *name))


def _body(module: ir.Module) -> ir.Block:
    return function(module, "main").regions[0].blocks[0]


def _copy(module: ir.Module) -> ir.Module:
    with module.context:
        return ir.Module.parse(module.operation.get_asm(enable_debug_info=True), module.context)


def _pairs(block: ir.Block, before: ir.Block) -> list[tuple[ir.Value, ir.Value]]:
    """The values of a block and of that which it is a copy of, one by one."""
    pairs = list(zip(block.arguments, before.arguments, strict=True))
    for op, other in zip(block.operations, before.operations, strict=True):
        pairs += zip(op.operation.results, other.operation.results, strict=True)
    return pairs


def _results(inside: Collection[ir.Operation]) -> list[ir.Value]:
    """What is read of some ops by others."""
    every = [result for op in inside for result in op.results]
    within = set(inside)
    read = [value for value in every if any(_in_block(use.owner.operation, value) not in within for use in value.uses)]
    return read or every


def _in_block(op: ir.Operation, value: ir.Value) -> ir.Operation:
    """The op in the block that defines `value` which `op` is, or is inside of."""
    home = defining_op(value)
    assert home is not None
    while op.parent is not None and op.parent.operation != home.parent.operation:
        op = op.parent.operation
    return op


def _replace_outside(
    main: ir.Operation, inside: Collection[ir.Operation], given: Mapping[ir.Value, Any], call: Call
) -> Call:
    """Makes arguments of what some ops read of others; the call with their values."""
    block, within = main.regions[0].blocks[0], set(inside)
    marks = [ir.DictAttr(mark) for mark in main.attributes["arg_attrs"]] if "arg_attrs" in main.attributes else []
    arguments = dict(call.arguments)
    number = max([*arguments, len(block.arguments)]) + 1
    context = main.context
    marks = [_kept_marks(mark, index) for index, mark in enumerate(marks)] or [
        _mark(index, context) for index in range(len(block.arguments))
    ]
    read = dict.fromkeys(value for op in inside for value in captured_values(op))
    for value in read:
        home = defining_op(value)
        if home is None or home in within or _is_cheap(home):
            continue
        with main.location:
            argument = block.add_argument(value.type, home.location)
        marks.append(_mark(number, context))
        arguments[number] = given[value]
        for op in inside:
            _replace_in(op, value, argument)
        number += 1
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks, context)
    return Call(arguments, call.weights, call.seed)


def _kept_marks(mark: ir.DictAttr, index: int) -> ir.DictAttr:
    """The marks of an argument without what refers to results, which change."""
    kept = {entry.name: entry.attr for entry in mark if entry.name not in (UPDATED, IN_PLACE)}
    return ir.DictAttr.get(kept, mark.context) if kept else _mark(index, mark.context)


def _mark(number: int, context: ir.Context) -> ir.DictAttr:
    i64 = ir.IntegerType.get_signless(64, context)
    return ir.DictAttr.get({ARGUMENT: ir.IntegerAttr.get(i64, number)}, context)


def _replace_in(op: ir.Operation, value: ir.Value, other: ir.Value) -> None:
    for inner in ops_of(op):
        for number, operand in enumerate(inner.operands):
            if operand == value:
                inner.operands[number] = other


def _return(main: ir.Operation, results: list[ir.Value]) -> None:
    block = main.regions[0].blocks[0]
    end = terminator(block)
    with main.location, ir.InsertionPoint(end):
        ir.Operation.create("func.return", operands=results)
    end.erase()
    if "res_attrs" in main.attributes:
        del main.attributes["res_attrs"]
    _set_type(main)


def _set_type(main: ir.Operation) -> None:
    block = main.regions[0].blocks[0]
    kind = ir.FunctionType.get(
        [argument.type for argument in block.arguments],
        [value.type for value in terminator(block).operands],
        main.context,
    )
    main.attributes["function_type"] = ir.TypeAttr.get(kind)


def _drop_unused_arguments(main: ir.Operation) -> None:
    block = main.regions[0].blocks[0]
    marks = list(ir.ArrayAttr(main.attributes["arg_attrs"]))
    for number in reversed(range(len(block.arguments))):
        if not list(block.arguments[number].uses):
            block.erase_argument(number)
            del marks[number]
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks, main.context)
    _set_type(main)


def _drop_unused_functions(module: ir.Module) -> None:
    """Kernels that nobody calls go, and @prepare where @main takes nothing of it."""
    main = function(module, "main")
    if PREPARED not in str(main.attributes["arg_attrs"]):
        for op in [op.operation for op in module.body.operations]:
            if op.name == "func.func" and symbol_name(op) == "prepare":
                op.erase()
    called = {callee(call) for call in walk(module, "func.call")}
    for op in [op.operation for op in module.body.operations]:
        if op.name == "func.func" and symbol_name(op) not in {"main", "prepare", *called}:
            op.erase()


def without_prepare(whole: Part, prepared: list[Any]) -> Part:
    """The program with what @prepare computes as arguments."""
    module = _copy(whole.module)
    names = [symbol_name(op.operation) for op in module.body.operations if op.operation.name == "func.func"]
    if "prepare" not in names:
        return Part(module, whole.call)
    main = function(module, "main")
    arguments = dict(whole.call.arguments)
    marks = []
    first = max([*arguments, len(main.regions[0].blocks[0].arguments)]) + 1
    for mark in map(ir.DictAttr, main.attributes["arg_attrs"]):
        if PREPARED in mark:
            index = ir.IntegerAttr(mark[PREPARED]).value
            arguments[first + index] = prepared[index]
            mark = _mark(first + index, module.context)
        marks.append(mark)
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks, module.context)
    function(module, "prepare").erase()
    _drop_unused_functions(module)
    return Part(module, Call(arguments, whole.call.weights, whole.call.seed))


def prepare_alone(whole: Part) -> Part | None:
    """@prepare as @main; None if the program has none."""
    module = _copy(whole.module)
    functions = {
        symbol_name(op.operation): op.operation for op in module.body.operations if op.operation.name == "func.func"
    }
    if "prepare" not in functions:
        return None
    functions["main"].erase()
    functions["prepare"].attributes["sym_name"] = ir.StringAttr.get("main", module.context)
    _drop_unused_functions(module)
    return Part(module, whole.call)
