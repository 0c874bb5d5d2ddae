"""Convolutions, pools and resizing, on a symbolic batch, height and width."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from case import cases
from torch import Tensor, nn


class UNet(nn.Module):
    """Down and up once, with a connection past it."""

    def __init__(self, up: str):
        super().__init__()
        self.first, self.down = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2) if up == "transposed" else nn.Conv2d(8, 4, 1)
        self.last, self.how = nn.Conv2d(8, 1, 1), up

    def forward(self, x):
        skip = self.first(x).relu()
        low = self.down(F.max_pool2d(skip, 2)).relu()
        if self.how == "transposed":
            high = self.up(low)
        else:
            high = F.interpolate(self.up(low), size=skip.shape[-2:], mode=self.how)
        return self.last(torch.cat([skip, high], 1))


class Residual(nn.Module):
    """Two convolutions with norms, and what goes past them."""

    def __init__(self):
        super().__init__()
        self.way = nn.Sequential(
            nn.Conv2d(4, 8, 3, 2, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, 1, 1),
            nn.BatchNorm2d(8),
        )
        self.past = nn.Conv2d(4, 8, 1, 2)

    def forward(self, x):
        return (self.way(x) + self.past(x)).relu().mean((2, 3))


class Excite(nn.Module):
    """Squeeze and excitation."""

    def __init__(self):
        super().__init__()
        self.pool, self.squeeze, self.excite = nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 2, 1), nn.Conv2d(2, 4, 1)

    def forward(self, x):
        return x * self.excite(self.squeeze(self.pool(x)).relu()).sigmoid()


class Patches(nn.Module):
    """Patch embedding with a token in front."""

    def __init__(self):
        super().__init__()
        self.cut, self.token = nn.Conv2d(2, 8, 4, 4), nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, x):
        y = self.cut(x).flatten(2).transpose(1, 2)
        return torch.cat([self.token.expand(x.shape[0], -1, -1), y], 1)


def resized(mode: str, scale: float = 2.0, **options):
    return lambda x: F.interpolate(x, scale_factor=scale, mode=mode, **options)


def to_size(mode: str, *size: int, **options):
    return lambda x: F.interpolate(x, size=size, mode=mode, **options)


def like(mode: str, **options):
    return lambda x, y: F.interpolate(x, size=y.shape[2:], mode=mode, **options) + y


def pyramid(x: Tensor) -> Tensor:
    levels = [F.interpolate(F.adaptive_avg_pool2d(x, n), size=x.shape[-2:], mode="nearest") for n in (1, 2)]
    return torch.cat([x, *levels], 1)


def sampled(x: Tensor, grid: Tensor) -> Tensor:
    return F.grid_sample(x, grid.tanh(), align_corners=False)


CASES = [
    *cases(
        {
            "conv": (nn.Conv2d(2, 4, 3, padding=1), "b 2 h w"),
            "conv without pad": (nn.Conv2d(2, 4, 3), "b 2 h+2 w+2"),
            "conv in steps": (nn.Conv2d(2, 4, 3, stride=2, padding=1), "b 2 h w"),
            "conv in groups": (nn.Conv2d(4, 8, 3, groups=2, padding=1), "b 4 h w"),
            "depthwise": (nn.Conv2d(4, 4, 3, groups=4, padding=1), "b 4 h w"),
            "depthwise, twice the channels": (nn.Conv2d(4, 8, 3, groups=4, padding=1, stride=2), "b 4 h w"),
            "conv same": (nn.Conv2d(2, 4, (3, 2), padding="same"), "b 2 h w"),
            "conv reflect": (nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect"), "b 2 h+1 w+1"),
            "conv circular": (nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"), "b 2 h w"),
            "conv1d": (nn.Conv1d(4, 8, 3, padding=1), "b 4 t"),
            "conv1d causal": (lambda x, w: F.conv1d(F.pad(x, (2, 0)), w), "b 4 t", "8 4 3"),
            "conv3d": (nn.Conv3d(2, 4, 3, padding=1), "b 2 d h 4"),
            "transposed": (nn.ConvTranspose2d(4, 2, 2, stride=2), "b 4 h w"),
            "transposed with output padding": (
                nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1),
                "b 4 h w",
            ),
            "transposed in groups": (nn.ConvTranspose2d(4, 4, 3, groups=2, stride=2), "b 4 h w"),
            "transposed depthwise": (nn.ConvTranspose2d(4, 4, 4, groups=4, stride=2, padding=1), "b 4 h w"),
            "residual": (Residual(), "b 4 h w"),
            "excite": (Excite(), "b 4 h w"),
            "batch norm": (nn.BatchNorm2d(3), "b 3 h w"),
            "group norm": (nn.GroupNorm(2, 4), "b 4 h w"),
            "instance norm": (nn.InstanceNorm2d(4, affine=True), "b 4 h+1 w"),
            "local response": (nn.LocalResponseNorm(2), "b 4 h w"),
            "reflect pad": (nn.ReflectionPad2d(1), "b 2 h+1 w+1"),
            "replicate pad": (nn.ReplicationPad2d((1, 2, 2, 1)), "b 2 h w"),
            "crop by pad": (lambda x: F.pad(x, (-1, 0, 1, -1)), "b 2 h+2 w+2"),
        }
    ),
    *cases(
        {
            "max pool": (nn.MaxPool2d(2), "b 2 2*h 2*w"),
            "max pool, ceil": (nn.MaxPool2d(2, ceil_mode=True), "b 2 h w"),
            "max pool, ceil and pad": (nn.MaxPool2d(3, 2, 1, ceil_mode=True), "b 2 h w"),
            "max pool 1d, ceil": (nn.MaxPool1d(2, ceil_mode=True), "b 2 5"),
            "max pool with places": (nn.MaxPool2d(2, return_indices=True), "b 2 2*h 2*w"),
            "max pool 3d": (nn.MaxPool3d(2, 1, 1), "b 2 d h 3"),
            "average pool": (nn.AvgPool2d(2), "b 2 2*h 2*w"),
            "average pool, ceil": (nn.AvgPool2d(3, 2, 1, ceil_mode=True), "b 2 h w"),
            "average pool without pads": (nn.AvgPool2d(3, 1, 1, count_include_pad=False), "b 2 h w"),
            "average pool 1d, ceil": (nn.AvgPool1d(2, ceil_mode=True), "b 2 t"),
            "adaptive average of 1": (nn.AdaptiveAvgPool2d(1), "b 2 h w"),
            "adaptive average": (nn.AdaptiveAvgPool2d((3, 2)), "b 2 h w"),
            "adaptive average 1d": (nn.AdaptiveAvgPool1d(4), "b 2 t"),
            "adaptive max of 1": (nn.AdaptiveMaxPool2d(1), "b 2 h w"),
            "adaptive max": (nn.AdaptiveMaxPool2d((3, 2)), "b 2 h w"),
            "adaptive max 1d": (nn.AdaptiveMaxPool1d(3), "b 2 t"),
            "global mean and max": (lambda x: torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1), "b 2 h w"),
            "pyramid": (pyramid, "b 2 h w"),
            "nearest": (resized("nearest"), "b 2 h w"),
            "nearest exact": (resized("nearest-exact", 3.0), "b 2 h w"),
            "nearest to a size": (to_size("nearest", 6, 4), "b 2 h w"),
            "bilinear": (resized("bilinear"), "b 2 h w"),
            "bilinear, corners": (resized("bilinear", align_corners=True), "b 2 h w"),
            "bilinear to a size": (to_size("bilinear", 6, 4), "b 2 h w"),
            "linear resize": (resized("linear"), "b 2 t"),
            "bilinear to a size, corners": (to_size("bilinear", 6, 4, align_corners=True), "b 2 h w"),
            "bicubic": (resized("bicubic"), "b 2 h w"),
            "upsample module": (nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), "b 2 h w"),
            "bilinear like the other": (like("bilinear"), "b 2 h w", "b 2 2*h 2*w"),
            "bilinear like the other, corners": (like("bilinear", align_corners=True), "b 2 h w", "b 2 2*h 2*w"),
            "u-net": (UNet("transposed"), "b 2 2*h 2*w"),
            "u-net, bilinear": (UNet("bilinear"), "b 2 2*h 2*w"),
            "patch embedding": (Patches(), "b 2 4*h 4*w"),
            "grid sample": (sampled, "b 2 h w", "b h w 2"),
        }
    ),
]
