"""The ops that a kernel is made of, as loops can be put around them."""

from __future__ import annotations

from pipeline.analysis.concat import insertion
from pipeline.ir.attributes import CUSTOM
from pipeline.ir.destination_passing import origin
from pipeline.ir.kernels import has_control_flow, kernel_kind
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.mlir import ir, walk

#: Kinds of groups whose tiles are made in registers: by tile-and-vectorize, or by map-to-threads.
IN_REGISTERS = ("conv", "matmul", "pooling")


def ops_to_tile(function: ir.Operation) -> list[LinalgOp] | None:
    """The ops of a kernel of several that loops can be put around; None of any other function.

    Kernels that a user made stay as they are, and so do those whose tiles are made in registers.
    """
    if has_control_flow(function) or kernel_kind(function) in IN_REGISTERS or CUSTOM in function.attributes:
        return None
    views = computing_ops(function)
    return None if views is None or len(views) < 2 else views


def computing_ops(kernel: ir.Operation) -> list[LinalgOp] | None:
    """The ops of a kernel other than slices and fills of initial values; None if one has no indexing maps.

    None too if one takes single elements or a slice of what another computes, which may lie in any tile of it.
    """
    found = []
    for op in (op.operation for op in kernel.regions[0].blocks[0].operations):
        if op.name == "tensor.extract_slice" and origin(op.operands[0]) != op.operands[0]:
            return None
        part = insertion(op)
        if part is not None:
            found.append(part)
        if not op.name.startswith("linalg.") or _is_initial(op):
            continue
        view = any_structured(op)
        if view is None or _extracts_from_another(op):
            return None
        found.append(view)
    return found


def _extracts_from_another(op: ir.Operation) -> bool:
    """Whether the body of `op` takes single elements of a tensor that is computed in the kernel."""
    return any(not isinstance(extract.operands[0].owner, ir.Block) for extract in walk(op, "tensor.extract"))


def _is_initial(op: ir.Operation) -> bool:
    if op.name != "linalg.fill":
        return False
    return all(
        use.owner.operation.name.startswith("linalg.")
        and use.operand_number >= len(use.owner.operation.operands) - len(use.owner.operation.results)
        for use in op.results[0].uses
    )
