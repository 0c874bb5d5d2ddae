"""Convolutions of all kinds, transposed ones and pools."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from shapes.case import MOST_ELEMENTS, MOST_FLOPS, Case, Made, distinct, drawn, sizes, spread

_CONVS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_AFTER: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "hardswish": nn.Hardswish,
    "leaky": lambda: nn.LeakyReLU(0.1),
}


def cases() -> Iterator[Case]:
    yield from distinct(_of("conv1x1", _NETWORKS_1X1, _random_1x1))
    yield from distinct(_of("conv3x3", _NETWORKS_3X3, _random_square(3)))
    yield from distinct(_of("conv5x5_7x7", _NETWORKS_LARGE, _random_large))
    yield from distinct(_of("conv_strided", _NETWORKS_STRIDED, _random_strided))
    yield from distinct(_of("conv_dilated", _NETWORKS_DILATED, _random_dilated), 20)
    yield from distinct(_of("conv_grouped", _NETWORKS_GROUPED, _random_grouped))
    yield from distinct(_of("conv1d", _NETWORKS_1D, _random_1d))
    yield from distinct(_of("conv3d", _NETWORKS_3D, _random_3d), 24)
    yield from distinct(_of("depthwise", _NETWORKS_DEPTHWISE, _random_depthwise), 48)
    yield from distinct(_transposed())
    yield from distinct(_pools())


def _conv(n: int, c: int, size: int | tuple[int, ...], out: int, k: int, stride: int = 1, **options: Any) -> Any:
    """Batch, channels, size, channels of the result, kernel, stride; square images unless sizes are given."""
    spatial = (size, size) if isinstance(size, int) else size
    kernel = options.pop("kernel", (k,) * len(spatial))
    return n, c, tuple(spatial), out, tuple(kernel), stride, options


_NETWORKS_1X1 = (
    _conv(1, 64, 56, 64, 1),  # ResNet-50
    _conv(1, 64, 56, 256, 1),
    _conv(1, 256, 56, 64, 1),
    _conv(1, 512, 28, 128, 1),
    _conv(1, 1024, 14, 256, 1),
    _conv(1, 2048, 7, 512, 1),
    _conv(1, 16, 112, 96, 1),  # MobileNetV2
    _conv(1, 96, 56, 24, 1),
    _conv(1, 960, 7, 320, 1),
    _conv(1, 320, 7, 1280, 1),
    _conv(1, 24, 56, 144, 1),
    _conv(8, 128, 28, 128, 1),
    _conv(1, 16, 1, 8, 1),  # squeeze-and-excite
    _conv(1, 672, 1, 28, 1),
    _conv(1, 64, 512, 1, 1),  # a mask's last layer
    _conv(16, 40, 56, 240, 1),
)
_NETWORKS_3X3 = (
    _conv(1, 64, 56, 64, 3),
    _conv(1, 128, 28, 128, 3),
    _conv(1, 256, 14, 256, 3),
    _conv(1, 512, 7, 512, 3),
    _conv(1, 3, 224, 64, 3),  # VGG
    _conv(1, 64, 224, 64, 3),
    _conv(1, 512, 14, 512, 3),
    _conv(1, 128, 32, 32, 3),  # DenseNet-121
    _conv(1, 64, 256, 3, 3),  # a decoder's last layer
    _conv(1, 1, 28, 32, 3),  # MNIST
    _conv(16, 32, 32, 32, 3),
    _conv(1, 16, 128, 16, 3),  # U-Net
    _conv(4, 320, 64, 320, 3),  # Stable Diffusion's U-Net, half its images
    _conv(1, 1024, 14, 512, 3),
)
_NETWORKS_LARGE = (
    _conv(1, 3, 224, 64, 7, 2),
    _conv(1, 48, 28, 64, 5),
    _conv(1, 96, 27, 256, 5),  # AlexNet
    _conv(1, 3, 224, 64, 11, 4),
    _conv(1, 1, 28, 6, 5),  # LeNet
    _conv(1, 6, 14, 16, 5),
    _conv(1, 192, 17, 192, 7, kernel=(1, 7)),  # Inception
    _conv(1, 192, 17, 192, 7, kernel=(7, 1)),
    _conv(1, 64, 256, 3, 7),  # CycleGAN
    _conv(1, 1, 256, 64, 9),  # SRCNN
    _conv(1, 3, 224, 768, 16, 16),  # ViT's patches
    _conv(1, 3, 224, 96, 4, 4),
)
_NETWORKS_STRIDED = (
    _conv(1, 64, 56, 128, 3, 2),
    _conv(1, 256, 14, 512, 3, 2),
    _conv(1, 64, 56, 128, 1, 2),
    _conv(1, 1024, 14, 2048, 1, 2),
    _conv(1, 3, 224, 32, 3, 2),
    _conv(1, 3, 640, 32, 6, 2),  # YOLOv5
    _conv(1, 96, 56, 192, 2, 2),  # ConvNeXt
    _conv(16, 64, 32, 128, 3, 2),
    _conv(1, 128, 64, 256, 4, 2),  # pix2pix
)
_NETWORKS_DILATED = (
    _conv(1, 256, 28, 256, 3, dilation=2),
    _conv(1, 512, 28, 512, 3, dilation=4),
    _conv(1, 320, 33, 256, 3, dilation=12),  # DeepLab
    _conv(1, 32, 64, 32, 3, dilation=8),
)
_NETWORKS_GROUPED = (
    _conv(1, 128, 56, 128, 3, groups=32),  # ResNeXt-50
    _conv(1, 512, 14, 512, 3, groups=32),
    _conv(1, 1024, 7, 1024, 3, groups=32),
    _conv(1, 48, 56, 48, 3, groups=2),  # RegNet
    _conv(1, 104, 28, 104, 3, groups=13),
    _conv(1, 240, 28, 240, 1, groups=3),  # ShuffleNet
    _conv(1, 96, 27, 256, 5, groups=2),  # AlexNet as published
)
_NETWORKS_1D = (
    _conv(1, 80, (3000,), 384, 3),  # Whisper
    _conv(1, 384, (3000,), 384, 3, 2),
    _conv(1, 1, (16000,), 512, 10, 5),  # wav2vec 2.0
    _conv(1, 512, (3199,), 512, 3, 2),
    _conv(1, 64, (1024,), 64, 3, dilation=64),  # WaveNet
    _conv(1, 512, (200,), 512, 5),
    _conv(8, 256, (400,), 256, 1),
    _conv(1, 512, (800,), 512, 3, groups=512),  # Conv-TasNet
    _conv(1, 256, (500,), 256, 31, groups=256),  # Conformer
    _conv(1, 768, (49,), 768, 128, groups=16),  # wav2vec's positions
    _conv(1, 4096, (32,), 4096, 4, groups=4096),  # Mamba
)
_NETWORKS_3D = (
    _conv(1, 3, (8, 56, 56), 64, 3),
    _conv(1, 64, (8, 28, 28), 64, 3),  # R3D-18
    _conv(1, 64, (4, 28, 28), 144, 3, kernel=(1, 3, 3)),
    _conv(1, 144, (4, 28, 28), 64, 3, kernel=(3, 1, 1)),
    _conv(1, 1, (32, 32, 32), 16, 3),
    _conv(1, 32, (16, 16, 16), 64, 3, 2),
    _conv(1, 54, (8, 28, 28), 54, 3, groups=54),  # X3D
    _conv(1, 3, (4, 112, 112), 192, 8, 8),
)
_NETWORKS_DEPTHWISE = tuple(
    _conv(n, c, size, c, k, stride, groups=c)
    for n, c, size, k, stride in (
        (1, 32, 112, 3, 1),  # MobileNet
        (1, 64, 112, 3, 2),
        (1, 128, 56, 3, 1),
        (1, 256, 28, 3, 2),
        (1, 512, 14, 3, 1),
        (1, 960, 7, 3, 1),
        (1, 144, 56, 5, 2),  # EfficientNet
        (1, 480, 14, 5, 1),
        (1, 672, 14, 5, 2),
        (1, 1152, 7, 5, 1),
        (1, 96, 56, 7, 1),  # ConvNeXt
        (1, 384, 14, 7, 1),
        (1, 768, 7, 7, 1),
        (1, 96, 56, 7, 2),
        (16, 96, 56, 3, 1),
        (1, 64, 224, 3, 1),
        (1, 64, 224, 5, 1),
    )
)

_Drawn = Callable[[random.Random], Any]


def _random_1x1(draw: random.Random) -> Any:
    return _conv(draw.choice((1, 1, 4)), spread(draw, 3, 1024), spread(draw, 1, 112), spread(draw, 3, 1024), 1)


def _random_square(k: int) -> _Drawn:
    def draw_one(draw: random.Random) -> Any:
        return _conv(draw.choice((1, 1, 4)), spread(draw, 1, 512), spread(draw, 4, 256), spread(draw, 1, 512), k)

    return draw_one


def _random_large(draw: random.Random) -> Any:
    return _conv(1, spread(draw, 1, 256), spread(draw, 7, 256), spread(draw, 1, 256), draw.choice((5, 7)))


def _random_strided(draw: random.Random) -> Any:
    k, stride = draw.choice(((1, 2), (2, 2), (3, 2), (3, 3), (4, 2), (5, 2), (7, 2), (5, 3)))
    return _conv(draw.choice((1, 1, 4)), spread(draw, 1, 256), spread(draw, 8, 256), spread(draw, 1, 256), k, stride)


def _random_dilated(draw: random.Random) -> Any:
    dilation = draw.choice((2, 3, 4, 6))
    return _conv(1, spread(draw, 3, 256), spread(draw, 16, 128), spread(draw, 3, 256), 3, dilation=dilation)


def _random_grouped(draw: random.Random) -> Any:
    groups, each, out = draw.choice((2, 3, 4, 8, 16, 32)), draw.choice((1, 2, 3, 4, 8, 16, 24)), draw.choice((1, 2, 4))
    k, stride = draw.choice((1, 3, 3, 5)), draw.choice((1, 1, 2))
    return _conv(1, groups * each, spread(draw, 4, 128), groups * each * out, k, stride, groups=groups)


def _random_1d(draw: random.Random) -> Any:
    k, stride, dilation = (
        draw.choice((1, 2, 3, 5, 7, 9, 16)),
        draw.choice((1, 1, 1, 2, 4)),
        draw.choice((1, 1, 1, 2, 8)),
    )
    depthwise, channels = draw.random() < 0.25, spread(draw, 1, 512)
    options = {"groups": channels} if depthwise else {}
    out = channels if depthwise else spread(draw, 1, 512)
    return _conv(
        draw.choice((1, 4)), channels, (spread(draw, 64, 16000),), out, k, stride, dilation=dilation, **options
    )


def _random_3d(draw: random.Random) -> Any:
    size = (spread(draw, 4, 16), side := spread(draw, 7, 64), side)
    return _conv(1, spread(draw, 1, 64), size, spread(draw, 1, 64), draw.choice((1, 3, 3, 5)), draw.choice((1, 1, 2)))


def _random_depthwise(draw: random.Random) -> Any:
    channels = spread(draw, 8, 1024)
    size, k, stride = spread(draw, 4, 160), draw.choice((3, 5, 7)), draw.choice((1, 2))
    return _conv(draw.choice((1, 1, 8)), channels, size, channels, k, stride, groups=channels)


class _Block(nn.Module):
    """A convolution, a norm or not, a function or not, what was before added or not."""

    def __init__(self, conv: nn.Module, after: str, residual: bool):
        super().__init__()
        kind = next(number for number, one in enumerate((*_CONVS, *_TRANSPOSED)) if isinstance(conv, one)) % 3
        self.conv = conv
        self.norm = _NORMS[kind](conv.out_channels) if after else nn.Identity()
        self.after = _AFTER[after]() if after else nn.Identity()
        self.residual = residual
        if after:
            for tensor in (self.norm.running_var, self.norm.weight):
                nn.init.uniform_(tensor, 0.5, 1.5)
            for tensor in (self.norm.running_mean, self.norm.bias):
                nn.init.normal_(tensor, 0, 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.after(self.norm(self.conv(x)))
        return x + y if self.residual else y


def _of(kind: str, published: tuple[Any, ...], random_one: _Drawn) -> Iterator[Case]:
    draw = drawn(kind)
    shapes = iter(published)
    while True:
        shape = next(shapes, None) or random_one(draw)
        if _fits(shape):
            yield _conv_case(kind, shape, draw)


def _fits(shape: Any) -> bool:
    n, c, spatial, out, kernel, stride, options = shape
    dilation = options.get("dilation", 1)
    if any(size < (k - 1) * dilation + 1 for size, k in zip(spatial, kernel, strict=True)):
        return False
    pixels = n
    for size in spatial:
        pixels *= -(-size // stride)
    taps = 1
    for k in kernel:
        taps *= k
    flops = 2 * pixels * out * taps * c // options.get("groups", 1)
    before = n * c
    for size in spatial:
        before *= size
    return flops <= 3 * MOST_FLOPS and max(before, pixels * out) <= MOST_ELEMENTS // 2


def _conv_case(kind: str, shape: Any, draw: random.Random) -> Case:
    n, c, spatial, out, kernel, stride, options = shape
    dilation = options.get("dilation", 1)
    after = draw.choice(("", *_AFTER))
    pad = 0 if stride >= kernel[0] > 1 else tuple((k - 1) * dilation // 2 for k in kernel)
    same = stride == 1 and c == out and all((k - 1) * dilation % 2 == 0 for k in kernel)
    residual = same and draw.random() < 0.25

    def create() -> Made:
        convolution = _CONVS[len(spatial) - 1](
            c, out, kernel, stride, pad, dilation, options.get("groups", 1), bias=not after
        )
        return _Block(convolution, after, residual), (torch.randn(n, c, *spatial),)

    words = [f"k{sizes(*kernel)}", f"s{stride}" * (stride > 1), f"d{dilation}" * (dilation > 1)]
    words += [f"g{options['groups']}"] if "groups" in options else []
    words += [after, "residual" * residual]
    return Case(kind, f"{sizes(n, c, *spatial)}_{out}_{'_'.join(filter(None, words))}", create, inductor=bool(after))


_PUBLISHED_TRANSPOSED = (
    (1, 512, (4, 4), 256, 4, 2, 1),  # DCGAN
    (1, 128, (16, 16), 64, 4, 2, 1),
    (1, 64, (32, 32), 3, 4, 2, 1),
    (1, 128, (32, 32), 64, 2, 2, 0),  # U-Net
    (1, 256, (28, 28), 256, 2, 2, 0),  # Mask R-CNN
    (1, 128, (64, 64), 64, 3, 2, 1),
    (1, 21, (28, 28), 21, 16, 8, 4),  # FCN
    (1, 512, (32,), 256, 16, 8, 4),  # HiFi-GAN
    (1, 64, (4096,), 32, 4, 2, 1),
    (1, 32, (8, 8, 8), 16, 4, 2, 1),
)


def _transposed() -> Iterator[Case]:
    draw = drawn("transposed")
    shapes = iter(_PUBLISHED_TRANSPOSED)
    while True:
        n, c, spatial, out, k, stride, pad = next(shapes, None) or _random_transposed(draw)
        pixels = n * c
        for size in spatial:
            pixels *= size * stride
        if pixels * out // c > MOST_ELEMENTS // 4 or 2 * pixels // stride ** len(spatial) * out * k ** len(spatial) > (
            MOST_FLOPS
        ):
            continue
        after, groups = draw.choice(("", *_AFTER)), draw.choice((1, 1, 1, 2, 4))
        groups = groups if c % groups == 0 and out % groups == 0 else 1

        def create(shape: Any = (n, c, spatial, out, k, stride, pad), after: str = after, groups: int = groups) -> Made:
            n, c, spatial, out, k, stride, pad = shape
            kind = _TRANSPOSED[len(spatial) - 1]
            convolution = kind(c, out, k, stride, pad, groups=groups, bias=not after)
            return _Block(convolution, after, False), (torch.randn(n, c, *spatial),)

        words = [f"k{k}", f"s{stride}", f"p{pad}", f"g{groups}" * (groups > 1), after]
        yield Case("conv_transposed", f"{sizes(n, c, *spatial)}_{out}_{'_'.join(filter(None, words))}", create)


def _random_transposed(draw: random.Random) -> Any:
    dims = draw.choice((1, 2, 2, 2, 3))
    spatial = (spread(draw, 3, 2000 if dims == 1 else 64 if dims == 2 else 12),) * dims
    k, stride = draw.choice(((2, 2), (3, 1), (3, 2), (4, 2), (5, 1), (5, 2), (5, 3), (6, 2), (8, 4), (3, 3), (4, 4)))
    return 1, spread(draw, 1, 256), spatial, spread(draw, 1, 256), k, stride, draw.choice((0, (k - stride + 1) // 2))


def _pools() -> Iterator[Case]:
    draw = drawn("pools")
    published = [
        ("max", (1, 64, 112, 112), 3, 2, 1),
        ("max", (1, 64, 224, 224), 2, 2, 0),
        ("max", (1, 480, 28, 28), 3, 1, 1),
        ("avg", (1, 128, 56, 56), 2, 2, 0),
        ("avg", (1, 192, 35, 35), 3, 1, 1),
        ("max", (1, 256, 20, 20), 5, 1, 2),  # YOLO's
        ("max", (1, 512, 13, 13), 13, 1, 6),
        ("adaptive_avg", (1, 2048, 7, 7), 1, 0, 0),
        ("adaptive_avg", (16, 512, 7, 7), 1, 0, 0),
        ("adaptive_avg", (1, 512, 14, 14), 7, 0, 0),
        ("adaptive_avg", (1, 256, 13, 13), 6, 0, 0),
        ("adaptive_max", (1, 256, 32, 32), 1, 0, 0),
        ("avg", (1, 64, 4000), 4, 4, 0),
        ("max", (1, 32, 16, 32, 32), 2, 2, 0),
    ]
    kinds = ("max", "max", "avg", "adaptive_avg", "adaptive_max")
    shapes = iter(published)
    while True:
        kind, shape, k, stride, pad = next(shapes, None) or (
            draw.choice(kinds),
            (draw.choice((1, 1, 8)), spread(draw, 1, 512), side := spread(draw, 7, 256), side),
            draw.choice((2, 3, 3, 5, 7)),
            draw.choice((1, 2, 2, 3)),
            draw.choice((0, 1)),
        )
        elements = 1
        for size in shape:
            elements *= size
        if elements > MOST_ELEMENTS // 2:
            continue

        def create(rest: Any = (kind, shape, k, stride, pad)) -> Made:
            kind, shape, k, stride, pad = rest
            dims = len(shape) - 2
            if kind.startswith("adaptive"):
                found = getattr(nn, f"Adaptive{kind[9:].capitalize()}Pool{dims}d")(k)
            else:
                found = getattr(nn, f"{kind.capitalize()}Pool{dims}d")(k, stride, pad)
            return found, (torch.randn(shape),)

        yield Case("pool", f"{kind}_{sizes(*shape)}_k{k}_s{stride}_p{pad}", create)
