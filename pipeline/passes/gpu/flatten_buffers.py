"""flatten-buffers: the buffers of a dispatch become one-dimensional, with indices computed from sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import CompileError
from pipeline.ir.attributes import DISPATCH, THREADS
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import before, replace, update_signature
from pipeline.mlir import arith, ir, memref, nvgpu, refusal, vector, walk
from pipeline.passmanager.base import Pass

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


@dataclass(frozen=True)
class FlattenBuffers(Pass):
    """Make each buffer argument of a dispatch a `memref<?xT>`: what devices have is rows of elements.

    @d(%x: memref<?x4xf32>, %k: i64)  =>  @d(%x: memref<?xf32>, %k: i64, %size: index)

    After the arguments come, as numbers, the sizes, offsets and strides of the buffers that are known at run time only,
    in that order for each buffer. The argument that says how many threads there are goes: the launch knows.
    """

    name: ClassVar[str] = "flatten-buffers"
    mandatory: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Flattens every dispatch of the module."""
        for function in walk(op, "func.func"):
            if DISPATCH in function.attributes:
                _flatten(function)


def _flatten(function: ir.Operation) -> None:
    block = function.regions[0].blocks[0]
    _drop_thread_count(function, block)
    for number in range(len(block.arguments)):
        argument = block.arguments[number]
        if isinstance(argument.type, ir.MemRefType):
            kind = ir.MemRefType(argument.type)
            _StridedBuffer(argument, kind, block).flatten()
    update_signature(function)
    if "arg_attrs" in function.attributes:
        del function.attributes["arg_attrs"]


def _drop_thread_count(function: ir.Operation, block: ir.Block) -> None:
    if "arg_attrs" in function.attributes and THREADS in ir.ArrayAttr(function.attributes["arg_attrs"])[0]:
        block.erase_argument(0)


class _StridedBuffer:
    """A buffer argument with its sizes, offset and strides as values at the start of the function."""

    def __init__(self, argument: ir.BlockArgument, kind: ir.MemRefType, block: ir.Block):
        self.argument = argument
        with argument.owner.owner.location, ir.InsertionPoint.at_block_begin(block):
            self.sizes = [_known_or_argument(size, _DYNAMIC, block) for size in kind.shape]
            strides, offset = kind.get_strides_and_offset()
            if isinstance(kind.layout, ir.StridedLayoutAttr):
                self.offset = _known_or_argument(offset, _DYNAMIC_STRIDE, block)
                self.strides = [_known_or_argument(stride, _DYNAMIC_STRIDE, block) for stride in strides]
            elif str(kind.layout) == f"affine_map<{_identity(kind.rank)}>":
                self.offset = as_index(0)
                self.strides = _row_major(self.sizes)
            else:
                raise CompileError(f"buffer of type {kind}: this layout is not supported on GPUs")
            self.kind = ir.MemRefType.get([_DYNAMIC], kind.element_type)

    def flatten(self) -> None:
        """Rewrites every use."""
        uses = [use.owner.operation for use in self.argument.uses]
        self.argument.set_type(self.kind)
        for op in dict.fromkeys(uses):
            with before(op):
                self._rewrite(op)

    def _rewrite(self, op: ir.Operation) -> None:
        if op.name == "memref.load":
            replace(op, [memref.LoadOp(self.argument, [self._place(list(op.operands)[1:])]).result])
        elif op.name == "memref.store":
            memref.StoreOp(op.operands[0], self.argument, [self._place(list(op.operands)[2:])])
            op.erase()
        elif op.name in _VECTORS:
            self._access_several(op, self._place(_indices(op)))
        elif op.name == "nvgpu.device_async_copy":
            self._copy_from_here(op)
        elif op.name == "memref.reinterpret_cast":
            self._look_through(op)
        elif op.name == "memref.dim":
            number = ir.IntegerAttr(op.operands[1].owner.attributes["value"]).value
            replace(op, [self.sizes[number]])
        else:
            raise refusal(op, f"{op.name} of a buffer is not supported on GPUs; compile it for the target cpu")

    def _copy_from_here(self, op: ir.Operation) -> None:
        """A copy to shared memory."""
        target, *rest = op.operands
        rank = ir.MemRefType(target.type).rank
        places = rest[rank + 1 : rank + 1 + len(self.strides)]
        elements = ir.IntegerAttr(op.attributes["dstElements"]).value
        size = rest[rank + 1 + len(self.strides) :]
        copy = nvgpu.DeviceAsyncCopyOp(
            target,
            rest[:rank],
            self.argument,
            [self._place(places)],
            elements,
            srcElements=size[0] if size else None,
            bypassL1="bypassL1" in op.attributes,
            results=[op.results[0].type],
        )
        replace(op, [copy.result])

    def _look_through(self, cast: ir.Operation) -> None:
        """A row-major buffer as one row: its places are the buffer's."""
        for op in [use.owner.operation for use in cast.results[0].uses]:
            if op.name not in _VECTORS:
                raise refusal(
                    op, f"{op.name} of a buffer as one row is not supported on GPUs; compile it for the target cpu"
                )
            with before(op):
                self._access_several(op, _indices(op)[0])
        cast.erase()

    def _access_several(self, op: ir.Operation, place: ir.Value) -> None:
        alignment = ir.IntegerAttr(op.attributes["alignment"]).value
        if op.name == "vector.load":
            kind = op.results[0].type
            replace(op, [vector.LoadOp(kind, self.argument, [place], alignment=alignment).result])
        else:
            vector.StoreOp(op.operands[0], self.argument, [place], alignment=alignment)
            op.erase()

    def _place(self, indices: list[ir.Value]) -> ir.Value:
        place = self.offset
        for index, stride in zip(indices, self.strides, strict=True):
            place = arith.AddIOp(place, arith.MulIOp(index, stride).result).result
        return place


_VECTORS = ("vector.load", "vector.store")


def _indices(op: ir.Operation) -> list[ir.Value]:
    """The indices of a load or store of a vector."""
    return list(op.operands)[1 if op.name == "vector.load" else 2 :]


def _identity(rank: int) -> str:
    dims = ", ".join(f"d{dim}" for dim in range(rank))
    return f"({dims}) -> ({dims})"


def _known_or_argument(number: int, unknown: int, block: ir.Block) -> ir.Value:
    if number == unknown:
        return block.add_argument(ir.IndexType.get(), ir.Location.unknown())
    return as_index(number)


def _row_major(sizes: list[ir.Value]) -> list[ir.Value]:
    strides: list[ir.Value] = []
    stride = as_index(1)
    for size in reversed(sizes):
        strides.insert(0, stride)
        stride = arith.MulIOp(stride, size).result
    return strides
