"""Has a value computed in the memory of the argument that it is the new value of; what the pass update-in-place does.

What becomes of it is bufferization's to decide: it copies what is read after it was written. So what is asked here is
whether it pays, not whether it is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.analysis.iter_args import carries_of, yielded
from pipeline.analysis.kernel_ops import computing_ops
from pipeline.analysis.loop_alignment import align
from pipeline.analysis.op_naming import group_label
from pipeline.ir.attributes import CALLS
from pipeline.ir.destination_passing import tied_operand
from pipeline.ir.reshapes import RESHAPES
from pipeline.ir.rewriting import before, unused_name, update_signature
from pipeline.mlir import called_function, callee, calls_of, defining_op, function, ir, ops_of, symbol_name, tensor
from pipeline.passes.bufferization.updated_arguments import VIEWS, views
from pipeline.remarks import source_line


class Refused(Exception):
    """Why a value is computed elsewhere, and copied."""


@dataclass(frozen=True)
class _Step:
    """A kernel's call that writes to a new tensor, and may write to the argument's memory.

    Attributes:
        call: the call.
        operand: the number of the operand that it writes to.
        reshapes: what is between its result and the new value, last first.
    """

    call: ir.Operation
    operand: int
    reshapes: tuple[ir.Operation, ...]


@dataclass
class _Plan:
    """What is to be done, and what is written over by then: each an old value and the op that does."""

    steps: list[_Step] = field(default_factory=list)
    writes: list[tuple[ir.Value, ir.Operation]] = field(default_factory=list)


class OwnMemory:
    """Does so for one function."""

    def __init__(self, main: ir.Operation):
        self._main = main
        self._module = main.parent.operation
        self._order: dict[ir.Operation, int] = {}
        self._fused: dict[tuple[str, int, int], str] = {}

    def compute_there(self, value: ir.Value, argument: ir.BlockArgument) -> None:
        """Has `value` computed in the memory of `argument`; raises `Refused` if that is not possible, or a loss."""
        plan = _Plan()
        self._order = {op: number for number, op in enumerate(ops_of(self._main))}
        _find(value, argument, (), plan)
        for old, writer in plan.writes:
            self._check_readers(old, writer)
        for step in plan.steps:
            self._check_step(step, argument)
        for step in plan.steps:
            self._take(step, argument)

    def finish(self) -> None:
        """Erases the kernels that nothing calls any more."""
        called = set(calls_of(self._module)) if self._fused else set()
        for name, *_ in list(self._fused):
            if name not in called:
                function(self._module, name).erase()
                called.add(name)

    def _check_readers(self, old: ir.Value, writer: ir.Operation) -> None:
        """Refuses what would have to be kept: an old value that is read after `writer`."""
        for view in views(old):
            for use in view.uses:
                reader = use.owner.operation
                if reader == writer or reader.name in (*VIEWS, "tensor.dim") or _exclude_each_other(reader, writer):
                    continue
                if self._order[reader] > self._order[writer]:
                    raise Refused(f"{_called(reader)} reads the old value after that")

    def _check_step(self, step: _Step, argument: ir.BlockArgument) -> None:
        """Refuses a kernel that reads the old value in another way than each element before it writes that."""
        read = [number for number, operand in enumerate(step.call.operands) if operand in views(argument)]
        if not read:
            return
        if step.reshapes or len(read) > 1 or step.call.operands[read[0]] != argument:
            raise Refused(f"{_called(step.call)} reads views of the old value")
        kernel = called_function(step.call)
        if CALLS in kernel.attributes or not _reads_before_it_writes(kernel, read[0], step.operand):
            raise Refused(f"{_called(step.call)} reads elements of the old value after it has written others")

    def _take(self, step: _Step, argument: ir.BlockArgument) -> None:
        """k(.., empty) -> k(.., argument)."""
        empty = defining_op(step.call.operands[step.operand])
        assert empty is not None
        read = [number for number, operand in enumerate(step.call.operands) if operand == argument]
        if read:
            self._fuse(step, read[0])
        else:
            with before(step.call):
                step.call.operands[step.operand] = _reshaped(argument, step.reshapes)
        empty.erase()

    def _fuse(self, step: _Step, read: int) -> None:
        """k(x, y, empty) -> k_in_place(x, y), of which x is read and written."""
        call = step.call
        kernel = called_function(call)
        key = symbol_name(kernel), read, step.operand
        if key not in self._fused:
            self._fused[key] = _fused(kernel, read, step.operand)
        operands = [operand for number, operand in enumerate(call.operands) if number != step.operand]
        attributes = {name: call.attributes[name] for name in call.attributes}
        attributes["callee"] = ir.FlatSymbolRefAttr.get(self._fused[key])
        with before(call):
            made = ir.Operation.create("func.call", [result.type for result in call.results], operands, attributes)
        for old, new in zip(call.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        call.erase()


def _find(value: ir.Value, argument: ir.BlockArgument, reshapes: tuple[ir.Operation, ...], plan: _Plan) -> None:
    """Goes from a new value back to the argument, or to the tensors that kernels compute it into."""
    if value == argument:
        return
    op = defining_op(value)
    if op is None:
        raise Refused("it becomes what another argument is")
    if op.name in RESHAPES:
        _find(op.operands[0], argument, (*reshapes, op), plan)
    elif op.name == "scf.if":
        for region in op.regions:
            _find(yielded(region.blocks[0])[ir.OpResult(value).result_number], argument, reshapes, plan)
    elif op.name in ("scf.for", "scf.while"):
        _find(_through_loop(op, value, plan), argument, reshapes, plan)
    else:
        _find_destination(op, value, argument, reshapes, plan)


def _through_loop(loop: ir.Operation, value: ir.Value, plan: _Plan) -> ir.Value:
    """What a loop starts from that updates it in place in each round."""
    carry = next((candidate for candidate in carries_of(loop) or [] if candidate.result == value), None)
    if carry is None or not (carry.is_kept or carry.is_updated_in_place):
        raise Refused("a loop computes it anew in each round, in buffers of its own")
    plan.writes.append((carry.initial, loop))
    return carry.initial


def _find_destination(
    op: ir.Operation, value: ir.Value, argument: ir.BlockArgument, reshapes: tuple[ir.Operation, ...], plan: _Plan
) -> None:
    destination = tied_operand(op, value)
    if destination is None:
        raise Refused(f"{_called(op)} has no destination")
    empty = defining_op(destination)
    if empty is None or empty.name != "tensor.empty":
        plan.writes.append((destination, op))
        _find(destination, argument, reshapes, plan)
        return
    if op.name != "func.call" or len(list(destination.uses)) > 1:
        raise Refused(f"{_called(op)} computes it into a tensor that others need")
    if not all(ir.ShapedType(reshaped.type).has_static_shape for reshaped in [value] * bool(reshapes)):
        raise Refused("it is reshaped, and its size is known at run time only")
    plan.writes.append((argument, op))
    if all(step.call != op for step in plan.steps):  # two branches may hand the same value on
        plan.steps.append(_Step(op, list(op.operands).index(destination), reshapes))


def _reads_before_it_writes(kernel: ir.Operation, read: int, written: int) -> bool:
    """Whether a kernel has read each element of one of its arguments for the last time when it writes that of another.

    So that one buffer can be both.
    """
    source, target = (kernel.regions[0].blocks[0].arguments[number] for number in (read, written))
    ops = computing_ops(kernel)
    if ops is None or source.type != target.type:
        return False
    numbers = {view.op: number for number, view in enumerate(ops)}
    uses = [use for argument in (source, target) for use in argument.uses]
    if any(use.owner.operation not in numbers for use in uses) or len(list(target.uses)) != 1:
        return False
    places = [(numbers[use.owner.operation], use.operand_number) for use in uses]
    *readers, (writer, output) = places
    identity = ir.AffineMap.get_identity(ir.RankedTensorType(source.type).rank)
    if any(ops[number].maps[operand] != identity for number, operand in places):
        return False
    if not ops[writer].op.name.startswith("linalg.") or output < ops[writer].inputs:
        return False
    if not ops[writer].is_elementwise or any(number > writer for number, _ in readers):
        return False
    alignment = align(ops)
    return all(alignment.in_step(number, writer) for number, _ in readers)


def _fused(kernel: ir.Operation, read: int, written: int) -> str:
    """A kernel like `kernel` that writes to what it reads; returns its name."""
    name = unused_name(kernel.parent.operation, f"{symbol_name(kernel)}_in_place")
    with kernel.location, ir.InsertionPoint(kernel):
        made = kernel.clone()
    made.attributes["sym_name"] = ir.StringAttr.get(name)
    block = made.regions[0].blocks[0]
    block.arguments[written].replace_all_uses_with(block.arguments[read])
    block.erase_argument(written)
    update_signature(made)
    return name


def _reshaped(argument: ir.Value, reshapes: tuple[ir.Operation, ...]) -> ir.Value:
    """The argument as what is reshaped to its shape by `reshapes`, last first."""
    for op in reshapes:
        source = ir.RankedTensorType(op.operands[0].type)
        groups = op.attributes["reassociation"]
        if op.name == "tensor.expand_shape":
            argument = tensor.CollapseShapeOp(source, argument, groups).result
        else:
            argument = tensor.ExpandShapeOp(source, argument, groups, [], source.shape).result
    return argument


def _exclude_each_other(one: ir.Operation, other: ir.Operation) -> bool:
    """Whether two ops are in different branches of the same scf.if."""
    branches = dict(_branches(one))
    return any(branch in branches and branches[branch] != number for branch, number in _branches(other))


def _branches(op: ir.Operation) -> Iterator[tuple[ir.Operation, int]]:
    """The branches that an op is in: an scf.if and the number of the region."""
    while op.name != "func.func":
        parent = op.parent.operation
        if parent.name == "scf.if":
            yield parent, next(n for n, region in enumerate(parent.regions) if op.block in list(region.blocks))
        op = parent


def _called(op: ir.Operation) -> str:
    """An op in remarks."""
    if op.name == "func.return":
        return "the caller"
    label = callee(op) if op.name == "func.call" else group_label([op])
    line = source_line(op.location)
    return f"{label} at {line}" if line else label
