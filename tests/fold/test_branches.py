"""Branches that are added, as in RepVGG: one convolution where their windows agree, and the right numbers anyway."""

import copy
import random

import pytest
import torch
import torch.nn.functional as F
from support import assert_close, elementwise_ops, main_text, products, randomize, remarks
from torch import nn

import pipeline


class Sum(nn.Module):
    """The sum of what its branches make of one input, then an activation."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return F.relu(sum(branch(x) for branch in self.branches))


def normed(conv, norm=nn.BatchNorm2d):
    return nn.Sequential(conv, norm(conv.out_channels))


def conv(kernel, padding=0, channels=4, **options):
    return nn.Conv2d(4, channels, kernel, padding=padding, **{"bias": False, **options})


def image():
    return torch.randn(2, 4, 7, 6)


def compiled(model, x):
    """The executable, after its results are found to be those of the model in float64."""
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), copy.deepcopy(model).double()(x.double()).to(x.dtype), 1e-5)
    return executable


def convolutions(executable):
    """How many convolutions one call computes: named ops, or generic ones that sum over channels and windows."""
    text = main_text(executable)
    summed = text.count('"parallel", "reduction", "reduction", "reduction"]')
    return text.count("linalg.conv") + text.count("linalg.depthwise_conv") + summed


MERGED = {
    "RepVGG": (lambda: [normed(conv(3, 1)), normed(conv(1)), nn.BatchNorm2d(4)], image),
    "RepVGG with a stride": (lambda: [normed(conv(3, 1, 6, stride=2)), normed(conv(1, 0, 6, stride=2))], image),
    "RepVGG in groups": (lambda: [normed(conv(3, 1, groups=2)), normed(conv(1, groups=2)), nn.BatchNorm2d(4)], image),
    "MobileOne": (lambda: [normed(conv(3, 1, groups=4)), normed(conv(1, groups=4)), nn.BatchNorm2d(4)], image),
    "two of a size": (lambda: [normed(conv(3, 1)), normed(conv(3, 1))], image),
    "ACNet": (lambda: [conv(3, 1), conv((1, 3), (0, 1), bias=True), conv((3, 1), (1, 0))], image),
    "large kernels": (lambda: [normed(conv(5, 2)), normed(conv(3, 1)), conv(1, bias=True)], image),
    "dilated": (lambda: [conv(3, 2, dilation=2), conv(1)], image),
    "dilated alike": (lambda: [conv(5, 4, dilation=2), conv(3, 2, dilation=2)], image),
    "off the centre": (lambda: [nn.Sequential(nn.ZeroPad2d((2, 0, 1, 1)), conv(3)), conv(1)], image),
    "identity": (lambda: [conv(3, 1, bias=True), nn.Identity()], image),
    "identity of one tap": (lambda: [conv(1), nn.Identity()], image),
    "a norm beside one tap": (lambda: [conv(1, groups=2), nn.BatchNorm2d(4)], image),
    "one channel": (lambda: [nn.Conv2d(1, 1, 3, padding=1), nn.BatchNorm2d(1)], lambda: torch.randn(2, 1, 7, 6)),
    "conv1d": (
        lambda: [normed(nn.Conv1d(4, 4, 3, padding=1), nn.BatchNorm1d), nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)],
        lambda: torch.randn(2, 4, 9),
    ),
    "conv1d in groups": (
        lambda: [nn.Conv1d(4, 4, 3, padding=1, groups=2), nn.Conv1d(4, 4, 1, groups=2), nn.BatchNorm1d(4)],
        lambda: torch.randn(2, 4, 9),
    ),
    "conv3d": (
        lambda: [nn.Conv3d(2, 2, 3, padding=1), nn.Conv3d(2, 2, 1, bias=False), nn.BatchNorm3d(2)],
        lambda: torch.randn(2, 2, 4, 3, 3),
    ),
    "f64": (lambda: [normed(conv(3, 1)).double(), nn.BatchNorm2d(4).double()], lambda: image().double()),
    "channels last": (
        lambda: [normed(conv(3, 1)), normed(conv(1)), nn.BatchNorm2d(4)],
        lambda: image().to(memory_format=torch.channels_last),
    ),
}


@pytest.mark.parametrize("form", MERGED)
def test_one_convolution_is_left(form):
    torch.manual_seed(0)
    branches, data = MERGED[form]
    executable = compiled(randomize(Sum(*branches())), data())
    assert convolutions(executable) == 1
    assert len(remarks(executable, "merge-parallel-convs", "passed")) == 1
    assert "sqrt" not in main_text(executable)
    assert elementwise_ops(executable, "addf") <= 1  # that of the bias


def test_linear_layers():
    torch.manual_seed(0)
    executable = compiled(randomize(Sum(nn.Linear(4, 4), nn.Linear(4, 4), nn.Identity())), torch.randn(3, 4))
    assert products(executable) == 1
    assert remarks(executable, "merge-parallel-convs", "passed") == ["merged 2 matmul and their data into one matmul"]


def test_linear_layers_on_rows():
    torch.manual_seed(0)
    executable = compiled(randomize(Sum(nn.Linear(4, 5), nn.Linear(4, 5))), torch.randn(2, 3, 4))
    assert products(executable) == 1


APART = {
    "strides": (lambda: [conv(3, 1, stride=2), conv(1, stride=2), nn.AvgPool2d(1, 2)], 1, []),
    "dilations": (
        lambda: [conv(3, 1), conv(3, 2, dilation=2)],
        2,
        ["conv2d and conv2d not merged: their dilations differ"],
    ),
    "windows": (
        lambda: [conv((1, 3), (0, 1)), conv((3, 1), (1, 0))],
        2,
        ["conv2d and conv2d not merged: the window of one does not lie in that of the other"],
    ),
    "groups": (
        lambda: [conv(3, 1, groups=2), conv(1)],
        2,
        ["conv2d and conv2d not merged: they are of different kinds"],
    ),
    "other padding": (
        lambda: [conv(3, 1), nn.Sequential(nn.ReflectionPad2d(1), conv(3))],
        2,
        [],
    ),
    "activation": (lambda: [conv(3, 1), nn.Sequential(conv(1), nn.ReLU())], 2, []),
    "other data": (lambda: [conv(3, 1), nn.Sequential(nn.ReLU(), conv(1))], 2, []),
    "shifted identity": (lambda: [nn.Sequential(nn.ZeroPad2d((2, -2, 0, 0)), conv(1)), nn.Identity()], 1, []),
    "instance norm": (lambda: [conv(3, 1), nn.InstanceNorm2d(4)], 1, []),
}


@pytest.mark.parametrize("form", APART)
def test_stays_apart(form):
    torch.manual_seed(0)
    branches, count, missed = APART[form]
    executable = compiled(randomize(Sum(*branches())), image())
    assert convolutions(executable) == count
    assert remarks(executable, "merge-parallel-convs", "missed") == missed
    if form != "strides":
        assert remarks(executable, "merge-parallel-convs", "passed") == []


def test_a_branch_with_another_user_stays():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.narrow = conv(3, 1), conv(1)

        def forward(self, x):
            y = self.narrow(x)
            return self.wide(x) + y, y * 2

    torch.manual_seed(0)
    model, x = randomize(Twice()), image()
    executable = pipeline.compile(model, (x,))
    for result, expected in zip(executable(x), model(x), strict=True):
        assert_close(result, expected, 1e-5)
    assert convolutions(executable) == 2


def test_a_shared_weight_stays_as_it_is():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.narrow = conv(3, 1), conv(1)

        def forward(self, x):
            return self.wide(x) + self.narrow(x), self.wide(x * 2), self.narrow(x + 1)

    torch.manual_seed(0)
    model, x = randomize(Shared()), image()
    executable = pipeline.compile(model, (x,))
    for result, expected in zip(executable(x), model(x), strict=True):
        assert_close(result, expected, 1e-5)
    assert convolutions(executable) == 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bits_stay_apart(dtype):
    torch.manual_seed(0)
    model, x = randomize(Sum(normed(conv(3, 1)), normed(conv(1)), nn.BatchNorm2d(4))).to(dtype), image().to(dtype)
    executable = pipeline.compile(model, (x,))
    expected = copy.deepcopy(model).double()(x.double()).to(dtype)
    assert_close(executable(x), expected, 3e-3 if dtype == torch.float16 else 2e-2)
    assert convolutions(executable) == 2
    assert remarks(executable, "merge-parallel-convs", "missed") == [
        "conv2d and conv2d not merged: in 16 bits the sum of their weights would be rounded once more"
    ]


def test_training_mode_stays_apart():
    torch.manual_seed(0)
    model, x = randomize(Sum(normed(conv(3, 1)), normed(conv(1)))).train(), image()
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), copy.deepcopy(model)(x), 1e-5)
    assert convolutions(executable) == 2


def test_other_terms_are_still_added():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.three = conv(3, 1), conv(1), conv(3, 1)

        def forward(self, x):
            y = x.sin()
            return self.one(x) + y + self.three(y) + self.two(x) + x.cos()

    torch.manual_seed(0)
    executable = compiled(randomize(Residual()), image())
    assert convolutions(executable) == 2
    assert remarks(executable, "merge-parallel-convs", "passed") == [
        "merged 2 conv2d into one conv2d",
        "merged 1 conv2d and their data into one conv2d",
    ]


def test_unknown_sizes():
    torch.manual_seed(0)
    model, x = randomize(Sum(normed(conv(3, 1)), normed(conv(1)), nn.BatchNorm2d(4))), image()
    sizes = {0: torch.export.Dim("batch", min=1, max=64), 2: torch.export.Dim("height", min=3, max=64)}
    executable = pipeline.compile(model, (x,), dynamic_shapes=(sizes,))
    assert convolutions(executable) == 1
    for shape in ((1, 4, 3, 6), (5, 4, 9, 6)):
        x = torch.randn(shape)
        assert_close(executable(x), model(x), 1e-5)


def test_refresh_takes_new_weights_and_statistics():
    torch.manual_seed(0)
    model, x = randomize(Sum(normed(conv(3, 1)), normed(conv(1)), nn.BatchNorm2d(4))), image()
    executable = pipeline.compile(model, (x,))
    randomize(model, seed=1)
    model.branches[1][0].weight.mul_(-2)
    executable.refresh()
    assert_close(executable(x), model(x), 1e-5)


def random_branch(choice, groups):
    """A convolution [n, 4, h, w] -> [n, 4, h, w], a norm or nothing, in one of many ways."""
    kind = choice.choice(["conv", "conv", "conv", "norm", "identity", "padded", "scaled"])
    if kind == "norm":
        return nn.BatchNorm2d(4)
    if kind == "identity":
        return nn.Identity()
    if kind == "scaled":
        return nn.Sequential(nn.BatchNorm2d(4), nn.BatchNorm2d(4))
    reach = choice.choice([(0, 0), (1, 1), (0, 1), (2, 1)])
    dilation = choice.choice([1, 1, 2])
    kernel, padding = [2 * one + 1 for one in reach], [dilation * one for one in reach]
    layer = conv(kernel, padding, groups=groups, dilation=dilation, bias=choice.random() < 0.5)
    if kind == "padded":  # as much on one side as on both
        layer.padding = (0, 0)
        layer = nn.Sequential(nn.ZeroPad2d((2 * padding[1], 0, 0, 2 * padding[0])), layer)
    return nn.Sequential(layer, nn.BatchNorm2d(4)) if choice.random() < 0.7 else layer


@pytest.mark.parametrize("seed", range(12))
def test_random_branches(seed):
    torch.manual_seed(seed)
    choice = random.Random(seed)
    groups = choice.choice([1, 1, 2, 4])
    branches = [random_branch(choice, groups) for _ in range(choice.randint(2, 6))]
    compiled(randomize(Sum(*branches), seed), torch.randn(choice.choice([1, 2]), 4, 7, 6))
