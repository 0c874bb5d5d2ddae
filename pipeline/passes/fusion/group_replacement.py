"""What a group becomes that a user asked for: a call of something outside, or MLIR that the user's function emits."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.errors import CompileError
from pipeline.fusion_rules.op_facts import OpFacts
from pipeline.fusions import Callback, Emitter, External, Fusion, Intrinsic
from pipeline.ir.attributes import CALLS, CUSTOM
from pipeline.ir.destination_passing import origin
from pipeline.ir.rewriting import empty_like
from pipeline.mlir import defining_op, ir, linalg


def become(group: ir.Operation, fusion: Fusion) -> None:
    """Gives a new group the body, or the mark, of what `fusion` says that it becomes."""
    group.attributes[CUSTOM] = ir.UnitAttr.get()
    if isinstance(fusion.becomes, Emitter):
        _emit(group, fusion, fusion.becomes)
    elif isinstance(fusion.becomes, Intrinsic):
        group.attributes[CALLS] = _mark(fusion.becomes.call, _chosen(group, fusion.becomes))
    elif fusion.becomes is not None:
        group.attributes[CALLS] = _mark(fusion.becomes, [])


def fresh_destinations(op: ir.Operation, unit: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Lets what is called write its results to tensors of their own, where `op` updates a tensor from outside.

    Returns the copies that are to be in the group; sizes that they need are computed in front of it.
    """
    made: list[ir.Operation] = []
    if not op.name.startswith("linalg."):
        return made
    for number in range(len(op.operands) - len(op.results), len(op.operands)):
        value = op.operands[number]
        start = defining_op(origin(value))
        if start is not None and (start.name == "tensor.empty" or start in unit):
            continue
        with op.location, ir.InsertionPoint(op):
            empty = empty_like(value, ir.RankedTensorType(value.type).element_type)
            copy = linalg.copy(value, outs=[empty])
        made.append(copy.owner.operation)
        op.operands[number] = copy
    return made


def _mark(call: External | Callback, numbers: Sequence[int]) -> ir.ArrayAttr:
    name, library = (call.symbol, "") if isinstance(call, Callback) else (call.function, str(call.library))
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.StringAttr.get(name), ir.StringAttr.get(library), *(ir.IntegerAttr.get(i64, number) for number in numbers)]
    )


def _chosen(group: ir.Operation, intrinsic: Intrinsic) -> list[int]:
    """For each step the number of the first of its names that its op is called by."""
    ops = [op.operation for op in group.regions[0].blocks[0].operations]
    steps = [
        OpFacts(op) for op in ops if op.name.startswith("linalg.") and op.name not in ("linalg.fill", "linalg.copy")
    ]
    return [
        next(number for number, name in enumerate(names) if op.is_called((name,)))
        for op, names in zip(steps, intrinsic.choices(), strict=True)
    ]


def _emit(group: ir.Operation, fusion: Fusion, emitter: Emitter) -> None:
    """Puts what the user's function emits in the place of the group's body."""
    block = group.regions[0].blocks[0]
    *old, terminator = [op.operation for op in block.operations]
    replaced = [OpFacts(op) for op in old if op.name not in ("arith.constant", "tensor.empty", "linalg.fill")]
    types = [result.type for result in group.results]
    with group.location, ir.InsertionPoint(terminator):
        try:
            values = list(emitter.function(list(block.arguments), types, replaced))
        except Exception as error:  # it is the user's
            raise CompileError(f"the emitter of {fusion.name} failed: {type(error).__name__}: {error}") from error
    given = [value.type for value in values]
    if given != types:
        said, wanted = (", ".join(map(str, kinds)) for kinds in (given, types))
        raise CompileError(f"the emitter of {fusion.name} returned values of types ({said}), expected ({wanted})")
    for number, value in enumerate(values):
        terminator.operands[number] = value
    for op in reversed(old):
        if any(list(result.uses) for result in op.results):
            raise CompileError(
                f"the emitter of {fusion.name} uses {op.name}, an op of the body that it takes the place of"
            )
        op.erase()
