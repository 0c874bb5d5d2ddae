"""Merges and splits of dims in every order, windows, patches."""

from __future__ import annotations

import torch
from case import cases
from torch import Tensor, nn


def merge_split_elsewhere(x: Tensor) -> Tensor:
    b, t = x.shape[:2]
    return x.reshape(b * t * 2, 8).tanh().reshape(t, b * 16)


def swap_by_view(x: Tensor) -> Tensor:
    b, t = x.shape[:2]
    return (x + 1).view(t, b, 16) * 2


def merge_middle(x: Tensor) -> Tensor:
    b, t, u, c = x.shape
    return x.reshape(b, t * u, c).sin()


def merge_two_pairs(x: Tensor) -> Tensor:
    b, t, u, c = x.shape
    return x.reshape(b * t, u * c).exp()


def merge_after_permute(x: Tensor) -> Tensor:
    b, t, u, c = x.shape
    return x.permute(2, 0, 3, 1).reshape(u * b, c * t).sin()


def heads_and_back(x: Tensor) -> Tensor:
    b, t, _ = x.shape
    return (
        x.view(b, t, 4, 4)
        .permute(0, 2, 1, 3)
        .reshape(b * 4, t, 4)
        .cumsum(1)
        .view(b, 4, t, 4)
        .transpose(1, 2)
        .reshape(b, t, 16)
    )


def flatten_all(x: Tensor) -> Tensor:
    return x.flatten().sigmoid()


def ravel_and_back(x: Tensor) -> Tensor:
    return (x.reshape(-1) * 2).reshape(x.shape)


def minus_one(x: Tensor) -> Tensor:
    return x.reshape(-1, 4, x.shape[0]).relu()


def across(x: Tensor) -> Tensor:
    b, t = x.shape[:2]
    return (x.reshape(2 * b, t, 8) + 1).reshape(b, 2 * t, 8)


def like_other(x: Tensor, y: Tensor) -> Tensor:
    return x.sin().view(y.shape) + y


def unit_dims(x: Tensor) -> Tensor:
    b, t, _ = x.shape
    return x.view(1, b, 1, t, 16, 1).exp().reshape(b, 1, t, 16).squeeze(1)


def squeeze_unit(x: Tensor) -> Tensor:
    return x.unsqueeze(1).unsqueeze(-1).squeeze(1).squeeze(-1).unsqueeze(0) + x


def space_to_depth(x: Tensor) -> Tensor:
    b, c, h, w = x.shape
    return x.view(b, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 2, 4).reshape(b, c * 4, h // 2, w // 2)


def depth_to_space(x: Tensor) -> Tensor:
    b, c, h, w = x.shape
    return x.view(b, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3).reshape(b, c // 4, h * 2, w * 2)


def swin_windows(x: Tensor) -> Tensor:
    b, h, w, c = x.shape
    windows = x.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
    mixed = torch.softmax(windows @ windows.mT, -1) @ windows
    return mixed.view(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)


def patches(x: Tensor) -> Tensor:
    b, c, h, w = x.shape
    return x.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 1, 4, 5).reshape(b, -1, c * 4)


def overlapping(x: Tensor) -> Tensor:
    return x.unfold(1, 3, 1).mean(-1)


def framed(x: Tensor) -> Tensor:
    b, t = x.shape
    return x.view(b, t // 4, 4).softmax(-1).flatten(1)


def group_shuffle(x: Tensor) -> Tensor:
    b, c, h, w = x.shape
    return x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)


def norm_by_groups(x: Tensor) -> Tensor:
    b, c, t = x.shape
    y = x.view(b, 2, c // 2 * t)
    return ((y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, unbiased=False) + 1e-3).sqrt()).view(b, c, t)


def expand_new(x: Tensor) -> Tensor:
    b, t, c = x.shape
    return x.unsqueeze(2).expand(b, t, 3, c).reshape(b, t * 3, c) * 2


def expand_symbolic(x: Tensor, y: Tensor) -> Tensor:
    return x.mean(1, keepdim=True).expand(-1, y.shape[0], -1).reshape(-1, 16) + 1


def expand_as(x: Tensor, y: Tensor) -> Tensor:
    return x[:, None].expand_as(y).reshape(-1) * y.reshape(-1)


def strided(x: Tensor) -> Tensor:
    b, t = x.shape
    return x.as_strided((b, t // 2), (t, 2), 1) * 2


def sliding(x: Tensor) -> Tensor:
    (t,) = x.shape
    return x.as_strided((t - 2, 3), (1, 1)).sum(-1)


CASES = [
    *cases(
        {
            "merge, split elsewhere": (merge_split_elsewhere, "b t 16"),
            "swap by view": (swap_by_view, "b t 16"),
            "merge middle": (merge_middle, "b t u 4"),
            "merge two pairs": (merge_two_pairs, "b t u 4"),
            "merge after permute": (merge_after_permute, "b t u 4"),
            "heads and back": (heads_and_back, "b t 16"),
            "flatten": (flatten_all, "b t u"),
            "ravel and back": (ravel_and_back, "b t u"),
            "minus one": (minus_one, "b t 16"),
            "across": (across, "b t 16"),
            "like the other": (like_other, "b t 16", "t b 2 8"),
            "unit dims": (unit_dims, "b t 16"),
            "squeeze unit": (squeeze_unit, "b t 16"),
            "flatten module": (nn.Sequential(nn.Flatten(0, 1), nn.Linear(8, 4)), "b t 8"),
            "unflatten module": (nn.Sequential(nn.Linear(8, 6), nn.Unflatten(2, (2, 3))), "b t 8"),
            "depth to space": (depth_to_space, "b 8 h w"),
            "pixel shuffle": (nn.PixelShuffle(2), "b 8 h w"),
            "channel shuffle": (nn.ChannelShuffle(2), "b 4 h w"),
            "group shuffle": (group_shuffle, "b 4 h w"),
            "overlapping": (overlapping, "b t+2 4"),
            "unfold module": (nn.Unfold(3, padding=1), "b 2 h w"),
            "expand new": (expand_new, "b t 16"),
            "expand to a size": (expand_symbolic, "b t 16", "u 3"),
            "expand as": (expand_as, "b t", "b u t"),
            "norm by groups": (norm_by_groups, "b 4 t"),
            "sliding by strides": (sliding, "t+2"),
        }
    ),
    *cases(
        {
            "space to depth": (space_to_depth, "b 2 2*h 2*w"),
            "pixel unshuffle": (nn.PixelUnshuffle(2), "b 2 2*h 2*w"),
            "pixel unshuffle by 3": (nn.PixelUnshuffle(3), "2 c 3*h 3*w"),
            "pixel shuffle of channels": (nn.PixelShuffle(2), "2 4*c h w"),
            "channel shuffle of channels": (nn.ChannelShuffle(2), "2 2*c h w"),
            "swin windows": (swin_windows, "b 4*h 4*w 8"),
            "patches": (patches, "b 2 2*h 2*w"),
            "patch unfold": (nn.Unfold(2, stride=2), "b 2 2*h 2*w"),
            "fold": (nn.Fold((8, 8), 2, stride=2), "b 12 16"),
            "framed": (framed, "b 4*t"),
            "every other by strides": (strided, "b 2*t"),
        }
    ),
]
