"""Reductions, scans and orders along axes."""

from __future__ import annotations

from typing import Any

import torch

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.known import Known
from pipeline.frontend.onnx.ops.table import op

_REDUCTIONS = {
    "ReduceSum": torch.sum,
    "ReduceMean": torch.mean,
    "ReduceProd": None,
    "ReduceMax": torch.amax,
    "ReduceMin": torch.amin,
    "ReduceL1": lambda x, dim, keepdim: x.abs().sum(dim, keepdim),
    "ReduceL2": lambda x, dim, keepdim: (x * x).sum(dim, keepdim).sqrt(),
    "ReduceLogSum": lambda x, dim, keepdim: x.sum(dim, keepdim).log(),
    "ReduceLogSumExp": torch.logsumexp,
    "ReduceSumSquare": lambda x, dim, keepdim: (x * x).sum(dim, keepdim),
}


@op(*_REDUCTIONS, as_given=(1,))
def reduce(call: NodeCall, x: torch.Tensor, axes: Any = None) -> torch.Tensor:
    """Along axes, all of them by default."""
    dims = call.numbers(axes, "axes")
    name, keep = call.node.op_type, bool(call.get("keepdims", 1))
    if not dims and call.get("noop_with_empty_axes"):
        return _of_elements(name, x)
    dims = sorted({axis % x.dim() for axis in dims}) if dims else list(range(x.dim()))
    if not dims:
        return _of_elements(name, x)
    if any(isinstance(x.shape[axis], int) and x.shape[axis] == 0 for axis in dims):
        return _of_nothing(name, x, dims, keep)
    if name == "ReduceProd":
        return _product(x, dims, keep)
    function = _REDUCTIONS[name]
    assert function is not None  # of products, above
    if x.dtype == torch.bool:
        return function(x.to(torch.uint8), dims, keep).to(torch.bool)
    if not x.is_floating_point() and name in ("ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):
        return function(x.to(torch.float64), dims, keep).to(x.dtype)
    return function(x, dims, keep).to(x.dtype)


def _of_elements(name: str, x: torch.Tensor) -> torch.Tensor:
    """What reductions give of one element each."""
    functions = {
        "ReduceL1": torch.abs,
        "ReduceL2": torch.abs,
        "ReduceLogSum": torch.log,
        "ReduceSumSquare": torch.square,
    }
    return functions.get(name, lambda y: y)(x)


def _of_nothing(name: str, x: torch.Tensor, dims: list[int], keep: bool) -> torch.Tensor:
    """What reductions give along a size of 0."""
    lowest = -float("inf") if x.is_floating_point() else 0 if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    highest = float("inf") if x.is_floating_point() else 1 if x.dtype == torch.bool else torch.iinfo(x.dtype).max
    values = {"ReduceMax": lowest, "ReduceMin": highest, "ReduceProd": 1, "ReduceMean": float("nan")}
    values |= {"ReduceLogSum": lowest, "ReduceLogSumExp": lowest}
    shape = [1 if axis in dims else size for axis, size in enumerate(x.shape)]
    shape = shape if keep else [size for axis, size in enumerate(x.shape) if axis not in dims]
    return torch.full(shape, values.get(name, 0), dtype=x.dtype)


def _product(x: torch.Tensor, dims: list[int], keep: bool) -> torch.Tensor:
    dtype = x.dtype
    for axis in reversed(dims):
        x = x.prod(axis, keepdim=keep)
    return x.to(dtype)


@op("ArgMax", "ArgMin")
def arg_extreme(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """The place of the greatest or least element, the first one or the last one."""
    axis, keep = call.get("axis", 0), bool(call.get("keepdims", 1))
    function = torch.argmax if call.node.op_type == "ArgMax" else torch.argmin
    if not call.get("select_last_index"):
        return function(x, axis, keep)
    return x.shape[axis] - 1 - function(x.flip(axis), axis, keep)


@op("CumSum", "CumProd", as_given=(1,))
def scan(call: NodeCall, x: torch.Tensor, axis: Any) -> torch.Tensor:
    """Sums or products of all elements up to each one."""
    dim = call.number(axis) % x.dim()
    is_sum = call.node.op_type == "CumSum"
    y = x.flip(dim) if call.get("reverse") else x
    y = torch.cumsum(y, dim, dtype=x.dtype) if is_sum else torch.cumprod(y, dim, dtype=x.dtype)
    if call.get("exclusive"):
        first = torch.full_like(y.narrow(dim, 0, 1), 0 if is_sum else 1)
        y = torch.cat([first, y.narrow(dim, 0, y.shape[dim] - 1)], dim)
    return y.flip(dim) if call.get("reverse") else y


@op("TopK", as_given=(1,))
def top_k(call: NodeCall, x: torch.Tensor, k: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    """The k greatest or least elements and their places; of equal ones the first."""
    axis, largest = call.get("axis", -1), bool(call.get("largest", 1))
    values, places = torch.sort(x, dim=axis, descending=largest, stable=True)
    count = call.number(k, "k")
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)


@op("Unique")
def unique(call: NodeCall, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Unique elements or slices, where they are first, which one each is, and how many."""
    axis, is_sorted = call.get("axis"), call.get("sorted", 1)
    if axis is None:
        values, inverse, counts = torch.unique(x, sorted=True, return_inverse=True, return_counts=True)
        inverse, size = inverse.reshape(-1), x.numel()
    else:
        values, inverse, counts = torch.unique(x, sorted=True, return_inverse=True, return_counts=True, dim=axis)
        size = x.shape[axis]
    first = torch.full((counts.shape[0],), size, dtype=torch.int64)
    first = first.scatter_reduce(0, inverse, torch.arange(size), "amin")
    if is_sorted:
        return values, first, inverse, counts
    order = torch.argsort(first)
    place = torch.argsort(order)
    return values.index_select(axis or 0, order), first[order], place[inverse], counts[order]


@op("LpNormalization")
def lp_normalization(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """Divided by the norm along an axis; 0 where that is 0."""
    norm = torch.linalg.vector_norm(x, call.get("p", 2), call.get("axis", -1), keepdim=True)
    return torch.where(norm == 0, torch.zeros_like(x), x / norm)


@op("Det")
def determinant(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """Of matrices."""
    return torch.linalg.det(x)


@op("NonZero")
def non_zero(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """The places of elements that are not 0, a column each."""
    return torch.nonzero(x).t() if x.dim() else torch.nonzero(x.reshape(1)).t().narrow(0, 0, 0)


@op("Identity", as_given=(0,))
def identity(call: NodeCall, x: Any) -> Any:
    """The value itself: a tensor, a list, or nothing."""
    return x if not isinstance(x, Known) else x
