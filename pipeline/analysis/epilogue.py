"""What can run on a tile in registers: the fill before a reduction on buffers, elementwise ops before and behind it."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.analysis.vectorizable import unsupported
from pipeline.ir.iteration_space import IterationSpace
from pipeline.ir.linalg_op import LinalgOp, bounded
from pipeline.ir.matchers import BUFFER_VIEWS, base, is_fill
from pipeline.mlir import defining_op, ir

#: Ops that may stand between: they touch no elements.
_TOUCHES_NOTHING = ("arith.", "affine.apply", "memref.dim", "memref.alloc", "memref.alloca", *BUFFER_VIEWS)


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


def epilogues(anchor: LinalgOp, suits: Callable[[ir.Operation], bool] = _has_vector_form) -> list[LinalgOp]:
    """The elementwise ops right behind an anchor that run over its results with the same loops.

    `suits` says whether an op may be one, whatever it reads; its body must not ask for loop counters.
    """
    found: list[LinalgOp] = []
    known = {anchor.operands[output]: anchor.maps[output] for output in anchor.outputs}
    read = {base(anchor.operands[operand]) for operand in range(anchor.inputs)}
    written = {base(buffer) for buffer in known}
    after = _neighbour(anchor.op, forward=True)
    while after is not None and (epilogue := _epilogue(after, known, anchor, suits)) is not None:
        reads = {base(after.operands[n]) for n in range(epilogue.inputs) if after.operands[n] not in known}
        outputs = [after.operands[output] for output in epilogue.outputs]
        if reads & written or any(base(buffer) in read for buffer in outputs):
            break  # another tile might not have been written yet, or be overwritten already
        found.append(epilogue)
        read |= reads
        written |= {base(buffer) for buffer in outputs}
        known |= dict(zip(outputs, (epilogue.maps[output] for output in epilogue.outputs), strict=True))
        after = _neighbour(after, forward=True)
    return found


def prologues(anchor: LinalgOp, suits: Callable[[LinalgOp], bool]) -> list[LinalgOp]:
    """The elementwise ops right before an anchor that compute, in the same loops, what it reads; the first one first.

    Each element is computed once, where the anchor reads it. `suits` says whether an op may be one.
    """
    found: list[LinalgOp] = []
    known: dict[ir.Value, list[ir.AffineMap]] = {}
    _add_reads(anchor, known)
    written = {base(anchor.operands[output]) for output in anchor.outputs}
    before = _neighbour(anchor.op, forward=False)
    while before is not None:
        prologue = None if is_fill(before) else _prologue(before, known, anchor)
        if prologue is not None and suits(prologue) and not _clashes(prologue, known, written):
            found.insert(0, prologue)
            _add_reads(prologue, known)
            written |= {base(before.operands[output]) for output in prologue.outputs}
        elif not is_fill(before) or before.operands[1] not in list(anchor.operands):
            break
        before = _neighbour(before, forward=False)
    return found


def _add_reads(view: LinalgOp, known: dict[ir.Value, list[ir.AffineMap]]) -> None:
    for number in range(view.inputs):
        known.setdefault(view.operands[number], []).append(view.maps[number])


def _clashes(prologue: LinalgOp, known: dict[ir.Value, list[ir.AffineMap]], written: set[ir.Value]) -> bool:
    """Whether an op cannot run element by element with those behind it: these read other elements, or overwrite."""
    made = {prologue.operands[output]: prologue.maps[output] for output in prologue.outputs}
    bases = {base(buffer) for buffer in made}
    for buffer, maps in known.items():
        if base(buffer) in bases and not all(_same_elements(indexing, made.get(buffer), prologue) for indexing in maps):
            return True
    return any(base(operand) in written for operand in prologue.operands if isinstance(operand.type, ir.ShapedType))


def _prologue(op: ir.Operation, known: dict[ir.Value, list[ir.AffineMap]], anchor: LinalgOp) -> LinalgOp | None:
    """`op` over the loops of an anchor; None if it computes nothing that is known to be read, or not just once."""
    view = bounded(op) if op.name == "linalg.generic" and _has_vector_form(op) else None
    if view is None or any(view.reductions) or not view.ignores_outputs:
        return None
    output = next((number for number in view.outputs if op.operands[number] in known), None)
    if output is None:
        return None
    into = _into(view.maps[output], known[op.operands[output]][0])
    every = {loop for loop, size in enumerate(anchor.sizes) if size != 1}
    if not _large(view) <= into.keys() or not every <= set(into.values()):
        return None
    if any(view.sizes[mine] != anchor.sizes[its] for mine, its in into.items()):
        return None
    return _over(view, into, anchor)


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
    op: ir.Operation, known: dict[ir.Value, ir.AffineMap], anchor: LinalgOp, suits: Callable[[ir.Operation], bool]
) -> LinalgOp | None:
    """`op` over the loops of an anchor; None if it is no elementwise op over what is known with just these loops."""
    if op.name != "linalg.generic" or not suits(op):
        return None
    view = bounded(op)
    if view is None or any(view.reductions) or not view.ignores_outputs:
        return None
    shared = [number for number in range(view.inputs) if op.operands[number] in known]
    if not shared:
        return None
    into = _into(view.maps[shared[0]], known[op.operands[shared[0]]])
    if not _large(view) <= into.keys() or not _large(anchor) <= set(into.values()):
        return None
    moved = _over(view, into, anchor)
    if not all(_same_elements(moved.maps[number], known[op.operands[number]], anchor) for number in shared):
        return None
    return moved


def _over(view: LinalgOp, into: dict[int, int], anchor: LinalgOp) -> LinalgOp:
    """An op over the loops of an anchor, given which of these its own are."""
    zero = ir.AffineConstantExpr.get(0)  # for a loop of one iteration
    dims = [ir.AffineDimExpr.get(into[loop]) if loop in into else zero for loop in range(view.loops)]
    moved = ir.AffineMap.get(anchor.loops, 0, dims)
    maps = tuple(
        ir.AffineMap.get(moved.n_dims, 0, [expression.compose(moved) for expression in indexing.results])
        for indexing in view.maps
    )
    return LinalgOp(view.op, IterationSpace(maps, anchor.reductions), anchor)


def _same_elements(reads: ir.AffineMap, wrote: ir.AffineMap | None, view: LinalgOp) -> bool:
    """Whether two maps from the same loops are equal, apart from how they write an index that is always 0."""
    if wrote is None:
        return False
    pairs = zip(reads.results, wrote.results, strict=True)
    return all(mine == other or (_is_zero(mine, view) and _is_zero(other, view)) for mine, other in pairs)


def _is_zero(expression: ir.AffineExpr, view: LinalgOp) -> bool:
    if isinstance(expression, ir.AffineDimExpr):
        return view.sizes[ir.AffineDimExpr(expression).position] == 1
    return expression == ir.AffineConstantExpr.get(0)


def _large(view: LinalgOp) -> set[int]:
    """The parallel loops of more than one iteration."""
    return {loop for loop, reduces in enumerate(view.reductions) if not reduces and view.sizes[loop] != 1}


def _into(reads: ir.AffineMap, wrote: ir.AffineMap) -> dict[int, int]:
    """From the loops of an op that reads a buffer to those of the op that wrote it; for indices that are loops."""
    into: dict[int, int] = {}
    for mine, other in zip(reads.results, wrote.results, strict=True):
        if isinstance(mine, ir.AffineDimExpr) and isinstance(other, ir.AffineDimExpr):
            into[ir.AffineDimExpr(mine).position] = ir.AffineDimExpr(other).position
    return into
