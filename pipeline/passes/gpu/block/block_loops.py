"""The iterations of tile-groups-to-blocks' loops go to blocks of threads; what map-to-threads emits for them."""

from __future__ import annotations

from math import prod

from pipeline.ir.constants import as_index
from pipeline.ir.matchers import is_fill
from pipeline.ir.rewriting import before, is_unused
from pipeline.mlir import arith, constant_integer, defining_op, gpu, ir, memref, refusal, scf, walk
from pipeline.passes.gpu.block.block_emitter import BlockEmitter
from pipeline.passes.gpu.block.element_distribution import BlockOp, choose_shape, describe
from pipeline.passes.gpu.thread.launch_patterns import VIEWS, iterations
from pipeline.passes.gpu.thread.thread_results import unravel

_ALLOCATIONS = ("memref.alloc", "memref.alloca")
_MOST_BLOCKS = 65535

#: What a block may share without asking the driver for more.
_MOST_SHARED = 48 * 1024


def emit(
    function: ir.Operation, nest: list[ir.Operation], most_threads: int, access_bytes: int, shuffles: bool
) -> tuple[int | None, int]:
    """Rewrites a function whose loops are `nest`; returns the number of blocks, if known, and that of their threads."""
    total, anchor = _open(nest)
    ops = [op for loop in nest for op in _inside(loop) if op not in nest]
    for op in ops:
        op.move_before(anchor)
    work = [op for op in ops if op.name in ("linalg.generic", "memref.copy")]
    _share_places(work)
    _into_shared_memory(function)
    plans = [_described(op) for op in work if op.name == "linalg.generic" and not is_fill(op)]
    copied = [buffer for op in work if op.name == "memref.copy" for buffer in op.operands]
    shape = choose_shape(plans, most_threads, access_bytes)
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), function.location:
        emitter = BlockEmitter(shape, plans, copied, shuffles)
    for op in work:
        with before(op):
            emitter.emit(op)
        op.erase()
    with before(anchor):
        emitter.finish()
        if anchor != nest[0]:
            emitter.barrier()  # before the next iteration overwrites what this one shares
    nest[0].erase()
    _place_allocations(function)
    return total, shape.threads


def _inside(loop: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in loop.regions[0].blocks[0].operations][:-1]


def _open(nest: list[ir.Operation]) -> tuple[int | None, ir.Operation]:
    """The loops' counters from the block's number; in a loop, where there may be more of them than blocks.

    Returns the number of blocks, if known, and the op that a block's work stands in front of.
    """
    counts = [iterations(loop) for loop in nest]
    known = [count for count in counts if isinstance(count, int)]
    total = prod(known) if len(known) == len(counts) else None
    with before(nest[0]):
        number = gpu.BlockIdOp(gpu.Dimension.x).result
        anchor = nest[0]
        if total is None or total > _MOST_BLOCKS:
            end = as_index(counts[0])
            for count in counts[1:]:
                end = arith.MulIOp(end, as_index(count)).result
            loop = scf.ForOp(number, end, gpu.GridDimOp(gpu.Dimension.x).result)
            number = loop.induction_variable
            with ir.InsertionPoint(loop.body):
                anchor = scf.YieldOp([]).operation
    with before(anchor):
        for loop, place in zip(nest, unravel(number, counts), strict=True):
            step = constant_integer(loop.operands[2])
            counter = place if step == 1 else arith.MulIOp(place, as_index(step or 1)).result
            loop.regions[0].blocks[0].arguments[0].replace_all_uses_with(counter)
    return total, anchor


def _described(op: ir.Operation) -> BlockOp:
    plan = describe(op)
    if plan is None:
        raise refusal(op, "tile-groups-to-blocks takes loops of known size only")
    return plan


def _share_places(ops: list[ir.Operation]) -> None:
    """An elementwise op that is the last to read a buffer of the block writes what it computes there."""
    for number, op in enumerate(ops):
        plan = describe(op) if op.name == "linalg.generic" and not is_fill(op) else None
        if plan is None or plan.kind != "elements":
            continue
        for output in plan.view.outputs:
            target = op.operands[output]
            if not _is_whole(target) or plan.reads_output(output) or _uses(ops[:number], target):
                continue
            for position in range(plan.view.inputs):
                source = op.operands[position]
                is_same = source.type == target.type and plan.view.maps[position] == plan.view.maps[output]
                if is_same and source != target and _is_whole(source) and not _uses(ops[number + 1 :], source):
                    target.replace_all_uses_with(source)
                    break


def _is_whole(buffer: ir.Value) -> bool:
    """Whether a buffer belongs to the block and nothing reads or writes a part of it."""
    owner = defining_op(buffer)
    if owner is None or owner.name not in _ALLOCATIONS:
        return False
    return not any(use.owner.operation.name in VIEWS for use in buffer.uses)


def _uses(ops: list[ir.Operation], buffer: ir.Value) -> bool:
    return any(buffer in list(op.operands) for op in ops)


def _into_shared_memory(function: ir.Operation) -> None:
    """Buffers of the block's own become memory that its threads share."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    for alloc in walk(function, *_ALLOCATIONS):
        kind = ir.MemRefType(alloc.results[0].type)
        with alloc.location, ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
            new = memref.AllocOp(ir.MemRefType.get(kind.shape, kind.element_type, memory_space=space), [], []).result
            _retype(alloc.results[0], space)
        alloc.results[0].replace_all_uses_with(new)
        alloc.erase()


def _retype(buffer: ir.Value, space: ir.Attribute) -> None:
    """Gives views of a buffer its memory space."""
    for use in buffer.uses:
        view = use.owner.operation
        if view.name in VIEWS:
            kind = ir.MemRefType(view.results[0].type)
            view.results[0].set_type(ir.MemRefType.get(kind.shape, kind.element_type, kind.layout, space))
            _retype(view.results[0], space)


def _place_allocations(function: ir.Operation) -> None:
    """Shared memory belongs to the function, not to an iteration; what nothing uses goes."""
    first = function.regions[0].blocks[0].operations[0].operation
    total = 0
    for alloc in walk(function, "memref.alloc"):
        if is_unused(alloc.results[0]):
            alloc.erase()
            continue
        if alloc != first:
            alloc.move_before(first)
        kind = ir.MemRefType(alloc.results[0].type)
        width = kind.element_type.width if isinstance(kind.element_type, (ir.IntegerType, ir.FloatType)) else 64
        total += prod(kind.shape) * -(-width // 8)
    if total > _MOST_SHARED:
        raise refusal(function, f"a block has less than {total} bytes of shared memory; disable tile-groups-to-blocks")
