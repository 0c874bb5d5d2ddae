"""fold-pads-into-kernels: kernels read what is padded, not a padded copy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.attributes import KERNEL
from pipeline.ir.linalg_op import any_structured, slides
from pipeline.ir.rewriting import is_unused, update_signature
from pipeline.mlir import called_function, callee, calls_of, defining_op, function, ir, linalg, tensor, walk
from pipeline.passes.cpu.microkernel.pad_pattern import can_do_without
from pipeline.passes.cpu.microkernel.pooled_rows import pooled_rows_of, reads_unpadded
from pipeline.passes.cpu.microkernel.window_unrolling import vector_loop
from pipeline.passmanager.base import Pass

_INSERT = "tensor.insert_slice"
_KINDS = ("conv", "pooling")


@dataclass(frozen=True)
class FoldPadsIntoKernels(Pass):
    """Take pads into the kernels of depthwise convolutions and pools that read them.

    kernel(insert_slice(x, fill(0)))  ->  kernel(x) { insert_slice(x, fill(0)) }

    There tile-and-vectorize loads from x under masks, and nothing is copied. Taken are pads with a number, of known
    sizes, of f32, f64 or bytes, where vectors run one by one along the innermost dim, if all calls of a kernel pad
    alike; and those of pools with strides whose rows are folded before, by a number that changes nothing.
    """

    name: ClassVar[str] = "fold-pads-into-kernels"

    masked_bits: int = field(default=8, metadata={"help": "the smallest elements that can be loaded under a mask"})

    def run(self, op: ir.Operation) -> None:
        """Changes all kernels of a module and their calls."""
        for name, callers in calls_of(op).items():
            kernel = function(op, name)
            if KERNEL not in kernel.attributes or _word(kernel, KERNEL) not in _KINDS:
                continue
            for number in range(len(callers[0].operands)):
                pads = [_pad_behind(call.operands[number]) for call in callers]
                if any(pad is not None for pad in pads):
                    self._absorb(kernel, number, callers, pads)
        _erase_unused_fills(op)

    def _absorb(self, kernel: ir.Operation, number: int, calls: list[ir.Operation], pads: list[_Pad | None]) -> None:
        argument = kernel.regions[0].blocks[0].arguments[number]
        first = pads[0]
        reason = _why_not(argument, first, self.masked_bits)
        if first is None or any(pad is None or pad.key != first.key for pad in pads):
            reason = "its calls pad in different ways"
        if first is None or reason:
            self.missed(calls[0], f"reads a padded copy of its operand {number}: {reason}")
            return
        self.passed(calls[0], f"pads its operand {number} itself")
        for call, pad in zip(calls, pads, strict=True):
            insertion = defining_op(call.operands[number])
            assert pad is not None and insertion is not None
            call.operands[number] = pad.source
            if is_unused(insertion.results[0]):
                insertion.erase()
        first.move_into(kernel, number)


@dataclass(frozen=True)
class _Pad:
    """tensor.insert_slice(source, fill(number)), without strides.

    Attributes:
        padded: the type of the whole.
        offsets: where the source starts.
    """

    source: ir.Value
    padded: ir.RankedTensorType
    offsets: tuple[int, ...]
    number: ir.Attribute

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for pads of the same form."""
        return str(self.source.type), str(self.padded), str(self.offsets), str(self.number)

    def move_into(self, kernel: ir.Operation, number: int) -> None:
        """Has a kernel take the source, and pad it itself."""
        block = kernel.regions[0].blocks[0]
        argument, sizes = block.arguments[number], list(ir.RankedTensorType(self.source.type).shape)
        with kernel.location, ir.InsertionPoint.at_block_begin(block):
            value = ir.Operation.create(
                "arith.constant", [self.padded.element_type], attributes={"value": self.number}
            ).result
            empty = tensor.EmptyOp(list(self.padded.shape), self.padded.element_type).result
            filled = linalg.fill(value, outs=[empty])
            whole = tensor.InsertSliceOp(
                argument, filled, [], [], [], list(self.offsets), sizes, [1] * len(sizes)
            ).operation
        argument.replace_all_uses_except(whole.results[0], whole)
        argument.set_type(self.source.type)
        update_signature(kernel)


def _pad_behind(value: ir.Value) -> _Pad | None:
    """The pad that a value is; None if it is none."""
    insertion = defining_op(value)
    if insertion is None or insertion.name != _INSERT or len(insertion.operands) != 2:
        return None
    source, target = insertion.operands
    number = _filled_with(target)
    offsets, sizes, strides = (
        list(ir.DenseI64ArrayAttr(insertion.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    kind = ir.RankedTensorType(source.type)
    if number is None or set(strides) != {1} or list(kind.shape) != sizes or not kind.has_static_shape:
        return None
    padded = ir.RankedTensorType(value.type)
    return _Pad(source, padded, tuple(offsets), number) if padded.has_static_shape else None


def _filled_with(value: ir.Value) -> ir.Attribute | None:
    """The constant that a tensor is filled with, by an op or a kernel of one; None if it is not."""
    fill = defining_op(value)
    if fill is not None and fill.name == "func.call":
        fill = _only_fill(called_function(fill))
    if fill is None or fill.name != "linalg.fill":
        return None
    number = defining_op(fill.operands[0])
    return number.attributes["value"] if number is not None and number.name == "arith.constant" else None


def _only_fill(kernel: ir.Operation) -> ir.Operation | None:
    """The linalg.fill that a kernel consists of; None if it does anything else."""
    if not len(kernel.regions[0].blocks):
        return None
    ops = [op.operation for op in kernel.regions[0].blocks[0].operations]
    fills = [op for op in ops if op.name == "linalg.fill"]
    plain = {"arith.constant", "tensor.empty", "linalg.fill", "func.return"}
    return fills[0] if len(fills) == 1 and all(op.name in plain for op in ops) else None


def _why_not(argument: ir.BlockArgument, pad: _Pad | None, masked_bits: int) -> str | None:
    """Why a kernel cannot do without the padded copy that it takes; None if it can."""
    uses = list(argument.uses)
    if len(uses) != 1:
        return "several ops read it"
    user, operand = uses[0].owner.operation, uses[0].operand_number
    view = any_structured(user)
    if view is None or operand >= view.inputs:
        return f"{user.name} reads it"
    if not slides(view):
        return f"{user.name} sums over more than windows"
    along = vector_loop(view)
    kind = ir.RankedTensorType(argument.type)
    if along is not None and can_do_without(kind, view, operand, along, masked_bits):
        return None
    pooled = None if along is None or operand else pooled_rows_of(view, along)
    if pooled and pad and reads_unpadded(pooled, view, pad.source.type, pad.offsets, pad.number):
        return None
    return "its vectors cannot be loaded under masks"


def _erase_unused_fills(module: ir.Operation) -> None:
    """Erases calls of kernels that only fill, if nothing reads the result any more, and kernels that nobody calls."""
    for call in reversed(walk(module, "func.call")):
        if not all(map(is_unused, call.results)) or _only_fill(function(module, callee(call))) is None:
            continue
        name = callee(call)
        call.erase()
        if name not in calls_of(module):
            function(module, name).erase()


def _word(op: ir.Operation, name: str) -> str:
    return ir.StringAttr(op.attributes[name]).value
