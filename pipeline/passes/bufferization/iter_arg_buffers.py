"""The buffers of carried tensors: which there are, and the loop that carries where they lie instead of the tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.iter_args import Carry
from pipeline.ir.constants import as_index
from pipeline.ir.element_types import byte_size
from pipeline.ir.rewriting import before, copy_attributes, replace
from pipeline.mlir import bufferization, has_one_use, ir, memref, scf
from pipeline.passes.bufferization.destinations import place_of, put, shape_of
from pipeline.runtime.interface.entry_point import ALIGNMENT


@dataclass(frozen=True)
class Rotation:
    """Which carries take turns, and what each takes over.

    Attributes:
        carries: the carries; each has the buffer of its own number in this list at first.
        takes: for each, the number of the carry whose buffer it has in the next round; None for a spare buffer.
        spares: for each that takes a spare buffer, in order, the carry whose buffer is the spare one then.
    """

    carries: list[Carry]
    takes: list[int | None]
    spares: list[int]

    @staticmethod
    def of(carries: list[Carry]) -> Rotation:
        """Values that go from carry to carry stay where they are; what is computed goes to a spare buffer."""
        takes: list[int | None] = []
        for carry in carries:
            source = next(
                (
                    number
                    for number, other in enumerate(carries)
                    if carry.following == other.argument and carry.kind == other.kind and number not in takes
                ),
                None,
            )
            takes.append(source)
        free = [number for number in range(len(carries)) if number not in takes]
        spares = []
        for carry, source in zip(carries, takes, strict=True):
            if source is None:
                spares.append(next(number for number in free if carries[number].kind == carry.kind))
                free.remove(spares[-1])
        return Rotation(carries, takes, spares)

    @property
    def computed(self) -> list[Carry]:
        """The carries that take a spare buffer."""
        return [carry for carry, source in zip(self.carries, self.takes, strict=True) if source is None]

    @property
    def slots(self) -> int:
        """How many buffers there are."""
        return len(self.carries) + len(self.spares)

    def offsets(self) -> list[int]:
        """Where the buffers of the carries lie, then the spare ones, then where the last of them ends."""
        found = [0]
        for carry in [*self.carries, *self.computed]:
            size = byte_size(carry.kind) or 0
            found.append(found[-1] + -(-size // ALIGNMENT) * ALIGNMENT)
        return found


def rotate(loop: ir.Operation, plan: Rotation) -> None:
    """for (h = a) { yield f(h) } -> for (here = 0, there = n) { f(view here) into view there; yield there, here }."""
    *offsets, size = plan.offsets()
    with before(_start(loop, plan)):
        byte = ir.IntegerType.get_signless(8)
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT)
        pool = memref.AllocOp(ir.MemRefType.get([size], byte), [], [], alignment=alignment).result
        places = [as_index(offset) for offset in offsets]
        buffers = [_view(pool, place, carry.kind) for carry, place in zip(plan.carries, places, strict=False)]
    initial = list(loop.operands) if loop.name == "scf.while" else list(loop.operands)[3:]
    for carry, buffer, place in zip(plan.carries, buffers, places, strict=False):
        if _is_moved(carry, loop):
            _put(carry.initial, buffer)
        with before(loop):
            _materialize(carry.initial, buffer)
        initial[carry.number] = place
    made = _loop(loop, [*initial, *places[len(plan.carries) :]], plan)
    if loop.name == "scf.while":
        _fill(loop.regions[0].blocks[0], made.regions[0].blocks[0], plan, pool, in_condition=True)
        _fill(loop.regions[1].blocks[0], made.regions[1].blocks[0], plan, pool)
    else:
        _fill(loop.regions[0].blocks[0], made.regions[0].blocks[0], plan, pool)
    with before(loop):  # which is right behind the new one
        results = list(made.results)[: len(loop.results)]
        for carry in plan.carries:
            last = _tensor(_view(pool, results[carry.place], carry.kind), carry.kind)
            results[carry.place] = _own(last, carry.kind) if _leaves(carry.result, loop) else last
    replace(loop, results)


def _leaves(result: ir.OpResult, loop: ir.Operation) -> bool:
    """Whether the result of a loop in a branch or a loop might be handed on to what is outside of that.

    Who gets a buffer there frees it, and the buffers of a loop are one allocation.
    """
    return loop.parent.operation.name != "func.func" and not all(map(_reads, result.uses))


def _reads(use: ir.OpOperand) -> bool:
    """Whether a use only reads a tensor, and hands on nothing that shares its memory."""
    op = use.owner.operation
    if op.name in ("tensor.insert_slice", "tensor.insert", "bufferization.materialize_in_destination"):
        return use.operand_number == 0
    return op.name in ("func.call", "tensor.extract")


def _own(tensor: ir.Value, kind: ir.Type) -> ir.Value:
    """A copy of a tensor in a buffer of its own."""
    shape = ir.RankedTensorType(kind)
    memory = memref.AllocOp(ir.MemRefType.get(shape.shape, shape.element_type), [], []).result
    _materialize(tensor, memory)
    return bufferization.ToTensorOp(kind, memory, restrict=True, writable=True).result


def _start(loop: ir.Operation, plan: Rotation) -> ir.Operation:
    """The first op that needs the buffers: the loop, or what makes the place of an initial value."""
    ops = [op.operation for op in loop.block.operations]
    places = [place_of(carry.initial) for carry in plan.carries if _is_moved(carry, loop)]
    return min([loop, *(place for place in places if place is not None)], key=ops.index)


def _is_moved(carry: Carry, loop: ir.Operation) -> bool:
    """Whether an initial value, of which the loop is the only user, can be computed into the carry's buffer."""
    place = place_of(carry.initial)
    if place is None or place.block != loop.block or shape_of(place) != list(ir.ShapedType(carry.kind).shape):
        return False
    return has_one_use(carry.initial)


