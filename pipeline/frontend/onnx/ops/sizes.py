"""Ops on known values: what models compute of sizes. They return None to leave them to tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.element_types import torch_type
from pipeline.frontend.onnx.known import Known, as_objects, sizes_of
from pipeline.frontend.onnx.ops.table import on_known, op


@op("Shape", as_given=(0,))
def shape(call: NodeCall, x: Any) -> Known:
    """The sizes from `start` to `end`."""
    sizes = Known.of(list(x.values.shape)) if isinstance(x, Known) else sizes_of(x)
    return Known(sizes.values[call.get("start", 0) : call.get("end")], torch.int64)


@op("Size", as_given=(0,))
def size(call: NodeCall, x: Any) -> Known:
    """The number of elements."""
    return Known.of(math.prod(x.values.shape if isinstance(x, Known) else x.shape))


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, (float, torch.SymFloat)) or isinstance(b, (float, torch.SymFloat)):
        return a / b
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def _number(value: Any) -> Any:
    """A number of NumPy's as Python's."""
    return value.item() if isinstance(value, np.generic) else value


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _divide,
    "Mod": lambda a, b: a % b,
    "Max": lambda a, b: torch.sym_max(a, b),
    "Min": lambda a, b: torch.sym_min(a, b),
}

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "Equal": lambda a, b: bool(a == b),
    "Less": lambda a, b: bool(a < b),
    "Greater": lambda a, b: bool(a > b),
    "LessOrEqual": lambda a, b: bool(a <= b),
    "GreaterOrEqual": lambda a, b: bool(a >= b),
    "And": lambda a, b: bool(a and b),
    "Or": lambda a, b: bool(a or b),
}


def _elementwise(function: Callable[..., Any], dtype: torch.dtype, *values: Known) -> Known:
    arrays = np.broadcast_arrays(*(value.values for value in values), subok=False)
    result = np.empty(arrays[0].shape, dtype=object)
    for place in np.ndindex(arrays[0].shape):
        result[place] = function(*(_number(array[place]) for array in arrays))
    return Known(result, dtype)


def _is_of_sizes(*values: Any) -> bool:
    """Whether values are of the types of sizes and scales; f32 is not computed with in Python's double precision."""
    return all(value is None or value.dtype in (torch.int64, torch.int32, torch.bool) for value in values)


@on_known(*_BINARY)
def arithmetic(call: NodeCall, *values: Known) -> Known | None:
    """Arithmetic of integers."""
    if not _is_of_sizes(*values) or len(values) < 2 or call.version < 7 or call.get("fmod"):
        return None
    result = values[0]
    for value in values[1:]:
        result = _elementwise(_BINARY[call.node.op_type], result.dtype, result, value)
    return result


@on_known(*_COMPARISONS)
def comparison(call: NodeCall, a: Known, b: Known) -> Known | None:
    """Comparisons; what is asked of a symbol is checked at each call."""
    return None if call.version < 7 else _elementwise(_COMPARISONS[call.node.op_type], torch.bool, a, b)


@on_known("Not")
def negation(call: NodeCall, x: Known) -> Known:
    """Logical not."""
    return _elementwise(lambda value: not value, torch.bool, x)


@on_known("Neg", "Abs")
def unary(call: NodeCall, x: Known) -> Known | None:
    """-x and |x|."""
    if not _is_of_sizes(x):
        return None
    return _elementwise(abs if call.node.op_type == "Abs" else lambda value: -value, x.dtype, x)


@on_known("Floor", "Ceil")
def rounding(call: NodeCall, x: Known) -> Known | None:
    """Whole floats."""
    function = math.floor if call.node.op_type == "Floor" else math.ceil
    if any(isinstance(number, torch.SymFloat) for number in x.numbers()):
        return None
    return _elementwise(lambda value: float(function(value)), x.dtype, x) if x.dtype == torch.float32 else None


@on_known("Cast")
def cast(call: NodeCall, x: Known) -> Known | None:
    """Of integers to other integers."""
    to = torch_type(call.get("to"), "Cast")
    if not _is_of_sizes(x) or to not in (torch.int64, torch.int32, torch.bool):
        return None
    if to == torch.bool:
        return _elementwise(bool, to, x)
    return Known(x.values, to) if x.dtype != torch.bool else _elementwise(int, to, x)


@on_known("Identity", "Dropout")
def identity(call: NodeCall, x: Known, *_: Any) -> Known | None:
    """The value itself."""
    return x if call.node.op_type == "Identity" else None


