"""Numbers that are known while a model is traced: what is computed of them alone, beside others, and written to."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline
from pipeline import CaptureError
from pipeline.frontend.generation.size_tensors import SizesKnown, is_known, known_numbers, size_tensor


class OfSizes(nn.Module):
    """Computes with sizes that are known, as models of images do."""

    def __init__(self, compute, sizes):
        super().__init__()
        self.compute, self.sizes = compute, sizes

    def forward(self, x):
        with SizesKnown():
            return self.compute(x, size_tensor(self.sizes))


def pieces(x, grid):
    """Windows of a line, cut out by sizes, each with its number added."""
    lengths = torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0])
    ends = nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    parts = torch.split(x, (ends[1:] - ends[:-1]).tolist())
    return torch.cat([part + number for number, part in enumerate(parts)])


def order(x, grid):
    """A line in blocks of rows, by numbers of places that are made of sizes, padded and masked."""
    found = []
    for _, height, width in grid.tolist():
        places = nn.functional.pad(torch.arange(height * width).reshape(height, width), (0, 1), value=-100)
        places = places.T.reshape(-1)
        found.append(places[places != -100] + sum(map(len, found)))
    return x[torch.cat(found)]


def ends(x, grid):
    """Slices, shapes and scalars."""
    height = grid[0, 1]
    scaled = x[: grid[0, 1] * grid[0, 2]].view(height, -1) * grid[0, 2]
    return scaled / height + torch.arange(grid[0, 2]) + torch.stack([grid[0, 0], scaled.sum().long()])[0]


@pytest.mark.parametrize("compute", [pieces, order, ends])
@pytest.mark.parametrize("sizes", [[[1, 2, 3], [2, 3, 2]], [[3, 6, 1]], [[1, 1, 18]]])
def test_is_as_without(compute, sizes):
    x = torch.randn(18)
    exe = pipeline.compile(OfSizes(compute, sizes), (x,), fallback="error")
    for given in (x, torch.randn(18)):
        assert torch.equal(exe(given), compute(given, torch.tensor(sizes)))


def test_what_is_known():
    with SizesKnown():
        sizes = size_tensor([[2, 3], [4, 5]])
        products = sizes.prod(-1)
        beside = torch.randn(2) * products
        assert is_known(products) and known_numbers(products) == [6, 20]
        assert not is_known(beside) and not is_known(torch.zeros(2))
        assert [int(number) for number in products] == [6, 20] and products.shape == (2,)
        assert known_numbers(torch.arange(3) + sizes[0, 0]) == [2, 3, 4]
        assert known_numbers(size_tensor([])) == [] and known_numbers(sizes[:0]) == []
        assert sizes[:0].shape == (0, 2)


@pytest.mark.parametrize(
    "write",
    [
        lambda sizes, x: sizes.__setitem__(0, x),
        lambda sizes, x: sizes.__setitem__((slice(None), 0), 1),
        lambda sizes, x: sizes.add_(1),
        lambda sizes, x: sizes.__iadd__(x),
    ],
)
def test_nothing_is_written_to_what_is_known(write):
    """Or what had been computed of it would be what it was."""
    with SizesKnown(), pytest.raises(CaptureError, match="writes to numbers that are known"):
        write(size_tensor([[2, 3]]), torch.ones(2, dtype=torch.int64))
