"""What it costs to compute both branches of an scf.if and choose, and whether that may be done."""

from __future__ import annotations

import math

from pipeline.analysis.body_cost import body_cost, op_cost
from pipeline.analysis.code_motion import INITIAL, why_not_speculated
from pipeline.ir.element_types import byte_size
from pipeline.ir.linalg_op import structured
from pipeline.ir.reshapes import RESHAPES
from pipeline.mlir import captured_values, ir, is_inside

#: Reading or writing so many bytes takes about as long as calling a kernel.
CALL_BYTES = 8192

#: A tensor's elements may cost so many ops in vain: loads and stores take longer.
WASTED_OPS = 4

#: A number, or all elements of small tensors, may cost so many ops in vain.
WASTED_IN_ALL = 4096
WASTED_SCALAR = 40


def why_not_both(branch: ir.Operation) -> str | None:
    """Why not both branches of an scf.if are computed and one result chosen; None if that is right and pays.

    Right: nothing in them has effects or could trap, and tensors are elementwise and of known size. Pays: it moves no
    more bytes than the branch that moves less, give or take a call, and the ops in vain are few.
    """
    blocks = [region.blocks[0] for region in branch.regions if len(region.blocks)]
    if len(blocks) < 2 or not branch.results:
        return "it has no results to choose from"
    for block in blocks:
        for op in list(block.operations)[:-1]:
            reason = _why_not_op(op.operation)
            if reason is not None:
                return reason
    if any(byte_size(result.type) is None for result in branch.results):
        return "a result has a size that is known at run time only"
    tensors = [result for result in branch.results if isinstance(result.type, ir.RankedTensorType)]
    return _why_not_tensors(branch, blocks) if tensors else _why_not_numbers(blocks)


def _why_not_op(op: ir.Operation) -> str | None:
    reason = why_not_speculated(op)
    if reason is not None:
        return reason
    if op.name in INITIAL or op.name in RESHAPES:
        return None
    view = structured(op)
    is_simple = view.is_elementwise if view is not None else not op.regions and not any(map(_is_tensor, op.results))
    return None if is_simple else f"{op.name} is not elementwise"


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _why_not_numbers(blocks: list[ir.Block]) -> str | None:
    wasted = max(sum(op_cost(op.operation) for op in block.operations) for block in blocks)
    return f"{wasted} ops would be in vain" if wasted > WASTED_SCALAR else None


def _why_not_tensors(branch: ir.Operation, blocks: list[ir.Block]) -> str | None:
    read = [_read(block, branch) for block in blocks]
    results = sum(byte_size(result.type) or 0 for result in branch.results)
    alone = [_bytes(values) + (results if _writes(block) else 0) for values, block in zip(read, blocks, strict=True)]
    both = _bytes(read[0] | read[1]) + results
    if both > min(alone) + CALL_BYTES:
        return f"it would move {both} bytes, a branch {min(alone)}"
    per_element, in_all = zip(*map(_wasted, blocks), strict=True)
    if max(per_element) > WASTED_OPS and max(in_all) > WASTED_IN_ALL:
        return f"{max(in_all)} ops would be in vain"
    return None


def _read(block: ir.Block, branch: ir.Operation) -> set[ir.Value]:
    """The tensors from outside that the branch reads or hands on."""
    found: set[ir.Value] = set()
    for op in block.operations:
        op = op.operation
        values = captured_values(op)
        if op.name.startswith("linalg."):
            destinations = list(op.operands)[len(op.operands) - len(op.results) :]
            values = [value for value in values if value not in destinations]
        found |= {value for value in values if _is_tensor(value) and not is_inside(value, branch)}
    return found


def _bytes(values: set[ir.Value]) -> int:
    return sum(byte_size(value.type) or 0 for value in values)


def _writes(block: ir.Block) -> bool:
    return any(op.operation.name.startswith("linalg.") for op in block.operations)


def _wasted(block: ir.Block) -> tuple[int, int]:
    """The ops of a branch for each element, and in all."""
    per_element = in_all = 0
    for op in block.operations:
        view = structured(op.operation)
        if view is not None and view.op.name != "linalg.fill":
            cost = body_cost(view)
            per_element += cost
            in_all += cost * math.prod(ir.RankedTensorType(view.op.results[0].type).shape)
        else:
            in_all += op_cost(op.operation)
    return per_element, in_all
