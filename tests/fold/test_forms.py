"""What users write besides convolution and norm: what folds, with the right results, and what must not."""

import pytest
import torch
import torch.nn.functional as F
from support import assert_close, main_text, products, randomize, remarks
from torch import nn

import pipeline


class FrozenNorm(nn.Module):
    """The norm of detection models, written by hand on buffers."""

    def __init__(self, channels):
        super().__init__()
        self.register_buffer("weight", torch.rand(channels) + 0.5)
        self.register_buffer("bias", torch.randn(channels))
        self.register_buffer("mean", torch.randn(channels))
        self.register_buffer("variance", torch.rand(channels) + 0.5)

    def forward(self, x):
        scale = self.weight * (self.variance + 1e-5).rsqrt()
        return x * scale.reshape(1, -1, 1, 1) + (self.bias - self.mean * scale).reshape(1, -1, 1, 1)


class FrozenNormOfTorchvision(FrozenNorm):
    """The same with everything computed behind the convolution, in the shape of the data."""

    def forward(self, x):
        weight, bias, mean, variance = (
            value.reshape(1, -1, 1, 1) for value in (self.weight, self.bias, self.mean, self.variance)
        )
        scale = weight * (variance + 1e-5).rsqrt()
        return x * scale + (bias - mean * scale)


class LayerScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.gamma = nn.Parameter(torch.rand(6))

    def forward(self, x):
        return x + self.linear(x) * self.gamma


class RepVgg(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4))
        self.narrow = nn.Sequential(nn.Conv2d(4, 4, 1, bias=False), nn.BatchNorm2d(4))

    def forward(self, x):
        return F.relu(self.wide(x) + self.narrow(x))


