"""Bilinear and bicubic interpolation of uint8 gives eager's bytes, which come from fixed-point arithmetic."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pipeline
from pipeline.errors import PipelineError


class Resized(nn.Module):
    def __init__(self, mode, **options):
        super().__init__()
        self.options = {"mode": mode, **options}

    def forward(self, x):
        return F.interpolate(x, **self.options)


OPTIONS = {
    "larger": {"size": (9, 13)},
    "smaller": {"size": (3, 2)},
    "corners": {"size": (9, 3), "align_corners": True},
    "one row": {"size": (1, 4), "align_corners": True},
    "factors": {"scale_factor": (1.7, 0.6)},
    "factors of sizes": {"scale_factor": 2.3, "recompute_scale_factor": True},
    "width as it is": {"size": (11, 7)},
    "as it is": {"size": (6, 7), "align_corners": False},
}


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("options", OPTIONS)
def test_bytes_are_those_of_eager(mode, options):
    torch.manual_seed(0)
    channels = 8 if options in ("larger", "corners") else 3  # eager has a kernel of its own for few channels
    model, x = Resized(mode, **OPTIONS[options]), torch.randint(0, 256, (2, channels, 6, 7), dtype=torch.uint8)
    executable = pipeline.compile(model, (x,))
    assert torch.equal(executable(x), model(x))


def test_other_types_are_computed_in_floating_point():
    model, x = Resized("bilinear", size=(9, 13)), torch.randn(2, 3, 6, 7)
    torch.testing.assert_close(pipeline.compile(model, (x,))(x), model(x), rtol=1e-5, atol=1e-6)


def test_unknown_sizes_are_an_error():
    model, x = Resized("bilinear", scale_factor=2), torch.randint(0, 256, (1, 3, 6, 7), dtype=torch.uint8)
    with pytest.raises(PipelineError, match="interpolation of uint8 needs sizes known in advance"):
        pipeline.compile(model, (x,), dynamic_shapes=({2: torch.export.Dim("height", min=2, max=64)},))


def test_unknown_batch_size():
    model, x = Resized("bilinear", size=(9, 13)), torch.randint(0, 256, (2, 3, 6, 7), dtype=torch.uint8)
    executable = pipeline.compile(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=64)},))
    for size in (1, 5):
        x = torch.randint(0, 256, (size, 3, 6, 7), dtype=torch.uint8)
        assert torch.equal(executable(x), model(x))
