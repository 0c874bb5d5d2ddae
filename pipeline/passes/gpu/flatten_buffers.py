"""flatten-buffers: the buffers of a dispatch become one-dimensional, with indices computed from sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import CompileError
from pipeline.ir.attributes import DISPATCH, THREADS
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import before, replace, update_signature
from pipeline.mlir import ir, memref, nvgpu, refusal, vector, walk
from pipeline.passes.gpu.strided_views import VIEWS, StridedView, row_major
from pipeline.passmanager.base import Pass

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


@dataclass(frozen=True)
class FlattenBuffers(Pass):
    """Make each buffer argument of a dispatch a `memref<?xT>`: what devices have is rows of elements.

    @d(%x: memref<?x4xf32>, %k: i64)  =>  @d(%x: memref<?xf32>, %k: i64, %size: index)

    After the arguments come, as numbers, the sizes, offsets and strides of the buffers that are known at run time only,
    in that order for each buffer. Views of buffers go: their elements are found by those numbers. The argument that
    says how many threads there are goes: the launch knows.
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
            _flatten_argument(argument, ir.MemRefType(argument.type), block)
    update_signature(function)
    if "arg_attrs" in function.attributes:
        del function.attributes["arg_attrs"]


def _drop_thread_count(function: ir.Operation, block: ir.Block) -> None:
    if "arg_attrs" in function.attributes and THREADS in ir.ArrayAttr(function.attributes["arg_attrs"])[0]:
        block.erase_argument(0)


def _flatten_argument(argument: ir.BlockArgument, kind: ir.MemRefType, block: ir.Block) -> None:
    """Gives a buffer one dim; its sizes, offset and strides are values at the start of the function."""
    with argument.owner.owner.location, ir.InsertionPoint.at_block_begin(block):
        sizes = tuple(_known_or_argument(size, _DYNAMIC, block) for size in kind.shape)
        strides, offset = kind.get_strides_and_offset()
        if isinstance(kind.layout, ir.StridedLayoutAttr):
            start = _known_or_argument(offset, _DYNAMIC_STRIDE, block)
            steps = tuple(_known_or_argument(stride, _DYNAMIC_STRIDE, block) for stride in strides)
            view = StridedView(argument, sizes, start, steps)
        elif str(kind.layout) == f"affine_map<{_identity(kind.rank)}>":
            view = StridedView(argument, sizes, as_index(0), row_major(sizes))
        else:
            raise CompileError(f"buffer of type {kind}: this layout is not supported on GPUs")
        users = _users(argument)
        argument.set_type(ir.MemRefType.get([_DYNAMIC], kind.element_type))
    _rewrite(users, view)


def _users(value: ir.Value) -> list[ir.Operation]:
    return list(dict.fromkeys(use.owner.operation for use in value.uses))


def _rewrite(users: Sequence[ir.Operation], view: StridedView) -> None:
    """Has what used a view use the row."""
    for op in users:
        with before(op):
            if op.name in VIEWS:
                _rewrite(_users(op.results[0]), VIEWS[op.name](view, op))
                op.erase()
            elif op.name == "memref.extract_strided_metadata":
                _tell(op, view)
            else:
                _access(op, view)


def _tell(op: ir.Operation, view: StridedView) -> None:
    """Sizes, offset and strides; what is made from the buffer that they are of, is made from the row."""
    base, *numbers = op.results
    for number, value in zip(numbers, (view.offset, *view.sizes, *view.strides), strict=True):
        number.replace_all_uses_with(value)
    _rewrite(_users(base), view)
    op.erase()


def _access(op: ir.Operation, view: StridedView) -> None:
    """A read or a write of elements."""
    if op.name == "memref.load":
        replace(op, [memref.LoadOp(view.row, [view.place(list(op.operands)[1:])]).result])
    elif op.name == "memref.store":
        memref.StoreOp(op.operands[0], view.row, [view.place(list(op.operands)[2:])])
        op.erase()
    elif op.name in _VECTORS:
        _access_several(op, view)
    elif op.name == "nvgpu.device_async_copy":
        _copy_from(op, view)
    elif op.name == "memref.dim":
        number = ir.IntegerAttr(op.operands[1].owner.attributes["value"]).value
        replace(op, [view.sizes[number]])
    else:
        raise refusal(op, f"{op.name} of a buffer is not supported on GPUs; compile it for the target cpu")


def _access_several(op: ir.Operation, view: StridedView) -> None:
    alignment = ir.IntegerAttr(op.attributes["alignment"]).value
    place = view.place(_indices(op))
    if op.name == "vector.load":
        replace(op, [vector.LoadOp(op.results[0].type, view.row, [place], alignment=alignment).result])
    else:
        vector.StoreOp(op.operands[0], view.row, [place], alignment=alignment)
        op.erase()


def _copy_from(op: ir.Operation, view: StridedView) -> None:
    """A copy to shared memory."""
    target, *rest = op.operands
    rank = ir.MemRefType(target.type).rank
    places = rest[rank + 1 : rank + 1 + len(view.strides)]
    size = rest[rank + 1 + len(view.strides) :]
    copy = nvgpu.DeviceAsyncCopyOp(
        target,
        rest[:rank],
        view.row,
        [view.place(places)],
        ir.IntegerAttr(op.attributes["dstElements"]).value,
        srcElements=size[0] if size else None,
        bypassL1="bypassL1" in op.attributes,
        results=[op.results[0].type],
    )
    replace(op, [copy.result])


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
