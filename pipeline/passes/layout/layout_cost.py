"""Layouts: which tensors of a function are better held with channels innermost, and what that saves and costs.

Images come as [N, C, H, W] (channels first). Channels last is [N, H, W, C]: a convolution then has its vectors along
its own channels, whatever the width of the image, and a depthwise one or a pool along those of its data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, prod

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.op_naming import is_reduction
from pipeline.analysis.winograd import Sizes
from pipeline.analysis.zero_insertion import puts_among_zeros, zeros_between
from pipeline.ir.linalg_op import LinalgOp, any_structured, structured
from pipeline.mlir import defining_op, ir
from pipeline.passes.layout.channel_order import undoes_transpose
from pipeline.passes.layout.image_windows import image_window
from pipeline.passes.layout.window_steps import window_steps

#: The dim of a tensor with channels first that each dim of one with channels last is, and the other way round.
LAST = (0, 2, 3, 1)
FIRST = (0, 3, 1, 2)

#: Ops that sum over channels: their data may lie in either way.
CONVOLUTIONS = ("linalg.conv_2d_nchw_fchw",)

#: Ops that compute each channel by itself: their data has the layout of their result. With what they are called then.
WINDOWS = {
    "linalg.depthwise_conv_2d_nchw_chw": "linalg.depthwise_conv_2d_nhwc_hwc",
    "linalg.pooling_nchw_max": "linalg.pooling_nhwc_max",
    "linalg.pooling_nchw_sum": "linalg.pooling_nhwc_sum",
}

#: Tensors that can be made in any layout.
_MADE = ("linalg.fill", "tensor.empty")

#: Ops on a part of a tensor, and how many operands they have where that is known.
_PARTS = {"tensor.extract_slice": 1, "tensor.insert_slice": 2}

#: What kernels reach on one core of an AVX-512 machine, in operations a nanosecond: channels first (where rows fill
#: their vectors), last. The ratio is what matters.
FLOPS = (90.0, 113.0)
_CONVOLUTION_IN_BF16 = (100.0, 200.0)
_CONVOLUTION_IN_BYTES = (100.0, 400.0)
_WINDOW = (75.0, 90.0)

#: What it takes to give an element its place in the other layout, in nanoseconds.
_TRANSPOSE = 0.15

#: What a conversion takes besides, in nanoseconds: a kernel of its own.
_CONVERSION = 300.0

#: How many channels of a result a block of weights is for: two vectors of the widest registers.
BLOCK = 32

#: The elements of a row that fill whole vectors.
_LANES = 16

#: What is left of the speed of a convolution whose channels fill one vector: each multiply-add takes a load then.
_ONE_VECTOR = 0.75

#: The size of a dim that is known at run time only, for estimates: the batch, others.
_BATCH, _SIZE = 1, 32


@dataclass
class Component:
    """Tensors that are held in one layout, since ops compute each of them from others of them.

    Attributes:
        values: the tensors.
        first: the op that computes the first of them.
        gain: the nanoseconds that their ops take less with channels last.
        cost: the nanoseconds that it takes to convert what comes in and what goes out.
        spared: the nanoseconds that it would take to convert what its convolutions read, where that is held with
            channels last.
    """

    first: ir.Operation
    values: list[ir.Value] = field(default_factory=list)
    gain: float = 0.0
    cost: float = 0.0
    spared: float = 0.0

    def pays(self) -> bool:
        """Whether channels last save more than they cost."""
        return self.gain + self.spared > self.cost


def components(function: ir.Operation, weights: ConstExprs) -> list[Component]:
    """The components of a function, in program order, that have a convolution or a window."""
    sets = _Sets()
    ops = [op for op in _ops(function) if not _is_known(op, weights)]
    for op in ops:
        sets.join(op, tied(op, weights))
    found: dict[ir.Value, Component] = {}
    for value, op in sets.values():
        found.setdefault(sets.root(value), Component(op)).values.append(value)
    for component in found.values():
        component.gain = sum(gain(op) for value in component.values if (op := defining_op(value)) is not None)
        component.gain += sum(_gain_of_use(use) for value in component.values for use in value.uses)
        component.cost = sum(_border(value, weights) for value in component.values)
    chosen = {value for component in found.values() if component.pays() for value in component.values}
    for component in found.values():
        read = {_data_of_convolution(value) for value in component.values} & chosen - set(component.values)
        component.spared = sum(map(conversion_time, read))
    return [component for component in found.values() if component.gain != 0]


def tied(op: ir.Operation, weights: ConstExprs) -> list[ir.Value]:
    """The tensors that have one layout because of an op: what it computes, and what it computes that from."""
    if not op.results or not _is_image(op.results[0]):
        return []
    if op.name in CONVOLUTIONS:
        return [op.results[0]] if op.operands[1] in weights else []
    if op.name in WINDOWS:
        return [op.results[0], *_unknown([op.operands[0]], weights)]
    if op.name == "tensor.pad":
        return [op.results[0], *_unknown([op.operands[0]], weights)] if pads_with_number(op) else []
    if op.name == "tensor.insert_slice":
        zeros = puts_among_zeros(op) and is_made(op.operands[1])
        return [op.results[0], *_unknown(op.operands[:2], weights)] if zeros or _is_put_together(op) else []
    if op.name == "tensor.extract_slice":
        return [op.results[0], *_unknown(op.operands[:1], weights)] if _is_part(op) else []
    if op.name == "tensor.concat":
        return [op.results[0], *_unknown(op.operands, weights)]
    window = image_window(op)
    if window is not None:
        return [op.results[0], *_unknown([op.operands[0]], weights)] if op.operands[1] in weights else []
    view = structured(op)
    if view is None or op.name != "linalg.generic" or not is_pointwise(view):
        return []
    images = [op.operands[number] for number in range(view.inputs) if reads_image(view, number)]
    return [*op.results, *_unknown(images, weights)]


def is_pointwise(view: LinalgOp) -> bool:
    """Whether an op computes images element by element."""
    return view.loops == 4 and view.is_elementwise and all(map(_is_identity, view.maps[view.inputs :]))


def reads_image(view: LinalgOp, number: int) -> bool:
    """Whether an op reads all of an operand, element by element; dims of size 1 may be read as such."""
    if not _is_image(view.op.operands[number]):
        return False
    kind = ir.RankedTensorType(view.op.operands[number].type)
    return all(
        expression == ir.AffineDimExpr.get(dim) or (kind.shape[dim] == 1 and view.sizes[dim] == 1)
        for dim, expression in enumerate(view.maps[number].results)
    )


def _is_put_together(insert: ir.Operation) -> bool:
    """Whether an image consists of parts, at places that are known, and of nothing that was there before."""
    op: ir.Operation | None = insert
    while op is not None and op.name == insert.name and _is_part(op):
        op = defining_op(op.operands[1])
    return op is not None and op.name in _MADE


def _is_part(op: ir.Operation) -> bool:
    """Whether an op takes an image out of another one, or puts it there, at a place that is known."""
    kinds = [ir.RankedTensorType(value.type) for value in (op.operands[0], op.results[0])]
    return len(op.operands) == _PARTS[op.name] and all(kind.rank == 4 and kind.has_static_shape for kind in kinds)


def pads_with_number(pad: ir.Operation) -> bool:
    """Whether what a tensor.pad adds is one number, as many of it as is known."""
    block = pad.regions[0].blocks[0]
    number = block.operations[0].operation.operands
    return len(pad.operands) == 1 and len(block.operations) == 1 and number[0].owner != block


def gain(op: ir.Operation) -> float:
    """The nanoseconds that an op takes less with channels last."""
    window = image_window(op)
    if window is not None and window.channels is not None:
        return _gain_in_bytes(op)
    if op.name not in CONVOLUTIONS and op.name not in WINDOWS and window is None:
        return 0.0
    view = any_structured(op)
    assert view is not None
    first, last = FLOPS if op.name in CONVOLUTIONS else _WINDOW
    sizes = [view.sizes[loop] for loop in range(view.loops)]
    image = ir.RankedTensorType(op.results[0].type)
    channels, width = (_SIZE if image.is_dynamic_dim(dim) else image.get_dim_size(dim) for dim in (1, 3))
    zeros = zeros_between(op.operands[0])
    operations = 2 * prod(_guess(size, loop) for loop, size in enumerate(sizes)) / zeros
    lanes = 1.0 if zeros > 1 else filled(channels)  # few channels of a transposed convolution lie across its tiles
    if op.name in CONVOLUTIONS and zeros == 1:
        lanes *= one_vector(channels)
    return operations / (first * filled(width)) - operations / (last * lanes)


def filled(size: int) -> float:
    """Which part of the lanes of vectors has elements, where these run along a dim of a size."""
    return max(1, size) / (ceil(max(1, size) / _LANES) * _LANES)


def one_vector(channels: int) -> float:
    """What is left of the speed of a convolution with channels last, by their number."""
    return _ONE_VECTOR if channels <= _LANES else 1.0


def _gain_of_use(use: ir.OpOperand) -> float:
    """The nanoseconds that a convolution saves whose data has channels last: by Winograd's algorithm, or in bf16."""
    op = use.owner.operation
    if op.name not in CONVOLUTIONS or use.operand_number != 0:
        return 0.0
    if isinstance(ir.RankedTensorType(op.operands[0].type).element_type, ir.BF16Type):
        return _gain_in_bf16(op)
    kinds = [ir.RankedTensorType(operand.type) for operand in op.operands]
    steps = [*window_steps(op, "strides"), *window_steps(op, "dilations")]
    if (
        set(steps) != {1}
        or zeros_between(op.operands[0]) > 1
        or not all(kind.has_static_shape and isinstance(kind.element_type, ir.F32Type) for kind in kinds)
    ):
        return 0.0
    f, c, *taps = kinds[1].shape
    if taps != [3, 3] or f % BLOCK or c % _LANES:
        return 0.0
    n, _, h, w = kinds[2].shape
    return Sizes(n, h, w, c, f).saves(2)


