"""Pads inside of kernels: a buffer that holds a tensor with a border of one number, and which ops can do without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.ir.indexing_maps import coefficient, moves
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.matchers import is_fill
from pipeline.mlir import constant_integer, defining_op, ir

_ALLOCATIONS = ("memref.alloc", "memref.alloca")
_TOUCHES_NOTHING = ("arith.", "affine.apply", "memref.subview", "memref.alloc", "memref.dealloc")


@dataclass(frozen=True)
class Pad:
    """A buffer that is filled with a number, and then in part with another buffer.

    Attributes:
        source: the other buffer.
        low: in which place of each dim of the padded buffer it starts.
        number: what is around it.
        ops: what makes the padded buffer, in program order, and frees it.
        is_read: whether the border may be read.
    """

    source: ir.Value
    low: tuple[int, ...]
    number: ir.Value
    ops: tuple[ir.Operation, ...]
    is_read: bool = True


def pad_of(generic: ir.Operation, operand: int) -> Pad | None:
    """The pad that an input of an op on buffers is and that nothing else reads; None if it is none."""
    buffer = generic.operands[operand]
    allocation = defining_op(buffer)
    if allocation is None or allocation.name not in _ALLOCATIONS or list(generic.operands).count(buffer) > 1:
        return None
    users = [use.owner.operation for use in buffer.uses]
    fill = next((user for user in users if is_fill(user)), None)
    part = next((user for user in users if user.name == "memref.subview"), None)
    if fill is None or part is None:
        return None
    if any(user not in (fill, part, generic) and user.name != "memref.dealloc" for user in users):
        return None
    copies = [use.owner.operation for use in part.results[0].uses]
    if len(copies) != 1 or not _is_copy(copies[0], part.results[0]) or len(part.operands) != 1:
        return None
    block = [op.operation for op in generic.block.operations]
    if any(op not in block for op in (fill, part, copies[0])):
        return None
    between = block[block.index(fill) + 1 : block.index(generic)]
    quiet = all(op == copies[0] or is_fill(op) or op.name.startswith(_TOUCHES_NOTHING) for op in between)
    source = copies[0].operands[0]
    if not quiet or copies[0] not in between or any(op.operands[1] == source for op in between if is_fill(op)):
        return None
    strides = list(ir.DenseI64ArrayAttr(part.attributes["static_strides"]))
    low = tuple(ir.DenseI64ArrayAttr(part.attributes["static_offsets"]))
    if set(strides) != {1} or not ir.MemRefType(source.type).has_static_shape:
        return None
    frees = [user for user in users if user.name == "memref.dealloc"]
    return Pad(source, low, fill.operands[0], (allocation, fill, part, copies[0], *frees))


def _is_copy(op: ir.Operation, destination: ir.Value) -> bool:
    """Whether an op copies its first operand to a buffer, element by element."""
    if op.name == "memref.copy":
        return op.operands[1] == destination
    if op.name != "linalg.generic" or len(op.operands) != 2 or op.operands[1] != destination:
        return False
    block = op.regions[0].blocks[0]
    maps = list(op.attributes["indexing_maps"])
    return (
        len(block.operations) == 1
        and block.operations[0].operation.operands[0] == block.arguments[0]
        and maps[0] == maps[1]
    )


def can_do_without(
    kind: ir.RankedTensorType | ir.MemRefType, view: LinalgOp, operand: int, vector_dim: int, masked_bits: int
) -> bool:
    """Whether vectors along a loop can be loaded of a padded operand under masks: 8, 32 or 64 bits, one by one.

    `masked_bits`: the smallest elements that can be.
    """
    element = kind.element_type
    is_byte = isinstance(element, ir.IntegerType) and element.width == 8 >= masked_bits
    if not (is_byte or isinstance(element, (ir.F32Type, ir.F64Type))) or None in view.sizes:
        return False
    indexing = view.maps[operand]
    linear = all(
        coefficient(expression, dim) is not None for expression in indexing.results for dim in range(view.loops)
    )
    return linear and moves(indexing, vector_dim) == "unit"


def range_of(value: ir.Value) -> tuple[int, int] | None:
    """The least and the largest value of a constant index or of a loop's counter; None if they are not known."""
    number = constant_integer(value)
    if number is not None:
        return number, number
    owner = value.owner
    loop = owner.owner.operation if isinstance(owner, ir.Block) else None
    if loop is None or loop.name != "scf.for" or ir.BlockArgument(value).arg_number:
        return None
    first, last, step = map(constant_integer, list(loop.operands)[:3])
    if first is None or last is None or not step or first >= last:
        return None
    return first, first + (last - 1 - first) // step * step


def index_range(expression: ir.AffineExpr, loops: int, at: Mapping[int, ir.Value]) -> tuple[int, int] | None:
    """The least and the largest value of an index of counters, of which those not in `at` are 0; None if not known."""
    zeros = ir.AffineMap.get(loops, 0, [ir.AffineConstantExpr.get(0)] * loops)
    least = greatest = ir.AffineConstantExpr(expression.compose(zeros)).value
    for dim, value in at.items():
        factor = coefficient(expression, dim)
        if factor == 0:
            continue
        ends = range_of(value)
        if factor is None or ends is None:
            return None
        moved = sorted(factor * end for end in ends)
        least, greatest = least + moved[0], greatest + moved[1]
    return least, greatest
