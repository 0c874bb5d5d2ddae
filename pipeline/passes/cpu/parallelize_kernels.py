"""parallelize-kernels: long loops of kernels become functions that run a part of their iterations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.trip_count import trip_count
from pipeline.ir.attributes import CHUNK, KERNEL, PARALLEL, TILES
from pipeline.ir.rewriting import before
from pipeline.mlir import captured_values, constant_integer, defining_op, func, ir, remap_operands, symbol_name, walk
from pipeline.passmanager.base import Pass

#: Between the name of a kernel and the number of a function that its loop has become.
CHUNK_OF = "_chunk_"

#: What a loop is taken to do where its number of iterations is not known.
_UNKNOWN_TRIPS = 64

#: The functions that call kernels.
_ENTRIES = ("main", "prepare")

#: What moves a vector takes as long as some instructions: the memory of a loop that is worth sharing is rarely near.
_MOVES, _MOVE_COST = ("vector.load", "vector.store", "vector.maskedload", "vector.maskedstore"), 3

#: Ops of these dialects are instructions, but for constants.
_COMPUTES = ("arith.", "math.", "vector.", "memref.", "llvm.")
_CONSTANT = "arith.constant"
_SCRATCH = "memref.alloca"

#: Which operands of ops that write say where: a buffer, then indices.
_PLACES_WRITTEN = {
    "memref.store": slice(1, None),
    "vector.store": slice(1, None),
    "vector.transfer_write": slice(1, None),
    "vector.maskedstore": slice(0, -2),
    "vector.scatter": slice(0, -2),
    "memref.copy": slice(1, None),
}


@dataclass(frozen=True)
class ParallelizeKernels(Pass):
    """Turn the outermost parallel loops of kernels into functions that run some of their iterations.

    Taken are loops that are marked `pipeline.parallel`, by the passes that wrote them: their iterations write to
    different places, so that results do not depend on who runs them. Sums are never split. A loop stays as it is where
    it has too little to do, and the next one inside of it is tried. Scratch that only the loop uses moves into the
    function, so that every thread has its own; a loop whose iterations all write to the same scratch stays, too.
    """

    name: ClassVar[str] = "parallelize-kernels"

    least: int = field(default=50_000, metadata={"help": "how many instructions a loop must take, about"})
    trips: int = field(default=8, metadata={"help": "with how many iterations a loop is taken before any inside of it"})

    def run(self, op: ir.Operation) -> None:
        """Takes the loops out of all kernels of a module, and out of the entries, which copy."""
        for kernel in walk(op, "func.func"):
            name = symbol_name(kernel)
            if KERNEL not in kernel.attributes and name not in _ENTRIES:
                continue
            for number, loop in enumerate(self._chosen(kernel)):
                self.passed(loop, f"{trip_count(loop) or 'unknown'} iterations are shared by threads")
                _outline(loop, kernel, f"{name}{CHUNK_OF}{number}")

    def _chosen(self, kernel: ir.Operation) -> list[ir.Operation]:
        """The loops to be taken, none inside of another."""
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            op = op.operation
            if op.name != "scf.for" or PARALLEL not in op.attributes:
                return ir.WalkResult.ADVANCE
            loop = self._best(op)
            if loop is None:
                return ir.WalkResult.SKIP
            found.append(loop)
            return ir.WalkResult.SKIP

        kernel.walk(visit, ir.WalkOrder.PRE_ORDER)
        return found

    def _best(self, loop: ir.Operation) -> ir.Operation | None:
        """The loop or one that it consists of: the outermost with enough iterations, else the one with most."""
        best: ir.Operation | None = None
        most = 1
        for candidate in _nest(loop):
            if _cost(candidate, self.least) < self.least:
                break
            trips = trip_count(candidate) or _UNKNOWN_TRIPS
            if trips <= most:
                continue
            problem = _obstacle(candidate)
            if problem:
                self.missed(candidate, problem)
                continue
            best, most = candidate, trips
            if trips >= self.trips:
                break
        return best


def _nest(loop: ir.Operation) -> list[ir.Operation]:
    """The loop, the only marked loop directly inside of it, the only one in that, and so on."""
    nest = [loop]
    while True:
        inner = [
            op.operation
            for op in nest[-1].regions[0].blocks[0].operations
            if op.operation.name == "scf.for" and PARALLEL in op.operation.attributes
        ]
        if len(inner) != 1:
            return nest
        nest.append(inner[0])


def _cost(op: ir.Operation, enough: int) -> int:
    """About how many instructions an op takes, with what is inside of it; counted until they are enough."""
    name = op.name
    if name.startswith("linalg."):
        return _linalg_cost(op)
    if name in _MOVES:
        return _MOVE_COST
    if name in ("scf.for", "scf.while"):
        trips = trip_count(op) if name == "scf.for" else None
        trips = _UNKNOWN_TRIPS if trips is None else trips
        return trips * _cost_inside(op, -(-enough // trips)) if trips else 0
    own = name.startswith(_COMPUTES) and name != _CONSTANT
    return own + _cost_inside(op, enough - own)


def _cost_inside(op: ir.Operation, enough: int) -> int:
    total = 0
    for inner in (inner.operation for region in op.regions for block in region.blocks for inner in block.operations):
        if total >= enough:
            break
        total += _cost(inner, enough - total)
    return total


def _linalg_cost(op: ir.Operation) -> int:
    cost = 1
    for operand in op.operands:
        if isinstance(operand.type, ir.ShapedType):
            shape = ir.ShapedType(operand.type)
            sizes = [
                _UNKNOWN_TRIPS if shape.is_dynamic_dim(dim) else shape.get_dim_size(dim) for dim in range(shape.rank)
            ]
            elements = 1
            for size in sizes:
                elements *= size
            cost = max(cost, elements)
    return cost


def _obstacle(loop: ir.Operation) -> str | None:
    """Why threads may not share the iterations; None if they may."""
    if list(loop.results):
        return "the loop hands values from one iteration to the next"
    if constant_integer(loop.operands[2]) is None:
        return "the loop has a step that is not known"
    captured = captured_values(loop)
    for value in captured:
        if not _can_be_passed(value.type):
            return f"a {value.type} cannot be passed to a function"
    if ir.StringAttr(loop.attributes[PARALLEL]).value == TILES:
        for value in captured:
            if _is_made_by_kernel(value) and not _belongs_to(value, loop):
                return "scratch is used outside of the loop, too"
    elif _write_to_one_place(loop, {value for value in captured if _is_made_by_kernel(value)}):
        return "all iterations write to the same scratch"
    return None


def _can_be_passed(kind: ir.Type) -> bool:
    return isinstance(kind, (ir.MemRefType, ir.IndexType, ir.IntegerType, ir.FloatType, ir.VectorType))


def _is_made_by_kernel(value: ir.Value) -> bool:
    """Whether it is a buffer that is no argument of the kernel's, nor a view of one."""
    producer = defining_op(value)
    while producer is not None and isinstance(value.type, ir.MemRefType) and producer.name.startswith("memref."):
        if producer.name in (_SCRATCH, "memref.alloc"):
            return True
        if not list(producer.operands):
            return False
        value = producer.operands[0]
        producer = defining_op(value)
    return False