def pays_for_data(op: ir.Operation) -> bool:
    """Whether a convolution in bf16 saves more by channels last than it takes to convert its data for it alone."""
    kind = ir.RankedTensorType(op.operands[0].type)
    if not kind.has_static_shape or not isinstance(kind.element_type, ir.BF16Type):
        return False
    return _gain_in_bf16(op) > _CONVERSION + _TRANSPOSE * prod(kind.shape)


def _gain_in_bf16(op: ir.Operation) -> float:
    """Dot products take two channels at once, where these lie side by side; else two places of a window."""
    view = any_structured(op)
    assert view is not None
    sizes = [view.sizes[loop] for loop in range(view.loops)]
    operations = 2 * prod(_guess(size, loop) for loop, size in enumerate(sizes))
    first, last = _CONVOLUTION_IN_BF16
    channels = ir.RankedTensorType(op.operands[0].type).shape[1]
    return operations / first - operations / last if channels > 0 and channels % 2 == 0 else 0.0


def _gain_in_bytes(op: ir.Operation) -> float:
    """Dot products take four channels at once, where these lie side by side."""
    view = any_structured(op)
    assert view is not None
    operations = 2 * prod(_guess(view.sizes[loop], loop) for loop in range(view.loops))
    first, last = _CONVOLUTION_IN_BYTES
    return operations / first - operations / last


