"""A number for each row of a tile, such as a bias of channels, where the loop along rows stands outside of the others.

A DaViT was wrong: a residual of tokens, added to channels first in front of a norm, left one position to the last tile.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline


class ResidualThenNorm(nn.Module):
    def forward(self, tokens, image, bias):
        total = tokens.transpose(1, 2).reshape(image.shape) + (image + bias[:, None, None])
        channels_last = total.permute(0, 2, 3, 1)
        centred = channels_last - channels_last.mean(-1, keepdim=True)
        return total, centred * torch.rsqrt(channels_last.var(-1, keepdim=True, correction=0) + 1e-5)


@pytest.mark.parametrize("sides", [(1, 1), (2, 7), (7, 7), (13, 1)], ids=lambda sides: f"{sides[0]}x{sides[1]}")
@pytest.mark.parametrize("channels", [20, 256, 300])
def test_each_channel_has_its_own_bias(channels, sides):
    torch.manual_seed(0)
    arguments = (torch.randn(2, sides[0] * sides[1], channels), torch.randn(2, channels, *sides), torch.randn(channels))
    model = ResidualThenNorm()
    got = pipeline.compile(model, arguments)(*arguments)
    for result, wanted in zip(got, model(*(one.double() for one in arguments)), strict=True):
        torch.testing.assert_close(result.double(), wanted, rtol=1e-4, atol=1e-4)
