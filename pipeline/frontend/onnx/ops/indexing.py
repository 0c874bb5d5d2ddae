"""Gathers and scatters."""

from __future__ import annotations

from typing import Any

import torch

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op


def _positive(index: torch.Tensor, size: Any) -> torch.Tensor:
    """Indices, of which negative ones count from the end."""
    return torch.where(index < 0, index + size, index).to(torch.int64)


@op("Gather", as_given=(1,))
def gather(call: NodeCall, x: torch.Tensor, index: Any) -> torch.Tensor:
    """Slices along an axis."""
    from pipeline.frontend.onnx.known import Known

    axis = call.get("axis", 0) % x.dim()
    if isinstance(index, Known):
        if index.values.ndim == 0 and isinstance(index.numbers()[0], int):
            return x.select(axis, index.numbers()[0])
        index = index.tensor()
    places = _positive(index, x.shape[axis])
    rows = x.index_select(axis, places.reshape(-1))
    return rows.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


@op("GatherElements")
def gather_elements(call: NodeCall, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Elements along an axis."""
    axis = call.get("axis", 0)
    return torch.gather(x, axis, _positive(index, x.shape[axis]))


@op("GatherND")
def gather_nd(call: NodeCall, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Slices whose place is a row of `index`, per batch."""
    return x[_joint(x, index, call.get("batch_dims", 0))]


def _joint(x: torch.Tensor, index: torch.Tensor, batch: int) -> tuple[torch.Tensor, ...]:
    """A row of indices as an index for each of the dims, after one for each batch dim."""
    count = index.shape[-1]
    outer = index.shape[:-1]
    places = []
    for axis in range(batch):
        shape = [-1 if at == axis else 1 for at in range(len(outer))]
        places.append(torch.arange(x.shape[axis]).reshape(shape))
    places += [_positive(index.select(-1, at), x.shape[batch + at]) for at in range(count)]
    return tuple(places)


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@op("ScatterElements", "Scatter")
def scatter_elements(call: NodeCall, x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    """x with elements along an axis replaced, or combined with them."""
    axis = call.get("axis", 0)
    places = _positive(index, x.shape[axis])
    how = call.get("reduction", "none")
    if how == "none":
        return x.scatter(axis, places, updates)
    return x.scatter_reduce(axis, places, updates, _REDUCTIONS[how])


@op("ScatterND")
def scatter_nd(call: NodeCall, x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    """x with slices replaced, or combined with them, whose places are the rows of `index`."""
    how = call.get("reduction", "none")
    places = _joint(x, index, 0)
    if how in ("none", "add"):
        return x.index_put(places, updates, accumulate=how == "add")
    count = index.shape[-1]
    flat = x.reshape(-1, *x.shape[count:])
    row = torch.zeros_like(places[0])
    for place, size in zip(places, x.shape[:count], strict=True):
        row = row * size + place
    inner = updates.reshape(-1, *x.shape[count:])
    rows = row.reshape(-1, *[1] * (inner.dim() - 1)).expand(inner.shape)
    return flat.scatter_reduce(0, rows, inner, _REDUCTIONS[how]).reshape(x.shape)


@op("OneHot", as_given=(1,))
def one_hot(call: NodeCall, index: torch.Tensor, depth: Any, values: torch.Tensor) -> torch.Tensor:
    """values[1] at the index along a new axis, values[0] elsewhere."""
    count = int(call.number(depth))
    axis = call.get("axis", -1) % (index.dim() + 1)
    places = torch.arange(count).reshape([-1 if at == axis else 1 for at in range(index.dim() + 1)])
    wanted = torch.remainder(index.to(torch.int64), count) if index.dtype.is_floating_point else index
    found = _positive(wanted, count).unsqueeze(axis) == places
    return torch.where(found, values.select(0, 1), values.select(0, 0))


@op("TensorScatter")
def tensor_scatter(
    call: NodeCall, cache: torch.Tensor, update: torch.Tensor, begin: torch.Tensor | None = None
) -> torch.Tensor:
    """A cache with new rows from a place in each batch on."""
    axis = call.get("axis", -2) % cache.dim()
    batches, length = cache.shape[0], cache.shape[axis]
    steps = torch.arange(update.shape[axis])
    places = steps.unsqueeze(0) + (torch.zeros(batches, dtype=torch.int64) if begin is None else begin).unsqueeze(1)
    if call.get("mode", "linear") == "circular":
        places = torch.remainder(places, length)
    shape = [1] * cache.dim()
    shape[0], shape[axis] = batches, update.shape[axis]
    return cache.scatter(axis, places.reshape(shape).expand(update.shape), update)


@op("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(call: NodeCall, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Columns."""
    rows = x.reshape(1, -1) if x.dim() == 1 else x
    return rows.index_select(-1, index.reshape(-1))