def _put(value: ir.Value, buffer: ir.Value) -> None:
    """Has `value` computed into `buffer`, where that is possible."""
    place = place_of(value)
    if place is not None and shape_of(place) == list(ir.MemRefType(buffer.type).shape):
        put(place, buffer)


def _materialize(value: ir.Value, buffer: ir.Value) -> None:
    bufferization.MaterializeInDestinationOp(None, value, buffer, restrict=True, writable=True)


def _view(pool: ir.Value, place: ir.Value, kind: ir.Type) -> ir.Value:
    tensor = ir.RankedTensorType(kind)
    return memref.ViewOp(ir.MemRefType.get(tensor.shape, tensor.element_type), pool, place, []).result


def _tensor(buffer: ir.Value, kind: ir.Type) -> ir.Value:
    """A buffer as a tensor that is read."""
    return bufferization.ToTensorOp(kind, buffer, restrict=True).result


def _loop(loop: ir.Operation, initial: Sequence[ir.Value], plan: Rotation) -> ir.Operation:
    """A loop in front of `loop` that carries places in the stead of tensors, its blocks without ops."""
    index = ir.IndexType.get()
    with before(loop):
        if loop.name == "scf.for":
            made = scf.ForOp(*list(loop.operands)[:3], list(initial)).operation
        else:
            types = [result.type for result in loop.results]
            for carry in plan.carries:
                types[carry.place] = index
            types += [index] * len(plan.spares)
            made = scf.WhileOp(types, list(initial)).operation
            ir.Block.create_at_start(made.regions[0], [value.type for value in initial])
            ir.Block.create_at_start(made.regions[1], types)
    copy_attributes(loop, made)
    return made


def _fill(old: ir.Block, new: ir.Block, plan: Rotation, pool: ir.Value, in_condition: bool = False) -> None:
    """Moves the ops of a loop's block to the new one, which finds the carried tensors where it is told they lie."""
    *ops, terminator = [op.operation for op in old.operations]
    numbers = [carry.number if in_condition else carry.argument.arg_number for carry in plan.carries]
    places = [new.arguments[number] for number in numbers]
    spares = list(new.arguments)[len(old.arguments) :]
    with terminator.location, ir.InsertionPoint(new):
        for carry, place in zip(plan.carries, places, strict=True):
            tensor = _tensor(_view(pool, place, carry.kind), carry.kind)
            old.arguments[place.arg_number].replace_all_uses_with(tensor)
        targets = [_view(pool, place, carry.kind) for carry, place in zip(plan.computed, spares, strict=True)]
    for argument in old.arguments:
        if argument.arg_number not in numbers:
            argument.replace_all_uses_with(new.arguments[argument.arg_number])
    for op in ops:
        new.append(op)
    if in_condition:
        _hand_on(new, plan, terminator, places, spares)
        return
    for carry, target in zip(plan.computed, targets, strict=True):
        value = terminator.operands[carry.number]
        if _is_in(place_of(value), new):
            _put(value, target)
        with terminator.location, ir.InsertionPoint(new):
            _materialize(value, target)
    _yield(new, plan, terminator, places, spares)


def _hand_on(
    new: ir.Block, plan: Rotation, terminator: ir.Operation, places: Sequence[ir.Value], spares: Sequence[ir.Value]
) -> None:
    """The condition of a while loop, which hands everything on as it is."""
    flag, *handed = terminator.operands
    for carry, place in zip(plan.carries, places, strict=True):
        handed[carry.place] = place
    with terminator.location, ir.InsertionPoint(new):
        scf.ConditionOp(flag, [*handed, *spares])


def _yield(
    new: ir.Block, plan: Rotation, terminator: ir.Operation, places: Sequence[ir.Value], spares: Sequence[ir.Value]
) -> None:
    """The end of a round: what was computed lies in the spare buffers, what is free becomes spare."""
    handed = list(terminator.operands)
    free = iter(spares)
    for carry, source in zip(plan.carries, plan.takes, strict=True):
        handed[carry.number] = next(free) if source is None else places[source]
    with terminator.location, ir.InsertionPoint(new):
        scf.YieldOp([*handed, *(places[number] for number in plan.spares)])


def _is_in(place: ir.Operation | None, block: ir.Block) -> bool:
    """Whether an op lies in a block or inside of an op of it."""
    while place is not None and place.block != block:
        parent = place.parent
        place = None if parent is None or parent.operation.name == "builtin.module" else parent.operation
    return place is not None