@on_known("Gather")
def gather(call: NodeCall, x: Known, index: Known) -> Known:
    """Slices along an axis."""
    axis = call.get("axis", 0)
    return Known(_take(x.values, index.values, axis), x.dtype)


def _take(values: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    return as_array(np.take(values, index.astype(np.int64), axis=axis))


def as_array(value: Any) -> np.ndarray:
    """What NumPy gives as an element where it has no dims, as an array again."""
    return value if isinstance(value, np.ndarray) else as_objects(value)


@on_known("Slice")
def slices(
    call: NodeCall, x: Known, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None
) -> Known | None:
    """Slices by known bounds."""
    first = call.numbers(starts, "starts") or []
    last = call.numbers(ends, "ends") or []
    chosen = call.numbers(axes, "axes") or list(range(len(first)))
    step = call.numbers(steps) or [1] * len(first)
    if any(not isinstance(number, int) for number in (*first, *last, *step)):
        return None
    places = [slice(None)] * x.values.ndim
    for axis, begin, end, by in zip(chosen, first, last, step, strict=True):
        places[axis] = slice(begin, None if by < 0 and end < -x.values.shape[axis] else end, by)
    return Known(x.values[tuple(places)], x.dtype)


@on_known("Concat")
def concat(call: NodeCall, *values: Known) -> Known:
    """Along an axis."""
    return Known(np.concatenate([value.values for value in values], axis=call.get("axis", 1)), values[0].dtype)


@on_known("Unsqueeze")
def unsqueeze(call: NodeCall, x: Known, axes: Any = None) -> Known:
    """With dims of one."""
    return Known(np.expand_dims(x.values, tuple(call.numbers(axes, "axes") or ())), x.dtype)


@on_known("Squeeze")
def squeeze(call: NodeCall, x: Known, axes: Any = None) -> Known:
    """Without dims of one."""
    chosen = call.numbers(axes, "axes")
    return Known(as_array(np.squeeze(x.values, None if chosen is None else tuple(chosen))), x.dtype)


@on_known("Reshape")
def reshape(call: NodeCall, x: Known, to: Any = None) -> Known | None:
    """In another shape."""
    sizes = call.numbers(to, "shape") or []
    if any(not isinstance(number, int) for number in sizes):
        return None
    kept = [x.values.shape[at] if size == 0 and not call.get("allowzero") else size for at, size in enumerate(sizes)]
    return Known(x.values.reshape(kept), x.dtype)


@on_known("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin")
def reduce(call: NodeCall, x: Known, axes: Any = None) -> Known | None:
    """Of a vector of sizes."""
    if x.values.ndim != 1 or not x.values.size or not _is_of_sizes(x) or x.dtype == torch.bool:
        return None
    chosen = call.numbers(axes, "axes")
    if not chosen and call.get("noop_with_empty_axes"):
        return x
    functions = {"ReduceProd": "Mul", "ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}
    total, *others = x.numbers()
    for number in others:
        total = _BINARY[functions[call.node.op_type]](total, number)
    return Known.of([total] if call.get("keepdims", 1) else total, x.dtype)


@on_known("Where")
def where(call: NodeCall, condition: Known, a: Known, b: Known) -> Known | None:
    """Elements of a or b."""
    return _elementwise(lambda c, x, y: x if c else y, a.dtype, condition, a, b) if _is_of_sizes(a, b) else None


@on_known("Range")
def number_range(call: NodeCall, start: Known, limit: Known, delta: Known) -> Known | None:
    """Numbers from start to limit, if all are known."""
    numbers = [value.numbers()[0] for value in (start, limit, delta)]
    if start.dtype != torch.int64 or any(not isinstance(number, int) for number in numbers):
        return None
    values = list(range(*numbers))
    return Known.of(values, start.dtype) if len(values) <= 64 else None


@on_known("ConstantOfShape")
def constant_of_shape(call: NodeCall, sizes: Known) -> Known | None:
    """Small ones of integers; they are sizes in the making."""
    value = call.get("value")
    if value is None or value.dtype != np.int64 or any(not isinstance(size, int) for size in sizes.numbers()):
        return None
    if math.prod(sizes.numbers()) > 64:
        return None
    return Known(np.full(sizes.numbers(), value.reshape(-1)[0].item(), dtype=object), torch.int64)


@on_known("Expand")
def expand(call: NodeCall, x: Known, sizes: Known) -> Known | None:
    """By known sizes."""
    numbers = sizes.numbers()
    if any(not isinstance(number, int) for number in numbers) or math.prod(numbers) > 64:
        return None
    return Known(np.array(np.broadcast_to(x.values, np.broadcast_shapes(x.values.shape, tuple(numbers)))), x.dtype)