def _border(value: ir.Value, weights: ConstExprs) -> float:
    """The nanoseconds that it takes to convert a value, where it comes from or goes to something of its own layout.

    Where it comes from a transpose of channels that are innermost, converting it saves that.
    """
    producer = defining_op(value)
    comes = int(producer is None or not tied(producer, weights))
    if comes and undoes_transpose(value):
        comes = -1
    goes = any(_needs_first(use, weights) for use in value.uses)
    return (comes + goes) * conversion_time(value)


def conversion_time(value: ir.Value) -> float:
    """The nanoseconds that it takes to convert a value."""
    kind = ir.RankedTensorType(value.type)
    sizes = [None if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)]
    return _CONVERSION + _TRANSPOSE * prod(_guess(size, dim) for dim, size in enumerate(sizes))


def _data_of_convolution(value: ir.Value) -> ir.Value | None:
    """What the convolution that computes a value reads; None for another op."""
    op = defining_op(value)
    return op.operands[0] if op is not None and op.name in CONVOLUTIONS else None


def _needs_first(use: ir.OpOperand, weights: ConstExprs) -> bool:
    """Whether an op reads its operand with channels first."""
    user = use.owner.operation
    if user.name in CONVOLUTIONS:
        return use.operand_number != 0
    if user.name == "linalg.generic" and is_reduction(user):
        return False
    return not tied(user, weights)


def _guess(size: int | None, dim: int) -> int:
    return size if size is not None else _SIZE if dim else _BATCH


def _ops(function: ir.Operation) -> Iterator[ir.Operation]:
    for region in function.regions:
        for block in region.blocks:
            for op in (child.operation for child in block.operations):
                yield op
                if not op.name.startswith(("linalg.", "tensor.")):
                    yield from _ops(op)


def _is_known(op: ir.Operation, weights: ConstExprs) -> bool:
    return bool(op.results) and all(result in weights for result in op.results)


def _unknown(values: list[ir.Value], weights: ConstExprs) -> list[ir.Value]:
    """The values that are data, and not made in any layout."""
    return [value for value in values if value not in weights and not is_made(value)]


def is_made(value: ir.Value) -> bool:
    """Whether a tensor holds one number everywhere, or nothing yet."""
    producer = defining_op(value)
    return producer is not None and producer.name in _MADE


def _is_image(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and ir.RankedTensorType(value.type).rank == 4


def _is_identity(indexing: ir.AffineMap) -> bool:
    return indexing == ir.AffineMap.get_identity(4)


class _Sets:
    """Disjoint sets of values."""

    def __init__(self) -> None:
        self._parents: dict[ir.Value, ir.Value] = {}
        self._ops: dict[ir.Value, ir.Operation] = {}

    def join(self, op: ir.Operation, values: list[ir.Value]) -> None:
        """Makes one set of those of the values, because of an op."""
        for value in values:
            self._parents.setdefault(value, value)
            self._ops.setdefault(value, op)
        for value in values[1:]:
            self._parents[self.root(value)] = self.root(values[0])

    def root(self, value: ir.Value) -> ir.Value:
        """The value that stands for the set of another."""
        while self._parents[value] != value:
            self._parents[value] = self._parents[self._parents[value]]
            value = self._parents[value]
        return value

    def values(self) -> list[tuple[ir.Value, ir.Operation]]:
        """All values, in the order in which they came, each with the op that it came with."""
        return list(self._ops.items())
