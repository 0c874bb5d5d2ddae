"""Whether a whole loop, with the kernels that it calls, becomes one kernel: what is right, and what pays.

Right is a loop of calls of kernels, of numbers and of slices. What it makes has a known size; what it reads and what it
updates in place need not. Threads share the work of a kernel, not the rounds of a loop, and a kernel keeps what is
between its ops on its stack: so every step has to be small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.analysis.flop_count import iterations, operations
from pipeline.analysis.iter_args import Carry, carries_of
from pipeline.ir.destination_passing import tied_operand
from pipeline.ir.element_types import byte_size
from pipeline.mlir import callee, defining_op, ir, ops_of, walk

LOOPS = ("scf.for", "scf.while")

_CONTROL = (*LOOPS, "scf.if", "scf.yield", "scf.condition")
_NUMBERS = ("arith", "math", "index")
_TENSORS = {"empty", "extract", "extract_slice", "insert", "insert_slice", "expand_shape", "collapse_shape"}
_TENSORS |= {"cast", "from_elements", "dim"}
_INSERTIONS = ("tensor.insert", "tensor.insert_slice")


@dataclass(frozen=True)
class LoopLimits:
    """What a loop may be that becomes one kernel.

    Attributes:
        calls: how many calls of kernels it has, each of which becomes code of its own.
        work: how many operations, or iterations, one of those kernels takes: threads would share more.
        scratch: how many bytes it may keep on the stack.
    """

    calls: int
    work: int
    scratch: int


def why_no_kernel(loop: ir.Operation, kernels: Mapping[str, ir.Operation], limits: LoopLimits) -> str | None:
    """Why a loop does not become one kernel; None if it does. `kernels` are those that may be in it, by name."""
    for op in ops_of(loop):
        reason = _why_not_op(op)
        if reason is not None:
            return reason
    names = [callee(call) for call in walk(loop, "func.call")]
    if not names:
        return "it calls no kernel"
    if len(names) > limits.calls:
        return f"it calls {len(names)} kernels, more than {limits.calls}"
    for name in dict.fromkeys(names):
        reason = _why_not_kernel(name, kernels.get(name), limits)
        if reason is not None:
            return reason
    for inner in (op for op in ops_of(loop) if op.name in LOOPS):
        carries = carries_of(inner)
        if carries is None:
            return "it hands on what it does not carry"
        if any(_is_dynamic(carry.initial) and not (carry.is_kept or is_in_place(carry)) for carry in carries):
            return "it makes tensors of sizes that are known at run time only"
    scratch = _scratch(loop) + sum(_scratch(kernels[name]) for name in names)
    return f"it keeps {scratch} bytes, more than {limits.scratch}" if scratch > limits.scratch else None


def is_in_place(carry: Carry) -> bool:
    """Whether each round writes into what the one before left, and so do the loops in it."""
    value = carry.following
    while value != carry.argument:
        producer = defining_op(value)
        if producer is None:
            return False
        if producer.name in LOOPS:
            inner = next(
                (inner_carry for inner_carry in carries_of(producer) or [] if inner_carry.result == value), None
            )
            if inner is None or not (inner.is_kept or is_in_place(inner)):
                return False
            value = inner.initial
            continue
        tied = tied_operand(producer, value)
        if tied is None:
            return False
        value = tied
    return True


def _why_not_op(op: ir.Operation) -> str | None:
    """Why an op in a loop does not fit into a kernel."""
    dialect, _, short = op.name.partition(".")
    is_known = op.name in (*_CONTROL, "func.call") or dialect in _NUMBERS or (dialect == "tensor" and short in _TENSORS)
    if not is_known and not _is_check(op):
        return f"{op.name} is for no kernel"
    made = [] if op.name in (*LOOPS, *_INSERTIONS) else op.results
    return "it makes tensors of sizes that are known at run time only" if any(map(_is_dynamic, made)) else None


def _is_dynamic(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and not value.type.has_static_shape


def _is_check(op: ir.Operation) -> bool:
    """Whether an op notes that a check has failed: it stores a number where @main's caller looks for that."""
    return op.name == "memref.store" and isinstance(op.operands[1].owner, ir.Block)


def _why_not_kernel(name: str, kernel: ir.Operation | None, limits: LoopLimits) -> str | None:
    """Why a kernel may not be called in another one."""
    if kernel is None:
        return f"{name} is a function from outside"
    counts = operations(kernel), iterations(kernel)
    most = max((count for count in counts if count is not None), default=0)
    if None in counts:
        return f"{name} takes a time that is not known"
    return f"{name} takes {most} operations, more than {limits.work}" if most > limits.work else None


def _scratch(op: ir.Operation) -> int:
    """The bytes of what is kept between the ops inside of `op`, and of what loops carry, which lies in two places."""
    total = sum(byte_size(empty.results[0].type) or 0 for empty in walk(op, "tensor.empty", "tensor.from_elements"))
    for loop in ops_of(op):
        if loop.name in LOOPS:
            carries = [carry for carry in carries_of(loop) or [] if isinstance(carry.kind, ir.RankedTensorType)]
            total += sum(
                2 * (byte_size(carry.kind) or 0) for carry in carries if not (carry.is_kept or is_in_place(carry))
            )
    return total
