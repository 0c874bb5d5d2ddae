"""Every kind of convolution and linear layer × bias × affine × dtype × layout, against eager."""

import itertools

import pytest
import torch
from support import assert_close, main_text, randomize, remarks
from torch import nn

import pipeline

KINDS = {
    "conv1d": (lambda bias: nn.Conv1d(4, 6, 3, stride=2, padding=1, bias=bias), nn.BatchNorm1d, (2, 4, 9)),
    "conv2d": (lambda bias: nn.Conv2d(4, 6, 3, padding=1, bias=bias), nn.BatchNorm2d, (2, 4, 7, 6)),
    "conv2d_dilated": (lambda bias: nn.Conv2d(4, 6, (3, 1), dilation=2, bias=bias), nn.BatchNorm2d, (1, 4, 7, 6)),
    "conv3d": (lambda bias: nn.Conv3d(2, 3, 3, padding=1, bias=bias), nn.BatchNorm3d, (2, 2, 4, 4, 3)),
    "grouped1d": (lambda bias: nn.Conv1d(4, 6, 3, groups=2, bias=bias), nn.BatchNorm1d, (2, 4, 9)),
    "grouped2d": (lambda bias: nn.Conv2d(4, 6, 3, groups=2, bias=bias), nn.BatchNorm2d, (2, 4, 7, 6)),
    "grouped3d": (lambda bias: nn.Conv3d(4, 6, 2, groups=2, bias=bias), nn.BatchNorm3d, (1, 4, 4, 4, 3)),
    "depthwise1d": (lambda bias: nn.Conv1d(4, 4, 3, groups=4, bias=bias), nn.BatchNorm1d, (2, 4, 9)),
    "depthwise2d": (lambda bias: nn.Conv2d(4, 4, 3, groups=4, padding=1, bias=bias), nn.BatchNorm2d, (2, 4, 7, 6)),
    "depthwise2d_x2": (lambda bias: nn.Conv2d(4, 8, 3, groups=4, bias=bias), nn.BatchNorm2d, (2, 4, 7, 6)),
    "depthwise3d": (
        lambda bias: nn.Conv3d(4, 4, (3, 2, 3), (2, 1, 2), (2, 0, 1), (1, 2, 1), groups=4, bias=bias),
        nn.BatchNorm3d,
        (2, 4, 5, 6, 7),
    ),
    "depthwise3d_x2": (lambda bias: nn.Conv3d(3, 6, 2, groups=3, bias=bias), nn.BatchNorm3d, (1, 3, 4, 4, 3)),
    "transposed1d": (lambda bias: nn.ConvTranspose1d(4, 6, 3, stride=2, bias=bias), nn.BatchNorm1d, (2, 4, 9)),
    "transposed2d": (
        lambda bias: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, bias=bias),
        nn.BatchNorm2d,
        (2, 4, 5, 4),
    ),
    "transposed2d_grouped": (
        lambda bias: nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2, bias=bias),
        nn.BatchNorm2d,
        (2, 4, 5, 4),
    ),
    "transposed3d": (lambda bias: nn.ConvTranspose3d(2, 3, 2, stride=2, bias=bias), nn.BatchNorm3d, (1, 2, 3, 3, 3)),
    "transposed3d_grouped": (
        lambda bias: nn.ConvTranspose3d(4, 6, 2, stride=(2, 1, 2), groups=2, bias=bias),
        nn.BatchNorm3d,
        (1, 4, 3, 3, 3),
    ),
    "transposed1d_depthwise": (
        lambda bias: nn.ConvTranspose1d(4, 4, 3, stride=3, padding=1, output_padding=2, groups=4, bias=bias),
        nn.BatchNorm1d,
        (2, 4, 9),
    ),
    "transposed2d_depthwise": (
        lambda bias: nn.ConvTranspose2d(4, 4, (3, 1), stride=2, padding=1, dilation=2, groups=4, bias=bias),
        nn.BatchNorm2d,
        (2, 4, 5, 4),
    ),
    "transposed3d_depthwise": (
        lambda bias: nn.ConvTranspose3d(3, 3, 3, stride=(1, 2, 2), padding=1, groups=3, bias=bias),
        nn.BatchNorm3d,
        (2, 3, 4, 3, 3),
    ),
    "linear": (lambda bias: nn.Linear(5, 6, bias=bias), nn.BatchNorm1d, (7, 5)),
}

