"""Ops that move elements: shapes, slices, pads, copies, casts, constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.element_types import FOUR_BITS, as_tensor, torch_type
from pipeline.frontend.onnx.known import Known
from pipeline.frontend.onnx.ops.table import op
from pipeline.frontend.onnx.ops.unsigned import in_signed, signed


@op("Constant")
def constant(call: NodeCall) -> Any:
    """A constant of the graph; the module has the large ones among its tensors, see there."""
    from pipeline.frontend.onnx.graph_run import constant_value

    return constant_value(constant_array(call))


def constant_array(call: NodeCall) -> np.ndarray:
    """The value of a Constant."""
    if (value := call.get("value")) is not None:
        return np.asarray(value)
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64)):
        if name in call.attributes:
            return np.array(call.get(name), dtype)
    if "value_ints" in call.attributes:
        return np.array(call.get("value_ints"), np.int64)
    if (sparse := call.get("sparse_value")) is not None:
        return dense(sparse)
    raise call.error("a constant of strings is not supported")


def dense(sparse: Any) -> np.ndarray:
    """A SparseTensorProto as an array."""
    from onnx import numpy_helper

    values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    array = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        array.reshape(-1)[indices] = values
    else:
        array[tuple(indices.T)] = values
    return array


@op("ConstantOfShape", as_given=(0,))
def constant_of_shape(call: NodeCall, sizes: Any) -> torch.Tensor:
    """A tensor of one value."""
    value = call.get("value")
    value = np.zeros(1, np.float32) if value is None else value
    scalar = as_tensor(value.reshape(()))
    return torch.full(call.numbers(sizes), scalar.item(), dtype=scalar.dtype)


@op("Reshape", as_given=(1,))
def reshape(call: NodeCall, x: torch.Tensor, to: Any = None) -> torch.Tensor:
    """In another shape; a zero is a size that stays, unless `allowzero`."""
    sizes = call.numbers(to, "shape") or []
    if not call.get("allowzero"):
        sizes = [x.shape[at] if isinstance(size, int) and size == 0 else size for at, size in enumerate(sizes)]
    return x.reshape(sizes)


@op("Flatten")
def flatten(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """As a matrix."""
    axis = call.get("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@op("Squeeze", as_given=(1,))
def squeeze(call: NodeCall, x: torch.Tensor, axes: Any = None) -> torch.Tensor:
    """Without dims of one."""
    chosen = call.numbers(axes, "axes")
    return x.squeeze() if chosen is None else x.squeeze(tuple(chosen))


@op("Unsqueeze", as_given=(1,))
def unsqueeze(call: NodeCall, x: torch.Tensor, axes: Any = None) -> torch.Tensor:
    """With dims of one."""
    chosen = call.numbers(axes, "axes") or []
    rank = x.dim() + len(chosen)
    for axis in sorted(axis % rank for axis in chosen):
        x = x.unsqueeze(axis)
    return x


@op("Transpose")
def transpose(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """With permuted dims, reversed by default."""
    return x.permute(call.get("perm", list(range(x.dim()))[::-1]))


@op("Concat")
def concat(call: NodeCall, *tensors: torch.Tensor) -> torch.Tensor:
    """Along an axis."""
    return torch.cat(tensors, call.get("axis", 1))


@op("Slice", as_given=(1, 2, 3, 4))
def slices(
    call: NodeCall, x: torch.Tensor, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None
) -> torch.Tensor:
    """From starts to ends, by steps, which may be negative."""
    first, last = call.numbers(starts, "starts") or [], call.numbers(ends, "ends") or []
    chosen = call.numbers(axes, "axes") or list(range(len(first)))
    for axis, begin, end, step in zip(chosen, first, last, call.numbers(steps) or [1] * len(first), strict=True):
        x = _slice(x, axis % x.dim(), begin, end, step)
    return x


def _slice(x: torch.Tensor, axis: int, begin: Any, end: Any, step: int) -> torch.Tensor:
    if step > 0:
        return x[(*[slice(None)] * axis, slice(begin, end, step))]
    size = x.shape[axis]
    begin = begin + size if begin < 0 else begin
    end = end + size if end < 0 else end
    begin = torch.sym_min(begin, size - 1)
    end = torch.sym_max(end, -1)
    return _slice(x.flip(axis), axis, size - 1 - begin, torch.sym_max(size - 1 - end, 0), -step)


@op("Split", as_given=(1,))
def split(call: NodeCall, x: torch.Tensor, sizes: Any = None) -> tuple[torch.Tensor, ...]:
    """In parts of given sizes, or of equal ones but for the last."""
    axis = call.get("axis", 0)
    given = call.numbers(sizes, "split")
    if given is None:
        count = call.get("num_outputs") or len(call.node.output)
        given = -(-x.shape[axis] // count)
        parts = x.split(given, axis)
        empty = x.narrow(axis, 0, 0)
        return (*parts, *[empty] * (count - len(parts)))
    return tuple(x.split(given, axis))


@op("Expand", as_given=(1,))
def expand(call: NodeCall, x: torch.Tensor, to: Any) -> torch.Tensor:
    """Broadcast with a shape."""
    return _broadcast(x, call.numbers(to) or [])


def _broadcast(x: torch.Tensor, sizes: Sequence[Any]) -> torch.Tensor:
    rank = max(x.dim(), len(sizes))
    own, other = [1] * (rank - x.dim()) + list(x.shape), [1] * (rank - len(sizes)) + list(sizes)
    return x.expand([a if isinstance(b, int) and b == 1 else b for a, b in zip(own, other, strict=True)])


@op("Tile", as_given=(1, 2))
def tile(call: NodeCall, x: torch.Tensor, repeats: Any, axis: Any = None) -> torch.Tensor:
    """Repeated along each dim; before version 6 along one."""
    numbers = call.numbers(repeats) or []
    if call.version < 6:
        dims = [1] * x.dim()
        dims[call.number(axis)] = numbers[0]
        return x.repeat(dims)
    return x.repeat(numbers) if numbers else x


@op("Pad", as_given=(1, 3))
def pad(call: NodeCall, x: torch.Tensor, pads: Any = None, value: Any = None, axes: Any = None) -> torch.Tensor:
    """With more elements before and after; negative numbers take some away."""
    numbers = call.numbers(pads, "pads") or call.get("paddings") or []
    value = call.get("value", 0.0) if value is None else value
    chosen = [axis % x.dim() for axis in call.numbers(axes) or range(x.dim())]
    mode = call.get("mode", "constant")
    before = dict(zip(chosen, numbers[: len(chosen)], strict=True))
    after = dict(zip(chosen, numbers[len(chosen) :], strict=True))
    if mode == "constant":
        return _padded(x, before, after, value)
    for axis in chosen:
        x = _extended(x, axis, before[axis], after[axis], mode)
    return x


def _padded(x: torch.Tensor, before: dict[int, Any], after: dict[int, Any], value: Any) -> torch.Tensor:
    flat = [number for axis in reversed(range(x.dim())) for number in (before.get(axis, 0), after.get(axis, 0))]
    if not isinstance(value, torch.Tensor):
        return F.pad(x, flat, value=value)
    if x.dtype == torch.bool:
        return _padded(x.to(torch.uint8), before, after, value.to(torch.uint8)).to(torch.bool)
    inside = F.pad(torch.ones(x.shape, dtype=torch.bool), flat)
    return torch.where(inside, F.pad(x, flat), value.reshape(()))


def _extended(x: torch.Tensor, axis: int, before: Any, after: Any, mode: str) -> torch.Tensor:
    """One axis, by an index that is clamped, reflected or wrapped."""
    size = x.shape[axis]
    if isinstance(before, int) and isinstance(after, int) and before == after == 0:
        return x
    places = torch.arange(size + before + after) - before
    if mode == "edge":
        places = places.clamp(0, size - 1)
    elif mode == "wrap":
        places = torch.remainder(places, size)
    else:
        period = 2 * (size - 1)
        places = torch.remainder(places, period) if size > 1 else torch.zeros_like(places)
        places = torch.minimum(places, period - places)
    return x.index_select(axis, places)


@op("Cast")
def cast(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """In another type."""
    to = call.get("to")
    return cast_to(x, _NAMED[to] if isinstance(to, str) else to, call.get("saturate", 1), call.name)


_NAMED = {"FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BOOL": 9}
_NAMED |= {"FLOAT16": 10, "DOUBLE": 11, "UINT32": 12, "UINT64": 13}


def cast_to(x: torch.Tensor, element_type: int, saturate: int, what: str) -> torch.Tensor:
    """The elements in one of ONNX's types."""
    dtype = torch_type(element_type, what)
    if element_type in FOUR_BITS:
        low, high = FOUR_BITS[element_type]
        whole = torch.round(x) if x.is_floating_point() else x
        return whole.to(torch.float32).clamp(low, high).to(dtype)
    if dtype.itemsize == 1 and dtype.is_floating_point:
        return _to_float8(x, dtype, bool(saturate))
    if dtype in (torch.uint16, torch.uint32) and x.is_floating_point():
        return x.to(torch.int64).to(dtype)
    if x.dtype in (torch.uint16, torch.uint32) and dtype != torch.bool:
        return signed(x).to(dtype)
    return x.to(dtype)


