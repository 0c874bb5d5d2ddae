"""TorchScript's ops on Python values: numbers, bools, strings, lists, dicts. Those on tensors are torch's own."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

#: TorchScript has dtypes as numbers: their places here.
DTYPES = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
    torch.bool,
    torch.qint8,
    torch.quint8,
    torch.qint32,
    torch.bfloat16,
)

_MEMORY_FORMATS = (
    torch.contiguous_format,
    torch.preserve_format,
    torch.channels_last,
    torch.channels_last_3d,
)


@dataclass(frozen=True)
class TensorBool:
    """A bool of the program whose value is known only as it runs: a bool tensor with no dims."""

    tensor: torch.Tensor


def truth(value: Any) -> Any:
    """bool(value), which may be one that is known only as the program runs."""
    if not isinstance(value, torch.Tensor):
        return bool(value) if isinstance(value, (int, float)) else value != 0
    if value.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return TensorBool(value.reshape(()) != 0)


def as_tensor(value: Any) -> torch.Tensor:
    """A bool of any kind as a tensor."""
    if isinstance(value, TensorBool):
        return value.tensor
    if isinstance(value, torch.SymBool):
        return torch.scalar_tensor(value, dtype=torch.bool)
    return torch.full((), bool(value), dtype=torch.bool)


def _item(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, TensorBool):
        value = value.tensor
    return value.to(dtype).item() if isinstance(value, torch.Tensor) else value


def _to_int(value: Any) -> Any:
    number = _item(value, torch.int64)
    return torch.sym_int(number) if isinstance(number, torch.SymFloat) else number if _is_sym(number) else int(number)


def _to_float(value: Any) -> Any:
    number = _item(value, torch.float64)
    return torch.sym_float(number) if _is_sym(number) else float(number)


def _to_scalar(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


def _is_sym(value: Any) -> bool:
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def _logic(python: Callable[..., Any], tensors: Callable[..., Any]) -> Callable[..., Any]:
    """An op on bools, on tensors where one is known only as the program runs."""

    def run(*values: Any) -> Any:
        if any(isinstance(value, TensorBool) for value in values):
            return TensorBool(tensors(*map(as_tensor, values)))
        return python(*values)

    return run


def _negated(value: Any) -> Any:
    return torch.sym_not(value) if isinstance(value, torch.SymBool) else not value


def _div(a: Any, b: Any) -> Any:
    return a / b


def _sub_list(values: list[Any], start: Any, stop: Any, step: int) -> list[Any]:
    return values[start:stop:step]


def _range_length(start: int, stop: int, step: int) -> Any:
    if not any(map(_is_sym, (start, stop, step))):
        return len(range(start, stop, step))
    return torch.sym_max((stop - start + step - (1 if step > 0 else -1)) // step, 0)


def _format(text: str, *values: Any) -> str:
    return text.format(*values)


#: Ops that need no tensor, by name.
PYTHON_OPS: dict[str, Callable[..., Any]] = {
    "aten::add": operator.add,
    "aten::sub": operator.sub,
    "aten::mul": operator.mul,
    "aten::div": _div,
    "aten::floordiv": operator.floordiv,
    "aten::remainder": operator.mod,
    "aten::neg": operator.neg,
    "aten::pow": operator.pow,
    "aten::sqrt": lambda x: math.sqrt(x),
    "aten::exp": lambda x: math.exp(x),
    "aten::log": lambda *x: math.log(*x),
    "aten::ceil": lambda x: math.ceil(x),
    "aten::floor": lambda x: math.floor(x),
    "aten::round": lambda x: round(x),
    "aten::abs": abs,
    "prim::abs": abs,
    "prim::min": lambda *x: functools.reduce(torch.sym_min, x[0] if len(x) == 1 else x),
    "prim::max": lambda *x: functools.reduce(torch.sym_max, x[0] if len(x) == 1 else x),
    "aten::eq": _logic(operator.eq, torch.eq),
    "aten::ne": _logic(operator.ne, torch.ne),
    "aten::lt": operator.lt,
    "aten::le": operator.le,
    "aten::gt": operator.gt,
    "aten::ge": operator.ge,
    "aten::__and__": _logic(operator.and_, torch.logical_and),
    "aten::__or__": _logic(operator.or_, torch.logical_or),
    "aten::__xor__": _logic(operator.xor, torch.logical_xor),
    "aten::__not__": _logic(_negated, torch.logical_not),
    "aten::__is__": operator.is_,
    "aten::__isnot__": operator.is_not,
    "aten::__contains__": operator.contains,
    "aten::__getitem__": operator.getitem,
    "aten::__range_length": _range_length,
    "aten::__derive_index": lambda index, start, step: start + index * step,
    "aten::len": len,
    "aten::list": list,
    "aten::slice": _sub_list,
    "aten::copy": lambda values: values.copy(),
    "aten::keys": lambda values: list(values.keys()),
    "aten::values": lambda values: list(values.values()),
    "aten::items": lambda values: list(values.items()),
    "aten::get": lambda values, *key: values.get(*key),
    "aten::index": lambda values, value: values.index(value),
    "aten::count": lambda values, value: values.count(value),
    "aten::find": lambda text, part, start, stop: text.find(part, start, stop),
    "aten::sorted": sorted,
    "aten::any": any,
    "aten::all": all,
    "aten::sum": sum,
    "aten::lower": lambda text: text.lower(),
    "aten::upper": lambda text: text.upper(),
    "aten::strip": lambda text, *characters: text.strip(*characters),
    "aten::split": lambda text, *how: text.split(*how),
    "aten::join": lambda between, texts: between.join(texts),
    "aten::startswith": lambda text, part, *_: text.startswith(part),
    "aten::endswith": lambda text, part, *_: text.endswith(part),
    "aten::replace": lambda text, old, new, *_: text.replace(old, new),
    "aten::ord": ord,
    "aten::chr": chr,
    "aten::sin": lambda x: math.sin(x),
    "aten::cos": lambda x: math.cos(x),
    "aten::tan": lambda x: math.tan(x),
    "aten::asin": lambda x: math.asin(x),
    "aten::acos": lambda x: math.acos(x),
    "aten::atan": lambda x: math.atan(x),
    "aten::atan2": lambda y, x: math.atan2(y, x),
    "aten::sinh": lambda x: math.sinh(x),
    "aten::cosh": lambda x: math.cosh(x),
    "aten::tanh": lambda x: math.tanh(x),
    "aten::log2": lambda x: math.log2(x),
    "aten::log10": lambda x: math.log10(x),
    "aten::log1p": lambda x: math.log1p(x),
    "aten::fmod": lambda x, y: math.fmod(x, y),
    "aten::copysign": lambda x, y: math.copysign(x, y),
    "aten::isnan": lambda x: math.isnan(x),
    "aten::isinf": lambda x: math.isinf(x),
    "aten::isfinite": lambda x: math.isfinite(x),
    "aten::gcd": lambda x, y: math.gcd(x, y),
    "aten::factorial": lambda x: math.factorial(x),
    "aten::radians": lambda x: math.radians(x),
    "aten::degrees": lambda x: math.degrees(x),
    "aten::__lshift__": operator.lshift,
    "aten::__rshift__": operator.rshift,
    "aten::divmod": divmod,
    "aten::dict": lambda *values: dict(*values),
    "aten::format": _format,
    "aten::str": str,
    "aten::Int": _to_int,
    "aten::Float": _to_float,
    "aten::Bool": truth,
    "prim::NumToTensor": lambda number: number,
    "prim::unchecked_cast": lambda value: value,
    "prim::unchecked_unwrap_optional": lambda value: value,
    "prim::ListConstruct": lambda *values: list(values),
    "prim::TupleIndex": lambda values, index: values[index],
}

#: Ops on a tensor that give no tensor.
TENSOR_QUESTIONS: dict[str, Callable[..., Any]] = {
    "aten::Int": _to_int,
    "aten::IntImplicit": _to_int,
    "aten::Float": _to_float,
    "aten::FloatImplicit": _to_float,
    "aten::Bool": truth,
    "aten::is_nonzero": truth,
    "aten::ScalarImplicit": _to_scalar,
    "aten::item": _to_scalar,
    "aten::size": lambda x, *dim: x.size(*dim) if dim else list(x.shape),
    "aten::len": lambda x: x.size(0),
    "aten::dim": lambda x: x.dim(),
    "aten::numel": lambda x: x.numel(),
    "aten::is_floating_point": lambda x: x.is_floating_point(),
    "aten::is_complex": lambda x: x.is_complex(),
    "aten::__is__": operator.is_,
    "aten::__isnot__": operator.is_not,
    "aten::device": lambda x: x.device,
    "prim::unchecked_cast": lambda value: value,
    "prim::unchecked_unwrap_optional": lambda value: value,
    "prim::NumToTensor": lambda value: value,
    "prim::device": lambda x: x.device,
    "prim::dtype": lambda x: DTYPES.index(x.dtype),
    "prim::layout": lambda x: 0,
    "prim::is_cuda": lambda x: x.is_cuda,
    "prim::requires_grad": lambda x: False,
    "prim::data": lambda x: x.detach(),
    "prim::tolist": lambda x, *_: x.tolist(),
    "prim::ListConstruct": lambda *values: list(values),
}

#: Ops that change a list or dict.
CHANGES: dict[str, Callable[..., Any]] = {
    "aten::append": lambda values, value: values.append(value) or values,
    "aten::extend": lambda values, more: values.extend(more),
    "aten::insert": lambda values, place, value: values.insert(place, value),
    "aten::pop": lambda values, *place: values.pop(*place),
    "aten::clear": lambda values: values.clear(),
    "aten::reverse": lambda values: values.reverse(),
    "aten::_set_item": operator.setitem,
    "aten::Delete": operator.delitem,
    "aten::__delitem__": operator.delitem,
    "aten::remove": lambda values, value: values.remove(value),
    "aten::sort": lambda values, reverse=False: values.sort(reverse=reverse),
    "aten::update": lambda values, more: values.update(more),
    "aten::setdefault": lambda values, key, value: values.setdefault(key, value),
    "aten::popitem": lambda values: values.popitem(),
    "aten::add_": lambda values, more: values.__iadd__(more),
}


def _convolution(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return torch.convolution(x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups)


#: What torch.jit.optimize_for_inference puts around oneDNN's ops, and those; here tensors stay as they are.
MKLDNN_OPS: dict[str, Callable[..., Any]] = {
    "aten::to_mkldnn": lambda x, *_: x,
    "aten::to_dense": lambda x, *_: x,
    "prim::mkldnn_convolution": _convolution,
    "prim::MKLDNNHardSwish": F.hardswish,
    "prim::MKLDNNHardSwish_": F.hardswish,
    "prim::MKLDNNHardSigmoid": F.hardsigmoid,
    "prim::MKLDNNHardSigmoid_": F.hardsigmoid,
    "prim::MKLDNNRelu6": F.relu6,
    "prim::MKLDNNRelu6_": F.relu6,
    "prim::MKLDNNScalarMul": torch.mul,
    "prim::MKLDNNScalarMul_": torch.mul,
    "prim::BroadcastMKLDNNTensors": lambda *x: tuple(torch.broadcast_tensors(*x)),
}


def torch_argument(name: str, value: Any) -> Any:
    """An argument of a torch op as torch's Python side takes it, where TorchScript has a number."""
    if isinstance(value, TensorBool):
        return value.tensor.item()
    if name == "dtype" and isinstance(value, int):
        return DTYPES[value]
    if name == "memory_format" and isinstance(value, int):
        return _MEMORY_FORMATS[value]
    return None if name in ("layout", "pin_memory") else value