#: Half precision rounds the folded weight once, to 11 or 8 bits.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}


class Variants(nn.Module):
    """Layer and norm with each choice of bias and affine, on one input."""

    def __init__(self, layer, norm):
        super().__init__()
        self.branches = nn.ModuleList()
        for bias, affine in itertools.product((False, True), repeat=2):
            one = layer(bias)
            channels = one.out_features if isinstance(one, nn.Linear) else one.out_channels
            self.branches.append(nn.Sequential(one, norm(channels, affine=affine, eps=1e-3)))

    def forward(self, x):
        return [branch(x) for branch in self.branches]


def check(kind: str, dtype: torch.dtype, layout: torch.memory_format = torch.contiguous_format) -> None:
    torch.manual_seed(0)
    layer, norm, shape = KINDS[kind]
    model = randomize(Variants(layer, norm)).to(dtype)
    x = torch.randn(shape).to(dtype).to(memory_format=layout)
    model = model.to(memory_format=layout)
    executable = pipeline.compile(model, (x,))
    for result, expected in zip(executable(x), model.double()(x.double()), strict=True):
        assert_close(result, expected.to(dtype), TOLERANCE[dtype])
    assert len(remarks(executable, "fold-batch-norm", "passed")) == 4
    assert remarks(executable, "fold-batch-norm", "missed") == []
    for word in ("sqrt", "arith.subf", "arith.divf"):
        assert word not in main_text(executable)


@pytest.mark.parametrize("kind", KINDS)
def test_f32(kind):
    check(kind, torch.float32)


@pytest.mark.parametrize("kind", ["conv2d", "grouped2d", "depthwise3d", "transposed1d", "linear"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_dtypes(kind, dtype):
    check(kind, dtype)


@pytest.mark.parametrize("kind", ["conv2d", "depthwise2d", "transposed2d"])
def test_channels_last(kind):
    check(kind, torch.float32, torch.channels_last)


@pytest.mark.parametrize("kind", ["depthwise3d", "transposed2d_depthwise"])
def test_unknown_batch_size(kind):
    torch.manual_seed(0)
    layer, norm, shape = KINDS[kind]
    model = randomize(Variants(layer, norm))
    batch = torch.export.Dim("batch", min=1, max=64)
    executable = pipeline.compile(model, (torch.randn(shape),), dynamic_shapes=({0: batch},))
    assert len(remarks(executable, "fold-batch-norm", "passed")) == 4
    for size in (1, 5):
        x = torch.randn(size, *shape[1:])
        for result, expected in zip(executable(x), model(x), strict=True):
            assert_close(result, expected, 1e-5)


def test_depthwise3d_of_integers():
    model = nn.Conv3d(4, 4, (3, 2, 3), stride=2, padding=1, groups=4, dtype=torch.float64).requires_grad_(False)
    model.weight.copy_(torch.randint(-5, 5, model.weight.shape))
    model.bias.copy_(torch.randint(-5, 5, (4,)))
    x = torch.randint(-9, 9, (2, 4, 5, 6, 7))
    expected = model(x.double()).long()
    weight, bias = model.weight.long(), model.bias.long()

    class Integers(nn.Module):
        def forward(self, x, weight, bias):
            return torch.conv3d(x, weight, bias, 2, 1, groups=4)

    executable = pipeline.compile(Integers(), (x, weight, bias))
    assert torch.equal(executable(x, weight, bias), expected)