class Concatenated(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 3, 1)
        self.second = nn.Conv2d(4, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(5)

    def forward(self, x):
        return self.norm(torch.cat([self.first(x), self.second(x)], 1))


class Rows(nn.Module):
    """Linear on the last dim, norm on the channels of the transposed result."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.linear(x).transpose(1, 2))


class AddedConstant(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(4, 5, 1), nn.Identity(), nn.Dropout(0.5))
        self.norm = nn.BatchNorm2d(5)

    def forward(self, x):
        return self.norm(self.layers(x) + 3.0)


def weight_norm():
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 5, 3)), nn.BatchNorm2d(5))


def image():
    return torch.randn(2, 4, 6, 5)


FOLDED = {
    "frozen norm": (lambda: nn.Sequential(nn.Conv2d(4, 5, 3), FrozenNorm(5)), image, 1),
    "frozen norm of torchvision": (lambda: nn.Sequential(nn.Conv2d(4, 5, 3), FrozenNormOfTorchvision(5)), image, 1),
    "layer scale": (LayerScale, lambda: torch.randn(2, 3, 6), 1),
    "RepVGG": (RepVgg, image, 2),
    "concatenated": (Concatenated, image, 1),
    "rows": (Rows, lambda: torch.randn(2, 3, 6), 1),
    "added constant": (AddedConstant, image, 1),
    "weight norm": (weight_norm, image, 1),
    "two norms": (lambda: nn.Sequential(nn.Conv2d(4, 5, 1), nn.BatchNorm2d(5), nn.BatchNorm2d(5)), image, 1),
    "one channel": (lambda: nn.Sequential(nn.Conv2d(4, 1, 1), nn.BatchNorm2d(1)), image, 1),
}


@pytest.mark.parametrize("form", FOLDED)
def test_folds_into_what_it_reads(form):
    torch.manual_seed(0)
    model, arguments, count = FOLDED[form]
    model, x = randomize(model()), arguments()
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-5)
    assert len(remarks(executable, "fold-batch-norm", "passed")) == count
    assert remarks(executable, "fold-batch-norm", "missed") == []
    assert "sqrt" not in main_text(executable)


FORWARD = {
    "conv": (lambda: nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 5, 3)), image),
    "depthwise": (lambda: nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, groups=4)), image),
    "grouped": (lambda: nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 6, 3, groups=2, bias=False)), image),
    "linear": (lambda: nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 5)), lambda: torch.randn(3, 4)),
    "layer norm": (lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 5)), lambda: torch.randn(2, 3, 6)),
}


@pytest.mark.parametrize("form", FORWARD)
def test_folds_into_what_reads_it(form):
    torch.manual_seed(0)
    model, arguments = FORWARD[form]
    model, x = randomize(model()), arguments()
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-5)
    assert len(remarks(executable, "fold-scale-shift-forward", "passed")) == 1


def test_forward_stops_at_padding():
    model, x = randomize(nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 5, 3, padding=1))), image()
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-5)
    assert remarks(executable, "fold-scale-shift-forward", "missed") == [
        "not folded into what reads it: its shift would not reach the padding"
    ]


def test_forward_reaches_every_reader():
    class Readers(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.query, self.key = nn.LayerNorm(6), nn.Linear(6, 4), nn.Linear(6, 3)

        def forward(self, x):
            y = self.norm(x)
            return self.query(y), self.key(y)

    model, x = randomize(Readers()), torch.randn(5, 6)
    executable = pipeline.compile(model, (x,))
    for result, expected in zip(executable(x), model(x), strict=True):
        assert_close(result, expected, 1e-5)
    assert len(remarks(executable, "fold-scale-shift-forward", "passed")) == 1


def test_lone_norm_is_one_multiply_and_one_add():
    model, x = randomize(nn.BatchNorm2d(4)), image()
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-5)
    text = main_text(executable)
    assert [text.count(f"arith.{op}") for op in ("mulf", "addf", "subf", "divf")] == [1, 1, 0, 0]
    assert text.count("linalg.generic") == 1


def test_lone_norm_fuses_with_its_neighbours():
    model, x = randomize(nn.Sequential(nn.ReLU(), nn.BatchNorm2d(4), nn.Tanh())), image()
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-5)
    assert main_text(executable).count("linalg.generic") == 1


class AnotherUser(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)

    def forward(self, x):
        y = self.conv(x)
        return self.norm(y) - y


class BatchStatistics(AnotherUser):
    def forward(self, x):
        norm = self.norm
        return F.batch_norm(self.conv(x), None, None, norm.weight, norm.bias, True)


class GivenStatistics(AnotherUser):
    def forward(self, x):
        return F.batch_norm(self.conv(x), x.mean((0, 2, 3)), x.square().mean((0, 2, 3)))


class OtherDim(AnotherUser):
    def forward(self, x):
        return self.norm(self.conv(x).transpose(1, 3)[:, :4])


class SumOfData(AnotherUser):
    def forward(self, x):
        return self.norm(self.conv(x) + x)


class Activation(AnotherUser):
    def forward(self, x):
        return self.norm(F.relu(self.conv(x)))


class WeightIsData(AnotherUser):
    def forward(self, x):
        return self.norm(F.conv2d(x, x[:1, :4, :1, :1].expand(4, 4, 1, 1)))


@pytest.mark.parametrize(
    "form", [AnotherUser, BatchStatistics, GivenStatistics, OtherDim, SumOfData, Activation, WeightIsData]
)
def test_does_not_fold(form):
    torch.manual_seed(0)
    model, x = randomize(form()), image()
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-4)
    assert remarks(executable, "fold-batch-norm", "passed") == []


def test_training_mode_is_not_folded():
    torch.manual_seed(0)
    model, x = randomize(nn.Sequential(nn.Conv2d(4, 5, 1), nn.BatchNorm2d(5))).train(), image()
    executable = pipeline.compile(model, (x,))
    before = model[1].running_mean.clone()
    result, updated = executable(x), model[1].running_mean.clone()
    assert remarks(executable, "fold-batch-norm", "passed") == []
    model[1].running_mean.copy_(before)
    assert_close(result, model(x), 1e-4)
    assert_close(updated, model[1].running_mean, 1e-5)


def test_a_shared_weight_is_scaled_for_each_norm():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(4, 5, 3)
            self.first, self.second = nn.BatchNorm2d(5), nn.BatchNorm2d(5)

        def forward(self, x):
            return self.first(self.conv(x)), self.second(self.conv(x * 2)), self.conv(x + 1)

    torch.manual_seed(0)
    model, x = randomize(Shared()), image()
    model.second.running_var.mul_(3)
    executable = pipeline.compile(model, (x,))
    for result, expected in zip(executable(x), model(x), strict=True):
        assert_close(result, expected, 1e-5)
    assert len(remarks(executable, "fold-batch-norm", "passed")) == 2


def test_unknown_batch_size():
    torch.manual_seed(0)
    model, x = randomize(nn.Sequential(nn.Conv2d(4, 5, 3, padding=1), nn.BatchNorm2d(5))), image()
    batch = torch.export.Dim("batch", min=1, max=64)
    executable = pipeline.compile(model, (x,), dynamic_shapes=({0: batch},))
    assert len(remarks(executable, "fold-batch-norm", "passed")) == 1
    for size in (1, 5):
        x = torch.randn(size, 4, 6, 5)
        assert_close(executable(x), model(x), 1e-5)


def test_refresh_takes_new_weights_and_statistics():
    torch.manual_seed(0)
    model, x = randomize(nn.Sequential(nn.Conv2d(4, 5, 3), nn.BatchNorm2d(5), nn.Conv2d(5, 2, 1))), image()
    executable = pipeline.compile(model, (x,))
    before = executable(x).clone()
    randomize(model, seed=1)
    model[0].weight.mul_(-2)
    model[0].bias.add_(1)
    executable.refresh()
    assert_close(executable(x), model(x), 1e-5)
    assert not torch.allclose(before, model(x), rtol=0.1)


def test_extreme_statistics():
    torch.manual_seed(0)
    model, x = randomize(nn.Sequential(nn.Conv2d(4, 5, 1), nn.BatchNorm2d(5, eps=1e-3))), image()
    executable = pipeline.compile(model, (x,))
    for variance in (0.0, 1e-40, 1e-12, 1e12):
        model[1].running_var[1:] = variance
        executable.refresh()
        result, expected = executable(x), model(x)
        for channel in range(5):
            assert_close(result[:, channel], expected[:, channel], 1e-4)


def test_denormal_and_zero_factors():
    torch.manual_seed(0)
    model, x = randomize(nn.Sequential(nn.Conv2d(4, 5, 1), nn.BatchNorm2d(5))), image()
    model[1].weight[0], model[1].weight[1] = 0.0, 1e-40
    model[0].weight[2] = 1e-41
    executable = pipeline.compile(model, (x,))
    assert torch.allclose(executable(x), model(x), rtol=1e-5, atol=1e-6)


def test_remarks_name_the_source_line():
    model, x = randomize(AnotherUser()), image()
    executable = pipeline.compile(model, (x,))
    (remark,) = [one for one in executable.remarks if one.pass_name == "fold-batch-norm"]
    assert remark.kind == "missed" and "another user" in remark.reason
    assert remark.source is not None and "test_forms.py:" in remark.source


def test_linear_layers_merge_where_it_is_less_work():
    torch.manual_seed(0)
    wide = nn.Sequential(nn.Linear(4, 32), nn.Linear(32, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))
    model, x = randomize(wide), torch.randn(7, 4)
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-5)
    assert len(remarks(executable, "merge-linears", "passed")) == 2
    assert products(executable) == 1
    narrow = nn.Sequential(nn.Linear(8, 2), nn.Linear(2, 8)).requires_grad_(False)
    x = torch.randn(3, 8)
    executable = pipeline.compile(narrow, (x,))
    assert_close(executable(x), narrow(x), 1e-5)
    assert products(executable) == 2