def _to_float8(x: torch.Tensor, dtype: torch.dtype, saturate: bool) -> torch.Tensor:
    """Rounded to eight bits; values that are too large become the largest ones with `saturate`."""
    x = x.to(torch.float32)
    if saturate:
        largest = torch.finfo(dtype).max
        x = torch.where(torch.isnan(x), x, x.clamp(-largest, largest))
    return x.to(dtype)


@op("CastLike")
def cast_like(call: NodeCall, x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """In another tensor's type."""
    from pipeline.frontend.onnx.element_types import onnx_type

    return cast_to(x, onnx_type(like.dtype), call.get("saturate", 1), call.name)


@op("BitCast")
def bit_cast(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """The same bits in another type."""
    return x.view(call.dtype("to"))


@op("DepthToSpace")
def depth_to_space(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """Blocks of channels become blocks of pixels."""
    block = call.get("blocksize")
    n, c, h, w = x.shape
    if call.get("mode", "DCR") == "CRD":
        parts = x.reshape(n, c // block**2, block, block, h, w).permute(0, 1, 4, 2, 5, 3)
    else:
        parts = x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return parts.reshape(n, c // block**2, h * block, w * block)


@op("SpaceToDepth")
def space_to_depth(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """Blocks of pixels become channels."""
    block = call.get("blocksize")
    n, c, h, w = x.shape
    order = (0, 1, 3, 5, 2, 4) if call.get("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    parts = x.reshape(n, c, h // block, block, w // block, block).permute(order)
    return parts.reshape(n, c * block**2, h // block, w // block)


@op("Trilu", as_given=(1,))
def trilu(call: NodeCall, x: torch.Tensor, k: Any = None) -> torch.Tensor:
    """The upper or lower triangle."""
    function = torch.triu if call.get("upper", 1) else torch.tril
    return function(x, call.number(k, default=0))


@op("EyeLike")
def eye_like(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """Ones on a diagonal."""
    rows, columns = torch.arange(x.shape[0]).unsqueeze(1), torch.arange(x.shape[1])
    return (columns - rows == call.get("k", 0)).to(call.dtype("dtype", x.dtype))


@op("Range", as_given=(0, 1, 2))
def number_range(call: NodeCall, start: Any, limit: Any, delta: Any) -> torch.Tensor:
    """Numbers from start to limit by delta."""
    if all(isinstance(value, Known) for value in (start, limit, delta)):
        numbers = [value.numbers()[0] for value in (start, limit, delta)]
    else:
        tensors = [value.tensor() if isinstance(value, Known) else value for value in (start, limit, delta)]
        numbers = [tensor.item() for tensor in tensors]
    dtype = start.dtype
    first, last, step = numbers
    if all(isinstance(number, (int, float)) for number in numbers):
        count = max(math.ceil((last - first) / step), 0)
        return (torch.arange(count) * step + first).to(dtype)
    return torch.arange(first, last, step, dtype=dtype)


@op("Dropout", as_given=(1, 2))
def dropout(call: NodeCall, x: torch.Tensor, ratio: Any = None, training: Any = None) -> tuple[Any, ...]:
    """x itself; in training elements are dropped."""
    rate = call.number(ratio, "ratio", 0.5)
    if training is not None and call.number(training) and rate:
        kept = torch.rand(x.shape) >= rate
        return (x * kept / (1 - rate)).to(x.dtype), kept
    mask = torch.ones(x.shape, dtype=torch.bool) if len(call.node.output) > 1 else None
    return x, mask if call.version >= 10 or mask is None else mask.to(x.dtype)


@op("ReverseSequence")
def reverse_sequence(call: NodeCall, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The first elements of each sequence in reverse order."""
    batch, time = call.get("batch_axis", 1), call.get("time_axis", 0)
    y = x.movedim((batch, time), (0, 1))
    steps = torch.arange(y.shape[1])
    ends = lengths.unsqueeze(1)
    places = torch.where(steps < ends, ends - 1 - steps, steps)
    shape = [*places.shape, *[1] * (y.dim() - 2)]
    return y.gather(1, places.reshape(shape).expand(y.shape)).movedim((0, 1), (batch, time))


@op("CenterCropPad", as_given=(1,))
def center_crop_pad(call: NodeCall, x: torch.Tensor, to: Any) -> torch.Tensor:
    """Cropped and padded about the middle to given sizes."""
    sizes = call.numbers(to) or []
    for axis, size in zip(call.get("axes", range(x.dim())), sizes, strict=True):
        axis %= x.dim()
        own = x.shape[axis]
        if own > size:
            x = x.narrow(axis, (own - size) // 2, size)
        else:
            before = (size - own) // 2
            x = _padded(x, {axis: before}, {axis: size - own - before}, 0)
    return x


@op("Compress")
def compress(call: NodeCall, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
    """The slices whose condition is true."""
    axis = call.get("axis")
    x = x.flatten() if axis is None else x
    places = condition.nonzero().squeeze(1)
    return in_signed(lambda y: y.index_select(axis or 0, places), x)
