"""What may run elsewhere: effects, traps, and what an op needs to stand before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.ir.linalg_op import bounded
from pipeline.ir.reshapes import ALL_RESHAPES
from pipeline.mlir import captured_values, constant_integer, defining_op, ir, ops_of

#: Dialects whose ops only compute, on tensors and numbers.
_COMPUTING = ("arith", "math", "complex", "index", "tensor", "linalg", "tm_tensor", "affine", "shape", "fusion")
_CONTROL = ("scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition", "scf.index_switch")

#: Ops that make the tensors that others compute into.
INITIAL = ("tensor.empty", "linalg.fill")

_SIGNED = ("arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi")
_UNSIGNED = ("arith.divui", "arith.remui", "arith.ceildivui")
_SLICES = ("tensor.extract_slice", "tensor.insert_slice")
_RESIZES = (*ALL_RESHAPES, "tensor.pad")


def has_effects(op: ir.Operation) -> bool:
    """Whether `op` or what is inside it does more than compute its results: stores, calls, asserts."""
    return any(not _computes(inner) for inner in ops_of(op))


def why_not_speculated(op: ir.Operation) -> str | None:
    """Why `op` may not run where the program did not run it; None if it may, and is at most wasted.

    Effects, what could trap or read what is not there, and what might not end. Floating-point arithmetic never traps.
    """
    for inner in ops_of(op):
        if not _computes(inner):
            return f"{inner.name} has side effects"
        reason = _trap(inner)
        if reason is not None:
            return f"{inner.name} {reason}"
    return None


def needed_between(values: Iterable[ir.Value], start: ir.Operation, end: ir.Operation) -> list[ir.Operation] | None:
    """The ops after `start` and before `end`, both in one block, that `values` need, in program order.

    None if `start` itself is among what they need.
    """
    positions = {op.operation: number for number, op in enumerate(start.block.operations)}
    first, last = positions[start], positions[end]
    found: set[ir.Operation] = set()
    waiting = list(values)
    while waiting:
        op = ancestor_in(waiting.pop(), start.block)
        if op is None or op in found or not first <= positions[op] < last:
            continue
        if op == start:
            return None
        found.add(op)
        waiting += captured_values(op)
    return sorted(found, key=positions.__getitem__)


def ancestor_in(value: ir.Value, block: ir.Block) -> ir.Operation | None:
    """The op of `block` that defines `value`, itself or inside of a region; None for values of other blocks."""
    op = defining_op(value)
    return None if op is None else op_in(op, block)


def op_in(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The op of `block` that `op` is or is inside of; None if there is none."""
    here: ir.Operation | None = op
    while here is not None and here.block != block:
        parent = here.parent
        here = None if parent is None or parent.operation.name == "func.func" else parent.operation
    return here


def users(op: ir.Operation) -> list[ir.Operation]:
    """The ops that read a result of `op`, each once."""
    return list(dict.fromkeys(use.owner.operation for result in op.results for use in result.uses))


def is_only_destination(value: ir.Value) -> bool:
    """Whether `value` is read by nothing and only computed into: an operand of linalg's `outs`, nowhere else."""
    return all(
        use.owner.operation.name.startswith("linalg.")
        and use.operand_number >= len(use.owner.operation.operands) - len(use.owner.operation.results)
        for use in value.uses
    )


def _computes(op: ir.Operation) -> bool:
    if op.name in _CONTROL:
        return True
    buffers = any(isinstance(value.type, (ir.MemRefType, ir.UnrankedMemRefType)) for value in op.operands)
    return op.name.partition(".")[0] in _COMPUTING and not buffers


def _trap(op: ir.Operation) -> str | None:
    """What could go wrong when a computing op runs on values that it was not meant for."""
    if op.name in _SIGNED + _UNSIGNED:
        return None if _is_divisor(op.operands[1], op.name in _SIGNED) else "may divide by zero"
    if op.name in ("tensor.extract", "tensor.insert"):
        first = 1 if op.name == "tensor.extract" else 2
        return None if _is_inside(op.operands[first - 1], list(op.operands)[first:], op) else "may be out of range"
    if op.name in _SLICES:
        dynamic = len(op.operands) > (1 if op.name == "tensor.extract_slice" else 2)
        return "may be out of range" if dynamic else None
    if op.name == "scf.while":
        return "may not end"
    if op.name == "scf.for":
        step = constant_integer(op.operands[2])
        return None if step is not None and step > 0 else "may not end"
    if op.name.startswith("tm_tensor.") or op.name in ("tensor.gather", "tensor.scatter"):
        return "may be out of range"
    if op.name in _RESIZES or (op.name.startswith("linalg.") and op.operands):
        is_static = all(map(_is_static, [*op.operands, *op.results]))
        return None if is_static else "has sizes that are known at run time only"
    return None


def _is_static(value: ir.Value) -> bool:
    return not isinstance(value.type, ir.RankedTensorType) or value.type.has_static_shape


def _is_divisor(value: ir.Value, signed: bool) -> bool:
    """Whether dividing by `value` is known not to trap: not 0, and, as the least number has no opposite, not -1."""
    number = constant_integer(value)
    if number is not None:
        return number != 0 and not (signed and number == -1)
    op = defining_op(value)
    if signed or op is None or op.name != "arith.select":
        return False
    condition, then, otherwise = op.operands
    compare = defining_op(condition)
    return (
        compare is not None
        and compare.name == "arith.cmpi"
        and ir.IntegerAttr(compare.attributes["predicate"]).value == 1  # ne
        and compare.operands[0] == then
        and constant_integer(compare.operands[1]) == 0
        and constant_integer(otherwise) not in (None, 0)
    )


def _is_inside(tensor: ir.Value, indices: list[ir.Value], op: ir.Operation) -> bool:
    """Whether the indices are known to lie in a tensor of known size."""
    kind = ir.RankedTensorType(tensor.type)
    return kind.has_static_shape and all(
        _is_below(index, size, op) for index, size in zip(indices, kind.shape, strict=True)
    )


def _is_below(index: ir.Value, size: int, op: ir.Operation) -> bool:
    """Whether 0 <= index < size: a constant, a loop of the linalg op around, or select(index < size, index, 0)."""
    number = constant_integer(index)
    if number is not None:
        return 0 <= number < size
    producer = defining_op(index)
    if producer is None:
        return False
    if producer.name == "linalg.index":
        view = bounded(producer.parent.operation)
        count = None if view is None else view.sizes[ir.IntegerAttr(producer.attributes["dim"]).value]
        return count is not None and count <= size
    if producer.name != "arith.select" or size == 0:
        return False
    condition, then, otherwise = producer.operands
    compare, other = defining_op(condition), constant_integer(otherwise)
    if compare is None or compare.name != "arith.cmpi" or other is None or not 0 <= other < size:
        return False
    below = ir.IntegerAttr(compare.attributes["predicate"]).value == 6  # ult
    limit = constant_integer(compare.operands[1])
    return below and compare.operands[0] == then and limit is not None and limit <= size


def needed_ops(ops: Sequence[ir.Operation], values: Iterable[ir.Value]) -> list[ir.Operation]:
    """Those of `ops`, in program order, that the values need."""
    needed = set(values)
    found = []
    for op in reversed(ops):
        if any(result in needed for result in op.results):
            found.append(op)
            needed.update(captured_values(op))
    return found[::-1]
