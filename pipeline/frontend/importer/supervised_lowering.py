"""torch dialect → linalg in a child process: what torch-mlir's passes do in there can be ended, and ends nothing else.

A crash of theirs is an op that cannot be lowered, like any other.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline import supervised
from pipeline.errors import LoweringError, PipelineError, UnsupportedOpError
from pipeline.frontend.importer.harmless_ops import is_harmless
from pipeline.frontend.importer.torch_to_linalg import (
    failing_ops,
    leaf_ops,
    load_dialects,
    lower_to_linalg,
    nodes_behind,
    op_name,
    take_over,
)
from pipeline.frontend.shapes.promises import Promises
from pipeline.mlir import ir, single_threaded, text
from pipeline.remarks import Remark, collect, note, repeat, source_line
from pipeline.supervised import Lost, ResourceLimits

Dump = Callable[[str, "ir.Module | str"], None]


def lower_supervised(module: ir.Module, dump: Dump, promises: Promises) -> tuple[ir.Module, dict[str, int]]:
    """The module in linalg on tensors, and what `lower_to_linalg` returns; the module that is given is used up.

    Raises:
        UnsupportedOpError: ops cannot be lowered, or one took more time or memory than it may, or crashes torch-mlir.
        LoweringError: the whole of them did, and none of them alone.
    """
    take_over(module)
    if is_harmless(module) or not supervised.is_possible():
        return module, lower_to_linalg(module, dump, promises)
    limits = ResourceLimits.of_environment()
    try:
        with single_threaded(module.context):
            bytecode, raised = supervised.run(lambda: _lower(module, promises), limits, lambda told: _hear(told, dump))
        load_dialects(module.context)
        return ir.Module.parse(bytecode, module.context), raised
    except Lost as lost:
        with single_threaded(module.context):
            raise _blamed(module, lost, limits) from None
    except OSError as error:
        note("lowering", "missed", "builtin.module", f"not in a process of its own, which cannot be ended: {error}")
        return module, lower_to_linalg(module, dump, promises)


@dataclass(frozen=True)
class _Stage:
    """The text of a module at a stage, on its way to the parent."""

    name: str
    text: str


def _lower(module: ir.Module, promises: Promises) -> tuple[bytes, dict[str, int]]:
    """In the child: the lowered module as bytecode, and what `lower_to_linalg` returns."""

    def dump(stage: str, at_stage: ir.Module | str) -> None:
        written = at_stage if isinstance(at_stage, str) else text(at_stage.operation, elements=None)
        supervised.tell(_Stage(stage, written))

    with collect() as remarks:
        try:
            raised = lower_to_linalg(module, dump, promises)
        finally:
            supervised.tell(tuple(remarks))
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    return bytecode.getvalue(), raised


def _hear(told: _Stage | tuple[Remark, ...], dump: Dump) -> None:
    if isinstance(told, _Stage):
        dump(told.name, told.text)
        return
    for remark in told:
        repeat(remark)


def _blamed(module: ir.Module, lost: Lost, limits: ResourceLimits) -> PipelineError:
    """The error for a child that was lost: which op does that on its own, in another child."""
    ops = leaf_ops(module.operation)
    numbers = {op: number for number, op in enumerate(ops)}
    begun: list[int] = []

    def each() -> Any:
        return failing_ops(module.operation, lambda op: supervised.tell(numbers[op]))

    try:
        found = supervised.run(each, limits, begun.append)
    except Lost as again:
        if begun:
            op, reason = ops[begun[-1]], f"{again.reason} in {again.doing}"
            return UnsupportedOpError([(op_name(op), source_line(op.location), reason)], nodes_behind(op))
        lost, found = again, None
    if found is not None:
        return found
    return LoweringError(f"the model could not be lowered to linalg: it {lost.reason} in {lost.doing}")
