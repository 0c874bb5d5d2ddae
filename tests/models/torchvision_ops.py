"""torchvision with or without its operators.

Its wheel on the package index is linked against CUDA's libraries and does not load beside a CPU build of torch; then
importing torchvision fails, as `torchvision::nms` does not exist. Here the operators that detectors need are defined in
Python where that is so. Goes when torchvision's wheel loads without CUDA.
"""

from __future__ import annotations

import importlib
import sys

import torch

#: Keeps what is registered.
_library = torch.library.Library("torchvision", "FRAGMENT")

_NMS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_ROI_ALIGN = (
    "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor"
)


def define_missing_operators() -> None:
    """Imports torchvision, with operators in Python if it lacks its own."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        _import_with_own_operators()


def _import_with_own_operators() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    for name, schema in (("nms", _NMS), ("qnms", _NMS), ("roi_align", _ROI_ALIGN)):
        _library.define(name + schema)
    _library.impl("nms", _nms, "CPU")
    _library.impl("roi_align", _roi_align, "CPU")
    import torchvision.extension

    torch.library.register_fake("torchvision::roi_align", _roi_align_shape, lib=_library)
    torchvision.extension._has_ops = lambda: True
    sys.modules["torchvision.ops.roi_align"]._has_ops = lambda: True


def _nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """The numbers of the boxes [n, 4] to keep: the best first, without those that overlap with a better one."""
    from torchvision.ops import box_iou

    order = scores.argsort(descending=True, stable=True)
    overlaps = box_iou(boxes, boxes)[order][:, order] > iou_threshold
    kept: list[int] = []
    for rank in range(len(order)):
        if not overlaps[rank, kept].any():
            kept.append(rank)
    return order[torch.tensor(kept, dtype=torch.int64)]


def _roi_align(
    features: torch.Tensor, rois: torch.Tensor, scale: float, height: int, width: int, ratio: int, aligned: bool
) -> torch.Tensor:
    """Means of `ratio` x `ratio` bilinear samples per bin: [n, c, h, w], [k, 5] -> [k, c, height, width]."""
    offset = 0.5 if aligned else 0.0
    corners = rois[:, 1:] * scale - offset
    extent = corners[:, 2:] - corners[:, :2]
    if not aligned:
        extent = extent.clamp(min=1.0)
    steps = [(torch.arange(count * ratio) + 0.5) / (count * ratio) for count in (width, height)]
    x, y = (corners[:, dim, None] + extent[:, dim, None] * steps[dim] for dim in (0, 1))
    size = torch.tensor(features.shape[:1:-1])
    grid = torch.stack(
        torch.broadcast_tensors(
            *((2 * one.clamp(0) / (size[dim] - 1) - 1) for dim, one in enumerate((x[:, None, :], y[:, :, None])))
        ),
        -1,
    )
    images = features[rois[:, 0].long()]
    samples = torch.nn.functional.grid_sample(images, grid, padding_mode="border", align_corners=True)
    return torch.nn.functional.avg_pool2d(samples, ratio)


def _roi_align_shape(
    features: torch.Tensor, rois: torch.Tensor, scale: float, height: int, width: int, ratio: int, aligned: bool
) -> torch.Tensor:
    return features.new_empty(rois.shape[0], features.shape[1], height, width)
