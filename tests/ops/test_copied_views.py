"""`torch.permute_copy` and its like: what a view shows, in memory of its own."""

from __future__ import annotations

import pytest
import torch
from tables import results_of

COPIES = {
    "alias": lambda x: torch.alias_copy(x),
    "as_strided": lambda x: torch.as_strided_copy(x, (2, 2), (3, 1)),
    "detach": lambda x: torch.detach_copy(x),
    "diagonal": lambda x: torch.diagonal_copy(x, 1),
    "expand": lambda x: torch.expand_copy(x, (4, 3, 5)),
    "narrow": lambda x: torch.narrow_copy(x, 1, 1, 3),
    "permute": lambda x: torch.permute_copy(x, (1, 0)),
    "select": lambda x: torch.select_copy(x, 1, -1),
    "slice": lambda x: torch.slice_copy(x, 1, 1, 5, 2),
    "split": lambda x: torch.split_copy(x, 2, 1),
    "split_with_sizes": lambda x: torch.split_with_sizes_copy(x, (1, 0, 4), 1),
    "squeeze": lambda x: torch.squeeze_copy(x[:1]),
    "t": lambda x: torch.t_copy(x),
    "transpose": lambda x: torch.transpose_copy(x, 0, 1),
    "unbind": lambda x: torch.unbind_copy(x, 1),
    "unfold": lambda x: torch.unfold_copy(x, 1, 2, 2),
    "unsqueeze": lambda x: torch.unsqueeze_copy(x, 1),
    "view": lambda x: torch.view_copy(x, (5, 3)),
    "view as a dtype": lambda x: torch.view_copy(x, torch.int32),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32], ids=str)
def test_copies(dtype):
    x = torch.randn(3, 5).mul(9).to(dtype)
    programs = {name: (copied, (x.clone(),)) for name, copied in COPIES.items()}
    for name, result in results_of(programs).items():
        torch.testing.assert_close(result, COPIES[name](x), rtol=0, atol=0, msg=name)
