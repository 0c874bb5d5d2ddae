"""Ops of detection libraries, whose results have as many rows as the numbers say: torch runs them, code the rest."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline
from pipeline.remarks import collect

_NAMES = "pipeline_detection"
torch.library.define(f"{_NAMES}::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
torch.library.define(
    f"{_NAMES}::roi_align", "(Tensor input, Tensor rois, float spatial_scale, SymInt height, SymInt width) -> Tensor"
)


@torch.library.impl(f"{_NAMES}::nms", "cpu")
def nms(boxes, scores, iou_threshold):
    """The places of boxes that overlap no better one, the best first."""
    kept = []
    for place in scores.argsort(descending=True).tolist():
        if all(_overlap(boxes[place], boxes[other]) <= iou_threshold for other in kept):
            kept.append(place)
    return torch.tensor(kept, dtype=torch.int64)


def _overlap(a, b):
    low, high = torch.maximum(a[:2], b[:2]), torch.minimum(a[2:], b[2:])
    common = (high - low).clamp(min=0).prod()
    return common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common)


@torch.library.register_fake(f"{_NAMES}::nms")
def _(boxes, scores, iou_threshold):
    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


@torch.library.impl(f"{_NAMES}::roi_align", "cpu")
def roi_align(image, rois, spatial_scale, height, width):
    """The means of a grid of each box: [rois, channels, height, width]."""
    parts = []
    for batch, left, top, right, bottom in (rois * spatial_scale).round().long().tolist():
        part = image[batch, :, top : max(bottom, top + 1), left : max(right, left + 1)]
        parts.append(nn.functional.adaptive_avg_pool2d(part, (height, width)))
    return torch.stack(parts) if parts else image.new_empty(0, image.size(1), height, width)


@torch.library.register_fake(f"{_NAMES}::roi_align")
def _(image, rois, spatial_scale, height, width):
    return image.new_empty(rois.size(0), image.size(1), height, width)


class Detector(nn.Module):
    """Boxes and scores of a convolution, the best of them, and features of these."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4, 2)

    def forward(self, image, corners, scores):
        features = torch.relu(self.body(image))
        sizes = corners.abs() * 2 + 2
        boxes = torch.cat([corners.abs(), corners.abs() + sizes], 1)
        kept = torch.ops.pipeline_detection.nms(boxes, scores.sigmoid(), 0.3)
        best = boxes[kept]
        rois = torch.cat([torch.zeros_like(best[:, :1]), best], 1)
        regions = torch.ops.pipeline_detection.roi_align(features, rois, 1.0, 2, 2)
        return best * 2, self.head(regions.mean((2, 3))).softmax(-1), kept


def inputs(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(1, 3, 16, 16, generator=generator),
        torch.rand(count, 2, generator=generator) * 5,
        torch.randn(count, generator=generator),
    )


def test_compiled():
    model = Detector().eval()
    with collect() as remarks:
        executable = pipeline.compile(model, inputs(9), fallback="torch")
    ops = [fallback.op for fallback in executable.fallbacks]
    assert ops == ["pipeline_detection.nms", "pipeline_detection.roi_align"]
    assert all(fallback.reason == "is an op of another library" for fallback in executable.fallbacks)
    assert sum(remark.pass_name == "fallback" for remark in remarks) == 2
    assert {"conv", "matmul"} <= {kernel.kind for kernel in executable.kernels}
    counts = set()
    for seed in range(4):
        found, expected = executable(*inputs(9, seed)), model(*inputs(9, seed))
        torch.testing.assert_close(found, expected)
        counts.add(len(found[2]))
    assert len(counts) > 1, "results have sizes of their own"


@pytest.mark.parametrize("captures", [False, True], ids=["graph breaks", "whole graph"])
def test_torch_compile(captures):
    torch._dynamo.reset()
    model = Detector().eval()
    run = torch.compile(model, backend="pipeline", fullgraph=captures, options={"fallback": "torch"})
    with torch.no_grad(), torch._dynamo.config.patch(capture_dynamic_output_shape_ops=captures):
        for seed in range(3):
            torch.testing.assert_close(run(*inputs(9, seed)), model(*inputs(9, seed)))
    fallbacks = [fallback.op for one in pipeline.executables(run) for fallback in one.fallbacks]
    assert ("pipeline_detection.nms" in fallbacks) == captures
    torch._dynamo.reset()


torch.library.define(f"{_NAMES}::chosen", "(Tensor x) -> Tensor")
torch.library.define(f"{_NAMES}::doubled", "(Tensor x) -> Tensor")


@torch.library.impl(f"{_NAMES}::chosen", "cpu")
def chosen(x):
    """As many parts of each dim as the numbers say."""
    count = int(x.flatten()[0])
    return x[:count, : count + 1].clone()


@torch.library.register_fake(f"{_NAMES}::chosen")
def _(x):
    sizes = [torch.library.get_ctx().new_dynamic_size() for _ in range(x.dim())]
    return x.new_empty(sizes)


@torch.library.impl(f"{_NAMES}::doubled", "cpu")
def doubled(x):
    """Twice as much."""
    return x * 2


@torch.library.register_fake(f"{_NAMES}::doubled")
def _(x):
    return torch.empty_like(x)


@pytest.mark.parametrize("count", [2, 1, 0])
def test_one_op_takes_what_another_gives_of_sizes_that_nobody_knows(count):
    def program(x):
        return torch.ops.pipeline_detection.doubled(torch.ops.pipeline_detection.chosen(x))

    x = torch.arange(12.0).reshape(3, 4) + count
    compiled = torch.compile(program, backend="pipeline", fullgraph=True, options={"fallback": "torch"})
    assert torch.equal(compiled(x), program(x))