def _write_to_one_place(loop: ir.Operation, scratch: set[ir.Value]) -> bool:
    """Whether some iterations write where others do: to these buffers, at indices that the loop's own is no part of."""
    if not scratch:
        return False
    moving = {loop.regions[0].blocks[0].arguments[0]}
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        op = op.operation
        where = list(op.operands)[_PLACES_WRITTEN[op.name]] if op.name in _PLACES_WRITTEN else []
        found = found or (any(value in scratch for value in where) and not any(value in moving for value in where))
        if any(value in moving for value in op.operands):
            moving.update(argument for region in op.regions for block in region.blocks for argument in block.arguments)
        if any(value in moving for value in captured_values(op)):
            moving.update(op.results)
        scratch.update(view for view in op.results if any(value in scratch for value in op.operands))
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    for op in loop.regions[0].blocks[0].operations:
        op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _belongs_to(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether it is scratch on the stack, of known size, that nothing outside of the loop uses."""
    producer = defining_op(value)
    if producer is None or producer.name != _SCRATCH or list(producer.operands):
        return False
    return all(_is_in(use.owner.operation, loop) for use in value.uses)


def _is_in(op: ir.Operation, loop: ir.Operation) -> bool:
    parent = op
    while parent is not None:
        if parent.operation == loop:
            return True
        parent = parent.operation.parent
    return False


def _outline(loop: ir.Operation, kernel: ir.Operation, name: str) -> None:
    """for %i = %a to %b { ... }  =>  call @name(%a, %b, ...)"""
    first, last, step = list(loop.operands)[:3]
    captured = [value for value in captured_values(loop) if value not in (first, last, step)]
    captured += [value for value in (first, last) if _is_read_inside(value, loop)]
    copied = [value for value in captured if _is_copied(value, loop)]
    passed = [value for value in captured if value not in copied]
    index = ir.IndexType.get()
    kinds = [index, index, *(value.type for value in passed)]
    with loop.location, ir.InsertionPoint(kernel):
        chunk = func.FuncOp(name, ir.FunctionType.get(kinds, []), visibility="private").operation
        chunk.attributes[CHUNK] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), constant_integer(step))
        block = ir.Block.create_at_start(chunk.regions[0], kinds)
    known = dict(zip(passed, list(block.arguments)[2:], strict=True))
    with loop.location, ir.InsertionPoint(block):
        for value in [*copied, step]:
            producer = defining_op(value)
            assert producer is not None
            if value not in known:
                known[value] = producer.clone().results[0]
        part = loop.clone()
        del part.attributes[PARALLEL]
        func.ReturnOp([])
    remap_operands(part, known)
    part.operands[0], part.operands[1] = block.arguments[0], block.arguments[1]
    with before(loop):
        func.CallOp([], ir.FlatSymbolRefAttr.get(name), [first, last, *passed])
    loop.erase()
    for value in copied:
        producer = defining_op(value)
        if producer is not None and next(iter(value.uses), None) is None:
            producer.erase()


def _is_read_inside(value: ir.Value, loop: ir.Operation) -> bool:
    return any(use.owner.operation != loop and _is_in(use.owner.operation, loop) for use in value.uses)


def _is_copied(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether the function gets an op of its own instead of the value: constants, and scratch of the loop's."""
    producer = defining_op(value)
    return producer is not None and (producer.name == _CONSTANT or _belongs_to(value, loop))
