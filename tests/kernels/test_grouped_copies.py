"""Copies to groups of two or four elements: lines are interleaved, words are transposed, all else is left as it was."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline


class Copies(nn.Module):
    """Each tensor with its dims in another order."""

    def __init__(self, orders: list[tuple[int, ...]]):
        super().__init__()
        self.orders = orders

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        return [x.permute(order).contiguous() for x, order in zip(tensors, self.orders, strict=True)]


def random(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Elements of a type, all different bits."""
    bits = torch.randint(-(2**15), 2**15, shape, dtype=torch.int16)
    return bits.to(dtype) if dtype in (torch.int8, torch.uint8) else bits.view(dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int16, torch.int8, torch.uint8], ids=str)
@pytest.mark.parametrize("group", [2, 4])
def test_groups(dtype: torch.dtype, group: int) -> None:
    """Lines of all lengths, groups from lines of their own and groups that lie together, with other dims around."""
    torch.manual_seed(0)
    given = []
    for columns in (1, 7, 8, 12, 16, 24, 32, 48, 96, 128):
        given.append(((5, group, columns), (0, 2, 1)))
        given.append(((3, group, 2, columns), (2, 0, 3, 1)))
        given.append(((columns, 16, group), (1, 0, 2)))
        given.append(((2, columns, 32, group), (2, 0, 1, 3)))
    tensors = [random(shape, dtype) for shape, _ in given]
    executable = pipeline.compile(Copies([order for _, order in given]), tuple(tensors))
    for x, (_, order), found in zip(tensors, given, executable(*tensors), strict=True):
        expected = x.permute(order).contiguous()
        bits = torch.int8 if x.element_size() == 1 else torch.int16
        assert torch.equal(found.view(bits), expected.view(bits))
    said = {remark.reason for remark in executable.remarks if remark.pass_name == "tile-and-vectorize"}
    assert any(reason.startswith("interleaves lines") for reason in said)
    words = group * tensors[0].element_size() == 4
    assert any(reason.startswith("transposes squares") for reason in said) == words


def test_a_part_of_a_tensor() -> None:
    torch.manual_seed(0)
    x = torch.randn(6, 2, 40).bfloat16()
    executable = pipeline.compile(lambda x: x[1:5, :, 3:35].transpose(1, 2).contiguous(), (x,))
    assert torch.equal(executable(x), x[1:5, :, 3:35].transpose(1, 2))
