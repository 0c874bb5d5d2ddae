"""reallocate-strided-casts: slices whose rows are apart are copied where row-major memory is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import constant_integer, defining_op, function, ir, memref, terminator
from pipeline.passmanager.patterns import PatternPass, pattern
from pipeline.runtime.interface.entry_point import ALIGNMENT

_DYNAMIC = ir.ShapedType.get_dynamic_size()

#: What leaves elements in the order in which they are.
_KEEP_ORDER = ("memref.cast", "memref.collapse_shape", "memref.expand_shape")


@dataclass(frozen=True)
class ReallocateStridedCasts(PatternPass):
    """Copy a strided buffer that is cast to a row-major one, unless its elements follow each other.

    one-shot-bufferize takes unknown strides for those of row-major memory where a slice starts at offset 0: the strides
    of memref<?x2x?xf32>, computed from its sizes, are unknown to it, too (castOrReallocMemRefValue). Runs right behind
    it, before casts are folded. Remove when it tells them apart.
    """

    name: ClassVar[str] = "reallocate-strided-casts"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    @pattern("memref.cast")
    def copy(self, cast: ir.Operation) -> bool:
        """cast %slice : memref<?x2x?xf32, strided<[?, ?, 1]>> to memref<?x2x?xf32>   ->   copy %slice, %new"""
        source = cast.operands[0]
        if not _is_row_major(cast.results[0]) or _follow_each_other(source):
            return False
        self.passed(cast, "the slice is copied, since its rows are apart")
        with before(cast):
            replace(cast, [_copied(source, ir.MemRefType(cast.results[0].type))])
        return True


def _is_row_major(buffer: ir.Value) -> bool:
    return isinstance(buffer.type, ir.MemRefType) and isinstance(ir.MemRefType(buffer.type).layout, ir.AffineMapAttr)


def _follow_each_other(buffer: ir.Value) -> bool:
    """Whether the elements of a buffer are side by side, in order: a slice may cut the first dim that has several."""
    if _is_row_major(buffer):
        return True
    op = defining_op(buffer)
    if op is None or op.name not in ("memref.subview", *_KEEP_ORDER) or not _follow_each_other(op.operands[0]):
        return False
    if op.name in _KEEP_ORDER:
        return True
    sizes = _sizes_of_slice(op)
    cut = next((dim for dim, size in enumerate(sizes) if size != 1), len(sizes))
    behind = range(cut + 1, len(sizes))
    return all(sizes[dim] == _size(op.operands[0], dim) for dim in behind) and _steps_are_one(op)


def _sizes_of_slice(op: ir.Operation) -> list[Any]:
    """Those of a subview, with the dims that its result does not have."""
    offsets = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[1]
    computed = iter(op.operands[number] for number in range(1 + offsets, len(op.operands)))
    static = ir.DenseI64ArrayAttr(op.attributes["static_sizes"])
    return [_meaning(next(computed)) if size == _DYNAMIC else size for size in static]


def _steps_are_one(op: ir.Operation) -> bool:
    return set(ir.DenseI64ArrayAttr(op.attributes["static_strides"])) <= {1}


def _size(buffer: ir.Value, dim: int) -> Any:
    """The size of a dim: a number, or what is equal for equal sizes."""
    kind = ir.MemRefType(buffer.type)
    if not kind.is_dynamic_dim(dim):
        return kind.shape[dim]
    op = defining_op(buffer)
    if op is None:
        return "size", buffer, dim
    if op.name == "memref.cast":
        return _size(op.operands[0], dim)
    if op.name == "memref.collapse_shape":
        return _size_of_collapsed(op, dim)
    if op.name == "func.call":
        written = _written(op, ir.OpResult(buffer).result_number)
        return ("size", buffer, dim) if written is None else _size(written, dim)
    if op.name not in ("memref.alloc", "memref.subview"):
        return "size", buffer, dim
    if op.name == "memref.alloc":
        return _meaning(op.operands[sum(kind.is_dynamic_dim(other) for other in range(dim))])
    sizes = _sizes_of_slice(op)
    return sizes[dim] if len(sizes) == kind.rank else ("size", buffer, dim)


def _size_of_collapsed(op: ir.Operation, dim: int) -> Any:
    """That of the one dim of several that has more than one element."""
    run = [ir.IntegerAttr(number).value for number in ir.ArrayAttr(ir.ArrayAttr(op.attributes["reassociation"])[dim])]
    sizes = [size for size in (_size(op.operands[0], number) for number in run) if size != 1]
    return sizes[0] if len(sizes) == 1 else ("size", op.results[0], dim)


def _written(call: ir.Operation, result: int) -> ir.Value | None:
    """The operand in whose memory a result of a kernel is; None if it is in none."""
    module = call
    while module.parent is not None:
        module = module.parent.operation
    callee = function(module, ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
    if not callee.regions[0].blocks:
        return None
    value = terminator(callee.regions[0].blocks[0]).operands[result]
    return call.operands[ir.BlockArgument(value).arg_number] if defining_op(value) is None else None


def _meaning(index: ir.Value) -> Any:
    """A number that is computed; the size of a buffer as that."""
    op = defining_op(index)
    if op is not None and op.name == "memref.dim" and (dim := constant_integer(op.operands[1])) is not None:
        return _size(op.operands[0], dim)
    return "number", index


def _copied(source: ir.Value, kind: ir.MemRefType) -> ir.Value:
    sizes = [memref.DimOp(source, as_index(dim)).result for dim in range(kind.rank) if kind.is_dynamic_dim(dim)]
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT)
    new = memref.AllocOp(kind, sizes, [], alignment=alignment).result
    memref.CopyOp(source, new)
    return new
