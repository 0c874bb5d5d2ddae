"""What can run on a tile in registers: the fill before a reduction on buffers, elementwise ops before and behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pipeline.analysis.vectorizable import unsupported
from pipeline.ir.indexing_maps import Loops, loops_of
from pipeline.ir.matchers import BUFFER_VIEWS, base, is_fill
from pipeline.mlir import defining_op, ir

#: Ops that may stand between: they touch no elements.
_TOUCHES_NOTHING = ("arith.", "affine.apply", "memref.dim", "memref.alloc", "memref.alloca", *BUFFER_VIEWS)


@dataclass(frozen=True)
class Epilogue:
    """An elementwise op that uses what an anchor computes, or computes what an anchor uses.

    Attributes:
        op: the op.
        loops: its maps, from the loops of the anchor.
    """

    op: ir.Operation
    loops: Loops


def initial_fill(anchor: ir.Operation, output: int) -> ir.Operation | None:
    """The fill that makes what the anchor starts from in the buffer of an output; None if there is none."""
    buffer = anchor.operands[output]
    before = _neighbour(anchor, forward=False)
    while before is not None and is_fill(before):
        if before.operands[1] == buffer:
            return before
        if base(before.operands[1]) == base(buffer):
            return None
        before = _neighbour(before, forward=False)
    return None


def _has_vector_form(op: ir.Operation) -> bool:
    return unsupported(op) is None


def epilogues(
    anchor: ir.Operation, loops: Loops, suits: Callable[[ir.Operation], bool] = _has_vector_form
) -> list[Epilogue]:
    """The elementwise ops right behind an anchor that run over its results with the same loops.

    `suits` says whether an op may be one, whatever it reads; its body must not ask for loop counters.
    """
    found: list[Epilogue] = []
    known = {anchor.operands[output]: loops.maps[output] for output in loops.outputs}
    read = {base(anchor.operands[operand]) for operand in range(loops.inputs)}
    written = {base(buffer) for buffer in known}
    after = _neighbour(anchor, forward=True)
    while after is not None and (epilogue := _epilogue(after, known, loops, suits)) is not None:
        reads = {base(after.operands[n]) for n in range(epilogue.loops.inputs) if after.operands[n] not in known}
        outputs = [after.operands[output] for output in epilogue.loops.outputs]
        if reads & written or any(base(buffer) in read for buffer in outputs):
            break  # another tile might not have been written yet, or be overwritten already
        found.append(epilogue)
        read |= reads
        written |= {base(buffer) for buffer in outputs}
        known |= dict(zip(outputs, (epilogue.loops.maps[output] for output in epilogue.loops.outputs), strict=True))
        after = _neighbour(after, forward=True)
    return found


def prologues(anchor: ir.Operation, loops: Loops, suits: Callable[[Epilogue], bool]) -> list[Epilogue]:
    """The elementwise ops right before an anchor that compute, in the same loops, what it reads; the first one first.

    Each element is computed once, where the anchor reads it. `suits` says whether an op may be one.
    """
    found: list[Epilogue] = []
    known: dict[ir.Value, list[ir.AffineMap]] = {}
    _add_reads(anchor, loops, known)
    written = {base(anchor.operands[output]) for output in loops.outputs}
    before = _neighbour(anchor, forward=False)
    while before is not None:
        prologue = None if is_fill(before) else _prologue(before, known, loops)
        if prologue is not None and suits(prologue) and not _clashes(prologue, known, written):
            found.insert(0, prologue)
            _add_reads(before, prologue.loops, known)
            written |= {base(before.operands[output]) for output in prologue.loops.outputs}
        elif not is_fill(before) or before.operands[1] not in list(anchor.operands):
            break
        before = _neighbour(before, forward=False)
    return found


def _add_reads(op: ir.Operation, loops: Loops, known: dict[ir.Value, list[ir.AffineMap]]) -> None:
    for number in range(loops.inputs):
        known.setdefault(op.operands[number], []).append(loops.maps[number])


def _clashes(prologue: Epilogue, known: dict[ir.Value, list[ir.AffineMap]], written: set[ir.Value]) -> bool:
    """Whether an op cannot run element by element with those behind it: these read other elements, or overwrite."""
    op, loops = prologue.op, prologue.loops
    made = {op.operands[output]: loops.maps[output] for output in loops.outputs}
    bases = {base(buffer) for buffer in made}
    for buffer, maps in known.items():
        if base(buffer) in bases and not all(_same_elements(indexing, made.get(buffer), loops) for indexing in maps):
            return True
    return any(base(operand) in written for operand in op.operands if isinstance(operand.type, ir.ShapedType))


def _prologue(op: ir.Operation, known: dict[ir.Value, list[ir.AffineMap]], anchor: Loops) -> Epilogue | None:
    """`op` over the loops of an anchor; None if it computes nothing that is known to be read, or not just once."""
    loops = loops_of(op) if op.name == "linalg.generic" and _has_vector_form(op) else None
    if loops is None or any(loops.reductions) or not _ignores_outputs(op, loops):
        return None
    output = next((number for number in loops.outputs if op.operands[number] in known), None)
    if output is None:
        return None
    into = _into(loops.maps[output], known[op.operands[output]][0])
    every = {loop for loop, size in enumerate(anchor.sizes) if size != 1}
    if not _large(loops) <= into.keys() or not every <= set(into.values()):
        return None
    if any(loops.sizes[mine] != anchor.sizes[its] for mine, its in into.items()):
        return None
    return Epilogue(op, _over(loops, into, anchor))


def is_only_between(buffer: ir.Value, ops: list[ir.Operation]) -> bool:
    """Whether a buffer belongs to this function and nothing but some ops reads or writes it."""
    owner = defining_op(buffer)
    if owner is None or owner.name not in ("memref.alloc", "memref.alloca"):
        return False
    return all(use.owner.operation in ops or use.owner.operation.name == "memref.dealloc" for use in buffer.uses)


def _neighbour(op: ir.Operation, forward: bool) -> ir.Operation | None:
    """The next op before or behind that touches elements; None if that is no linalg op."""
    block = list(op.block.operations)
    place = next(number for number, candidate in enumerate(block) if candidate.operation == op)
    others = block[place + 1 :] if forward else block[:place][::-1]
    for other in (neighbour.operation for neighbour in others):
        if other.name.startswith("linalg."):
            return other
        if not other.name.startswith(_TOUCHES_NOTHING):
            return None
    return None


def _epilogue(
    op: ir.Operation, known: dict[ir.Value, ir.AffineMap], anchor: Loops, suits: Callable[[ir.Operation], bool]
) -> Epilogue | None:
    """`op` over the loops of an anchor; None if it is no elementwise op over what is known with just these loops."""
    if op.name != "linalg.generic" or not suits(op):
        return None
    loops = loops_of(op)
    if loops is None or any(loops.reductions) or not _ignores_outputs(op, loops):
        return None
    shared = [number for number in range(loops.inputs) if op.operands[number] in known]
    if not shared:
        return None
    into = _into(loops.maps[shared[0]], known[op.operands[shared[0]]])
    if not _large(loops) <= into.keys() or not _large(anchor) <= set(into.values()):
        return None
    moved = _over(loops, into, anchor)
    if not all(_same_elements(moved.maps[number], known[op.operands[number]], anchor) for number in shared):
        return None
    return Epilogue(op, moved)


def _over(loops: Loops, into: dict[int, int], anchor: Loops) -> Loops:
    """The maps of an op from the loops of an anchor, given which of these its own are."""
    zero = ir.AffineConstantExpr.get(0)  # for a loop of one iteration
    dims = [ir.AffineDimExpr.get(into[loop]) if loop in into else zero for loop in range(len(loops.reductions))]
    moved = ir.AffineMap.get(len(anchor.reductions), 0, dims)
    maps = tuple(
        ir.AffineMap.get(moved.n_dims, 0, [expression.compose(moved) for expression in indexing.results])
        for indexing in loops.maps
    )
    return replace(loops, maps=maps, sizes=anchor.sizes, reductions=anchor.reductions)


def _same_elements(reads: ir.AffineMap, wrote: ir.AffineMap | None, loops: Loops) -> bool:
    """Whether two maps from the same loops are equal, apart from how they write an index that is always 0."""
    if wrote is None:
        return False
    pairs = zip(reads.results, wrote.results, strict=True)
    return all(mine == other or (_is_zero(mine, loops) and _is_zero(other, loops)) for mine, other in pairs)


def _is_zero(expression: ir.AffineExpr, loops: Loops) -> bool:
    if isinstance(expression, ir.AffineDimExpr):
        return loops.sizes[ir.AffineDimExpr(expression).position] == 1
    return expression == ir.AffineConstantExpr.get(0)


def _large(loops: Loops) -> set[int]:
    """The parallel loops of more than one iteration."""
    return {loop for loop, reduces in enumerate(loops.reductions) if not reduces and loops.sizes[loop] != 1}


def _into(reads: ir.AffineMap, wrote: ir.AffineMap) -> dict[int, int]:
    """From the loops of an op that reads a buffer to those of the op that wrote it; for indices that are loops."""
    into: dict[int, int] = {}
    for mine, other in zip(reads.results, wrote.results, strict=True):
        if isinstance(mine, ir.AffineDimExpr) and isinstance(other, ir.AffineDimExpr):
            into[ir.AffineDimExpr(mine).position] = ir.AffineDimExpr(other).position
    return into


def _ignores_outputs(op: ir.Operation, loops: Loops) -> bool:
    arguments = list(op.regions[0].blocks[0].arguments)
    return not any(list(arguments[output].uses) for output in loops.outputs)
