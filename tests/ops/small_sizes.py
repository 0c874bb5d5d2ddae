"""Ops on [s, 4] that want more of s than some sizes have."""

from __future__ import annotations

import torch
import torch.nn.functional as F

#: A weight [2, 4, 3], which spans 3 elements.
WEIGHT = torch.linspace(-1, 1, 24).reshape(2, 4, 3)

PART = torch.arange(8.0).reshape(2, 4)


def planes(x):
    """[s, 4] as an image [1, 4, s]."""
    return x.T[None]


def written(x):
    x = x.clone()
    x[2] = 1
    return x


#: On [s, 4], with s from 0 on.
OPS = {
    "max": lambda x: x.max(),
    "max along": lambda x: x.max(0),
    "amin": lambda x: x.amin(),
    "aminmax": lambda x: torch.aminmax(x),
    "argmax": lambda x: x.argmax(0),
    "norm of the largest": lambda x: x.norm(float("inf"), 0),
    "logsumexp": lambda x: (x.logsumexp(0), x.softmax(0), x.log_softmax(0)),
    "convolution": lambda x: F.conv1d(planes(x), WEIGHT),
    "convolution, padded": lambda x: F.conv1d(planes(x), WEIGHT, padding=1, stride=2),
    "convolution, dilated": lambda x: F.conv1d(planes(x), WEIGHT, dilation=2),
    "max pool": lambda x: F.max_pool1d(planes(x), 3),
    "max pool, ceil": lambda x: F.max_pool1d(planes(x), 3, 2, 1, ceil_mode=True),
    "mean pool": lambda x: F.avg_pool1d(planes(x), 3),
    "mean pool, ceil": lambda x: F.avg_pool1d(planes(x), 3, 2, 1, ceil_mode=True),
    "adaptive mean": lambda x: F.adaptive_avg_pool1d(planes(x), 3),
    "adaptive max": lambda x: F.adaptive_max_pool1d(planes(x), 3),
    "pad by reflection": lambda x: F.pad(planes(x), (1, 2), mode="reflect"),
    "pad by repetition": lambda x: F.pad(planes(x), (2, 1), mode="circular"),
    "pad by less": lambda x: F.pad(x, (0, 0, -2, -1)),
    "unfold": lambda x: x.unfold(0, 3, 2),
    "unfold pairs": lambda x: x.unfold(0, 2, 1),
    "narrow": lambda x: x.narrow(0, 1, 3),
    "select": lambda x: x[2] + x[-3],
    "write a row": written,
    "select_scatter": lambda x: x.select_scatter(torch.ones(4), 0, 2),
    "slice_scatter": lambda x: x.slice_scatter(PART, 0, 1, 3),
    "slice_scatter, from the end": lambda x: x.slice_scatter(PART, 0, -3, -1),
    "slice_scatter, with steps": lambda x: x.slice_scatter(PART, 0, 0, 4, 2),
    "index": lambda x: x[torch.tensor([2, -3])],
    "index_select": lambda x: x.index_select(0, torch.tensor([2])),
    "gather": lambda x: x.gather(0, torch.full((1, 4), 2)),
    "scatter": lambda x: x.scatter(0, torch.full((1, 4), 2), 1.0),
    "index_put": lambda x: x.index_put((torch.tensor([2]),), torch.ones(4)),
    "topk": lambda x: x.topk(3, 0),
    "kthvalue": lambda x: x.kthvalue(3, 0),
    "glu": lambda x: F.glu(x, 0),
    "roll": lambda x: x.roll(3, 0) + x.roll((-4, 1), (0, 1)) + x.roll(6, 0),
    "zeros of fewer": lambda x: torch.zeros(len(x) - 3, 4) + 1,
    "new of half": lambda x: x.new_empty((len(x) // 2 - 1, 4)).fill_(1),
    "arange by a size": lambda x: torch.arange(0, 10, len(x) - 3),
    "quotient of sizes": lambda x: torch.zeros((2 * len(x) - 1) // len(x)) + 1,
    "remainder by a size": lambda x: torch.arange(6) % len(x),
    "floor division by a size": lambda x: torch.arange(6) // (len(x) - 3),
    "rows of a remainder": lambda x: x[torch.arange(6) % len(x)],
    "bag of all rows": lambda x: F.embedding_bag(torch.arange(len(x))[None], x),
    "expand to fewer": lambda x: torch.ones(4).expand(len(x) - 2, 4) + 1,
    "eye of fewer": lambda x: torch.eye(len(x) - 2),
    "cat with fewer": lambda x: torch.cat([x, torch.zeros(len(x) - 3, 4)]),
    "narrow to fewer": lambda x: x.narrow(0, 0, len(x) - 3) * 2,
    "narrow from fewer": lambda x: x.narrow(0, len(x) - 3, 2) * 2,
    "split with a rest": lambda x: [part * 2 for part in torch.split(x, [2, len(x) - 2])],
    "split behind the rest": lambda x: [part * 2 for part in torch.split(x, [len(x) - 3, 3])],
    "view of fewer": lambda x: torch.ones(12).view(len(x) - 3, -1) * 2,
    "strided of fewer": lambda x: x.as_strided((len(x) - 3, 4), (4, 1)) * 2,
    "strided from fewer": lambda x: x.as_strided((2, 2), (4, 1), len(x) - 3) * 2,
    "slice_scatter from fewer": lambda x: x.slice_scatter(PART, 0, len(x) - 3, len(x) - 1),
    "pad to five": lambda x: F.pad(x, (0, 0, 0, 5 - len(x))) * 2,
    "pad behind by fewer": lambda x: F.pad(x, (0, 0, 0, len(x) - 3)) * 2,
    "pad before by fewer": lambda x: F.pad(x, (0, 0, len(x) - 3, 0)) * 2,
    "pad and take away": lambda x: F.pad(x, (0, 0, len(x) - 4, 1 - len(x)), value=3.0) * 2,
    "resize to less than half": lambda x: F.interpolate(planes(x), scale_factor=0.4),
    "resize to half, linear": lambda x: F.interpolate(planes(x), scale_factor=0.5, mode="linear"),
    "resize to a size": lambda x: F.interpolate(planes(x), size=3),
    "resize, bilinear": lambda x: F.interpolate(planes(x)[None], scale_factor=(1, 0.4), mode="bilinear"),
    "resize, bicubic": lambda x: F.interpolate(planes(x)[None], scale_factor=2, mode="bicubic"),
    "transposed convolution": lambda x: F.conv_transpose1d(planes(x), PART.reshape(4, 1, 2), padding=2, stride=2),
    "fft": lambda x: torch.view_as_real(torch.fft.fft(x, dim=0)),
    "rfft": lambda x: torch.fft.rfft(x, dim=0).abs(),
    "irfft": lambda x: torch.fft.irfft(x, dim=0),
    "fft2": lambda x: torch.fft.fft2(x).abs(),
}
