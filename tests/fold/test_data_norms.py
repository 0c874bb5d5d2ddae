"""Group and instance norm, whose statistics are those of the data: their affine is one of channels."""

import copy

import pytest
import torch
from support import assert_close, main_text, randomize, remarks
from torch import nn

import pipeline

NORMS = {
    "group": lambda channels: nn.GroupNorm(2, channels),
    "group of all": lambda channels: nn.GroupNorm(1, channels),
    "instance": lambda channels: nn.InstanceNorm2d(channels, affine=True, eps=1e-3),
}

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}


class Scaled(nn.Module):
    """A norm and a scale of channels written by hand."""

    def __init__(self, norm):
        super().__init__()
        self.norm, self.scale = norm, nn.Parameter(torch.rand(4, 1, 1) + 0.5)

    def forward(self, x):
        return self.norm(x) * self.scale


def image():
    return torch.randn(2, 4, 6, 5) * 2 + 1


def compiled(model, x):
    """The executable, after its results are found to be those of the model in float64."""
    executable = pipeline.compile(model, (x,))
    expected = copy.deepcopy(model).double()(x.double())
    assert_close(executable(x), expected.to(x.dtype), TOLERANCE[x.dtype])
    return executable


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_folds_into_a_pointwise_convolution_after(norm, dtype):
    torch.manual_seed(0)
    model = randomize(nn.Sequential(NORMS[norm](4), nn.Conv2d(4, 5, 1))).to(dtype)
    executable = compiled(model, image().to(dtype))
    assert remarks(executable, "fold-scale-shift-forward", "passed") == [
        "folded 2 operations per element into the weights of conv2d after"
    ]


@pytest.mark.parametrize("norm", NORMS)
def test_stops_at_padding(norm):
    torch.manual_seed(0)
    model = randomize(nn.Sequential(NORMS[norm](4), nn.Conv2d(4, 5, 3, padding=1)))
    executable = compiled(model, image())
    assert remarks(executable, "fold-scale-shift-forward", "missed") == [
        "not folded into what reads it: its shift would not reach the padding"
    ]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_merges_with_a_scale_after(norm, dtype):
    torch.manual_seed(0)
    model = randomize(Scaled(NORMS[norm](4))).to(dtype)
    executable = compiled(model, image().to(dtype))
    assert remarks(executable, "merge-scale-shifts", "passed") == ["merged 3 operations per element into 2"]
    assert "@prepare computes 2 tensors" in remarks(executable, "hoist-to-prepare", "passed")[0]


@pytest.mark.parametrize("norm", NORMS)
def test_the_statistics_do_not_fold(norm):
    torch.manual_seed(0)
    model = randomize(nn.Sequential(nn.Conv2d(4, 4, 1), NORMS[norm](4)))
    executable = compiled(model, image())
    assert remarks(executable, "fold-batch-norm", "passed") == []
    assert "math.rsqrt" in main_text(executable)


def test_without_affine_nothing_is_left_for_prepare():
    norms = nn.Sequential(nn.GroupNorm(2, 4, affine=False), nn.InstanceNorm2d(4))
    assert "pipeline.prepared" not in main_text(compiled(norms, image()))


def test_given_statistics_are_a_batch_norm():
    torch.manual_seed(0)
    norm = nn.InstanceNorm2d(5, affine=True, track_running_stats=True)
    executable = compiled(randomize(nn.Sequential(nn.Conv2d(4, 5, 3), norm)), image())
    assert len(remarks(executable, "fold-batch-norm", "passed")) == 1
    assert "sqrt" not in main_text(executable)


def test_updated_statistics_are_those_of_the_data():
    torch.manual_seed(0)
    norm = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
    model, x = randomize(nn.Sequential(norm, nn.Conv2d(4, 5, 1))).train(), image()
    eager = copy.deepcopy(model)
    executable = pipeline.compile(model, (x,))
    for _ in range(2):
        assert_close(executable(x), eager(x), 1e-5)
        assert_close(model[0].running_mean, eager[0].running_mean, 1e-5)
        assert_close(model[0].running_var, eager[0].running_var, 1e-5)
    assert remarks(executable, "fold-batch-norm", "passed") == []


def test_a_far_mean_costs_no_accuracy():
    torch.manual_seed(0)
    model, x = randomize(nn.GroupNorm(2, 4)), image() + 300
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model.double()(x.double()).float(), 1e-4)


def test_unknown_sizes():
    torch.manual_seed(0)
    model, x = randomize(nn.Sequential(nn.GroupNorm(2, 4), nn.Conv2d(4, 5, 1), nn.InstanceNorm2d(5))), image()
    sizes = {0: torch.export.Dim("batch", min=1, max=64), 3: torch.export.Dim("width", min=2, max=64)}
    executable = pipeline.compile(model, (x,), dynamic_shapes=(sizes,))
    assert len(remarks(executable, "fold-scale-shift-forward", "passed")) == 1
    for shape in ((1, 4, 6, 9), (5, 4, 6, 3)):
        x = torch.randn(shape)
        assert_close(executable(x), model(x), 1e-5)
