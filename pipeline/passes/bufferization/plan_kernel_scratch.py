"""plan-kernel-scratch: what kernels allocate while they run lies in the workspace of their caller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.attributes import CHUNK, KERNEL, NUMBERED, SCRATCH, SHARED, THREAD_BYTES, WORKSPACE
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import add_argument, before, copy_attributes, replace
from pipeline.mlir import arith, calls_of, func, function_around, ir, memref, symbol_name, walk
from pipeline.passes.bufferization.offset_assignment import Buffer, become_view, buffers_of, place
from pipeline.passes.bufferization.plan_memory import workspace_of
from pipeline.passmanager.base import Pass
from pipeline.runtime.interface.entry_point import ALIGNMENT


@dataclass(frozen=True)
class PlanKernelScratch(Pass):
    """Have kernels take the memory that they allocate and free as they run from the workspace of their caller.

    Taken are buffers of known size that are allocated and freed in the same block of a kernel, or of a part of it that
    threads share: there each thread has a place of its own, and the workspace says by its size for how many threads
    there are places. What is behind the caller's temporaries in the workspace belongs to the kernel that runs. A caller
    without a workspace, as @prepare, allocates for one thread. Buffers that nothing reads or writes any more go. A
    kernel that is shared is told how much it takes, `pipeline.scratch`; one whose code is not in the module says so.
    """

    name: ClassVar[str] = "plan-kernel-scratch"

    alignment: int = field(default=ALIGNMENT, metadata={"help": "every buffer starts at a multiple of so many bytes"})

    def run(self, op: ir.Operation) -> None:
        """Plans all kernels of a module."""
        used = [alloc for alloc in walk(op, "memref.alloc") if not _erase_unused(alloc)]
        functions = walk(op, "func.func")
        elsewhere = [function for function in functions if SCRATCH in function.attributes]
        if not used and not elsewhere:
            return
        calls = calls_of(op)
        kernels = [kernel for kernel in functions if KERNEL in kernel.attributes and list(kernel.regions[0].blocks)]
        chunks = [chunk for chunk in functions if CHUNK in chunk.attributes]
        around = {symbol_name(chunk): function_around(calls[symbol_name(chunk)][0]) for chunk in chunks}
        planned = [
            self._planned(kernel, [chunk for chunk in chunks if around[symbol_name(chunk)] == kernel])
            for kernel in kernels
        ]
        needed = [scratch for scratch in planned if scratch.total]
        with op.location:
            for scratch in needed:
                self._give(scratch, calls)
            _pass_workspaces([*needed, *map(_declared, elsewhere)], calls)

    def _planned(self, kernel: ir.Operation, chunks: list[ir.Operation]) -> _Scratch:
        own = buffers_of(kernel, self.alignment)
        private = [(chunk, buffers_of(chunk, self.alignment)) for chunk in chunks]
        sizes = [place(buffers) for _, buffers in private]
        return _Scratch(kernel, own, [pair for pair in private if pair[1]], place(own), max(sizes, default=0))

    def _give(self, scratch: _Scratch, calls: dict[str, list[ir.Operation]]) -> None:
        """Has a kernel and its chunks take scratch as an argument."""
        memory = add_argument(scratch.kernel, _bytes_type())
        if SHARED in scratch.kernel.attributes:
            scratch.kernel.attributes[SCRATCH] = ir.DenseI64ArrayAttr.get([scratch.shared, scratch.each])
        for chunk, buffers in scratch.private:
            (call,) = calls[symbol_name(chunk)]
            _number(scratch, chunk, buffers, call, memory)
        for buffer in scratch.own:
            become_view(buffer, memory)
        count = len(scratch.own) + sum(len(buffers) for _, buffers in scratch.private)
        each = f" and {scratch.each} for each thread" if scratch.each else ""
        self.passed(scratch.kernel, f"{count} buffers lie in {scratch.shared} bytes of the caller's workspace{each}")


@dataclass
class _Scratch:
    """The buffers of a kernel.

    Attributes:
        own: those of the kernel itself.
        private: the functions whose iterations threads share, with the buffers of each.
        shared, each: how many bytes the former take, and the latter for each thread.
    """

    kernel: ir.Operation
    own: list[Buffer]
    private: list[tuple[ir.Operation, list[Buffer]]]
    shared: int
    each: int

    @property
    def total(self) -> int:
        """The bytes for one thread."""
        return self.shared + self.each


def _declared(kernel: ir.Operation) -> _Scratch:
    """That of a kernel whose code is elsewhere, which is declared to take it."""
    shared, each = ir.DenseI64ArrayAttr(kernel.attributes[SCRATCH])
    kind = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    wider = ir.FunctionType.get([*kind.inputs, _bytes_type()], list(kind.results))
    kernel.attributes["function_type"] = ir.TypeAttr.get(wider)
    return _Scratch(kernel, [], [], shared, each)


def _erase_unused(alloc: ir.Operation) -> bool:
    """Drops what is allocated and freed and nothing else; returns whether it did."""
    users = [use.owner.operation for use in alloc.results[0].uses]
    if any(user.name != "memref.dealloc" for user in users):
        return False
    for user in (*users, alloc):
        user.erase()
    return True


def _number(
    scratch: _Scratch, chunk: ir.Operation, buffers: list[Buffer], call: ir.Operation, memory: ir.Value
) -> None:
    """@chunk(...)  =>  @chunk(..., %scratch, %threads, %thread), where each thread has a place of its own."""
    inside = add_argument(chunk, _bytes_type())
    add_argument(chunk, ir.IndexType.get())
    thread = add_argument(chunk, ir.IndexType.get())
    chunk.attributes[NUMBERED] = ir.UnitAttr.get()
    with chunk.location, ir.InsertionPoint.at_block_begin(chunk.regions[0].blocks[0]):
        ahead = arith.MulIOp(thread, as_index(scratch.each)).result
        start = arith.AddIOp(ahead, as_index(scratch.shared)).result
    for buffer in buffers:
        become_view(buffer, inside, start)
    with before(call):
        size = memref.DimOp(memory, as_index(0)).result
        behind = arith.SubIOp(size, as_index(scratch.shared)).result
        threads = arith.DivUIOp(behind, as_index(scratch.each)).result
        operands = [*call.operands, memory, threads, as_index(0)]
    _call_with(call, operands)


def _pass_workspaces(planned: list[_Scratch], calls: dict[str, list[ir.Operation]]) -> None:
    """Has callers hand scratch to kernels."""
    grown: dict[ir.Operation, tuple[int, int]] = {}
    for scratch in planned:
        for call in calls.get(symbol_name(scratch.kernel), ()):
            caller = function_around(call)
            workspace = workspace_of(caller)
            if workspace is None:
                _allocate(scratch, call)
                continue
            _hand_over(call, workspace, _planned_bytes(caller))
            most, each = grown.get(caller, (0, 0))
            grown[caller] = max(most, scratch.total), max(each, scratch.each)
    for caller, (most, each) in grown.items():
        caller.attributes[WORKSPACE] = _i64(_planned_bytes(caller) + most)
        caller.attributes[THREAD_BYTES] = _i64(each)


def _planned_bytes(function: ir.Operation) -> int:
    """How much of its workspace a function needs itself; nothing if plan-memory did not run."""
    return ir.IntegerAttr(function.attributes[WORKSPACE]).value if WORKSPACE in function.attributes else 0


def _hand_over(call: ir.Operation, workspace: ir.Value, start: int) -> None:
    """Passes what lies behind the first `start` bytes of the workspace."""
    with before(call):
        size = arith.SubIOp(memref.DimOp(workspace, as_index(0)).result, as_index(start)).result
        scratch = memref.ViewOp(_bytes_type(), workspace, as_index(start), [size]).result
    _call_with(call, [*call.operands, scratch])


def _allocate(scratch: _Scratch, call: ir.Operation) -> None:
    """Passes memory for one thread that is allocated around the call."""
    with before(call):
        kind = ir.MemRefType.get([scratch.total], ir.IntegerType.get_signless(8))
        made = memref.AllocOp(kind, [], [], alignment=_i64(ALIGNMENT)).result
        operands = [*call.operands, memref.CastOp(_bytes_type(), made).result]
    following = _call_with(call, operands)
    with following.location, ir.InsertionPoint.after(following):
        memref.DeallocOp(made)


def _call_with(call: ir.Operation, operands: list[ir.Value]) -> ir.Operation:
    """Puts a call with other operands in the place of one; returns it."""
    with before(call):
        new = func.CallOp([result.type for result in call.results], call.attributes["callee"], operands).operation
    copy_attributes(call, new)
    replace(call, list(new.results))
    return new


def _bytes_type() -> ir.MemRefType:
    return ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(8))


def _i64(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
