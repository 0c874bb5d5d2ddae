"""Programs whose results have sizes that depend on data: v: [n] and x: [n, 6] of floats, c: [n] of counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Program = Callable[..., Any]


def _put(x: torch.Tensor, mask: torch.Tensor, value: Any) -> torch.Tensor:
    x = x.clone()
    x[mask] = value
    return x


OF_SELECTIONS: dict[str, Program] = {
    "nonzero": lambda v, x, c: v.relu().nonzero(),
    "nonzero_2d": lambda v, x, c: x.relu().nonzero(),
    "nonzero_3d": lambda v, x, c: (x.view(-1, 2, 3) > 0).nonzero(),
    "nonzero_ints": lambda v, x, c: (c - 1).nonzero(),
    "nonzero_tuple": lambda v, x, c: (x > 0.5).nonzero(as_tuple=True),
    "argwhere": lambda v, x, c: torch.argwhere(x > 0.5),
    "where_condition": lambda v, x, c: torch.where(x > 0.5),
    "none": lambda v, x, c: (x > 100).nonzero(),
    "all": lambda v, x, c: (x < 100).nonzero(),
    "nan": lambda v, x, c: (v / 0).nonzero(),
    "mask_1d": lambda v, x, c: v[v > 0],
    "mask_2d": lambda v, x, c: x[x > 0],
    "mask_rows": lambda v, x, c: x[v > 0],
    "mask_rows_all": lambda v, x, c: x[v > 0, :],
    "mask_column": lambda v, x, c: x[:, torch.tensor([True, False, True, True, False, False])],
    "mask_and_index": lambda v, x, c: x[v > 0, 2],
    "mask_bools": lambda v, x, c: (x > 0)[v > 0],
    "mask_ints": lambda v, x, c: c[c > 1],
    "masked_select": lambda v, x, c: x.masked_select(x > 0.3),
    "masked_select_broadcast": lambda v, x, c: x.masked_select((v > 0).unsqueeze(1)),
    "masked_select_of_fewer": lambda v, x, c: v.unsqueeze(1).masked_select(x > 0.3),
    "masked_select_of_rows_and_columns": lambda v, x, c: torch.masked_select(x[:, None, :2], mask=x[:, 2:4] > 0),
    "masked_select_one": lambda v, x, c: v[0].masked_select(v[0] < 100),
    "masked_select_16": lambda v, x, c: x.half().masked_select(x > 0.3).float(),
    "put_number": lambda v, x, c: _put(x, v > 0, 7.0),
    "put_elements": lambda v, x, c: _put(x, x > 0, -1.0),
    "put_row": lambda v, x, c: _put(x, v > 0, torch.arange(6.0)),
    "put_selected": lambda v, x, c: _put(v, v > 0, v[v > 0] * 2),
    "put_selected_rows": lambda v, x, c: _put(x, v > 0, x[v > 0] * 2),
    "behind_elementwise": lambda v, x, c: torch.exp(v[v > 0]) * 2 + 1,
    "behind_sum": lambda v, x, c: x[v > 0].sum(0),
    "behind_softmax": lambda v, x, c: torch.softmax(x[v > 0], -1),
    "behind_matmul": lambda v, x, c: x[v > 0] @ torch.ones(6, 5),
    "behind_gram": lambda v, x, c: x[v > 0].t() @ x[v > 0],
    "behind_sort": lambda v, x, c: v[v > 0].sort()[0],
    "behind_cat": lambda v, x, c: torch.cat([v[v > 0], v]),
    "behind_cumsum": lambda v, x, c: v[v > 0].cumsum(0),
    "behind_mean": lambda v, x, c: v[v > 0].mean(),
    "size": lambda v, x, c: v[v > 0].shape[0],
    "size_used": lambda v, x, c: v / (v[v > 0].shape[0] + 1),
    "gather_back": lambda v, x, c: x[(v > 0).nonzero().squeeze(1)],
    "unique": lambda v, x, c: torch.unique(c),
    "unique_inverse": lambda v, x, c: torch.unique(c, return_inverse=True),
    "unique_counts": lambda v, x, c: torch.unique(c, return_inverse=True, return_counts=True),
    "unique_floats": lambda v, x, c: torch.unique((v * 2).round()),
    "unique_2d": lambda v, x, c: torch.unique((x * 2).round().int(), return_inverse=True),
    "unique_unsorted": lambda v, x, c: torch.unique(c, sorted=True, return_counts=True)[1],
    "unique_consecutive": lambda v, x, c: torch.unique_consecutive(c),
    "unique_consecutive_all": lambda v, x, c: torch.unique_consecutive(c, return_inverse=True, return_counts=True),
    "repeat_interleave": lambda v, x, c: torch.repeat_interleave(c),
    "repeat_interleave_rows": lambda v, x, c: x.repeat_interleave(c, 0),
    "repeat_interleave_flat": lambda v, x, c: v.repeat_interleave(c),
    "repeat_interleave_size": lambda v, x, c: x.repeat_interleave(c, 0, output_size=int(c.sum())),
    "nonzero_static": lambda v, x, c: torch.nonzero_static(x > 0.3, size=5, fill_value=-1),
    "bincount": lambda v, x, c: torch.bincount(c),
    "bincount_min": lambda v, x, c: torch.bincount(c, minlength=6),
    "bincount_weights": lambda v, x, c: torch.bincount(c, weights=v, minlength=6).double(),
    "twice": lambda v, x, c: v[v > 0][v[v > 0] < 0.5],
    "counts": lambda v, x, c: torch.count_nonzero(x > 0),
}
