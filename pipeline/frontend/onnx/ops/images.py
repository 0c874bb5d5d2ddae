"""Ops of images: grids, regions, boxes."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op


@op("GridSample")
def grid_sample(call: NodeCall, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    """Pixels at the places of a grid."""
    names = {"linear": "bilinear", "cubic": "bicubic"}
    mode = call.get("mode", "linear")
    return F.grid_sample(
        x,
        grid,
        mode=names.get(mode, mode),
        padding_mode=call.get("padding_mode", "zeros"),
        align_corners=bool(call.get("align_corners")),
    )


@op("AffineGrid", as_given=(1,))
def affine_grid(call: NodeCall, theta: torch.Tensor, size: Any) -> torch.Tensor:
    """The grid of an affine map."""
    return F.affine_grid(theta, call.numbers(size) or [], align_corners=bool(call.get("align_corners")))


@op("RoiAlign")
def roi_align(call: NodeCall, x: torch.Tensor, rois: torch.Tensor, batches: torch.Tensor) -> torch.Tensor:
    """Regions as images of one size, by bilinear samples."""
    height, width = call.get("output_height", 1), call.get("output_width", 1)
    ratio, scale = call.get("sampling_ratio", 0), call.get("spatial_scale", 1.0)
    if not ratio:
        raise call.error("sampling_ratio 0 takes as many samples as the regions' sizes say; give a number")
    mode = call.get("coordinate_transformation_mode", "half_pixel" if call.version >= 16 else "output_half_pixel")
    shift = 0.5 if mode == "half_pixel" else 0.0
    left, top, right, bottom = (rois * scale - shift).unbind(1)
    wide, tall = right - left, bottom - top
    if not shift:
        wide, tall = wide.clamp(min=1), tall.clamp(min=1)
    y = _samples(top, tall, height, ratio)
    z = _samples(left, wide, width, ratio)
    values = _bilinear(x, batches, y, z)
    values = values.reshape(values.shape[0], x.shape[1], height, ratio, width, ratio)
    return values.amax((3, 5)) if call.get("mode", "avg") == "max" else values.mean((3, 5))


def _samples(start: torch.Tensor, extent: torch.Tensor, bins: int, ratio: int) -> torch.Tensor:
    """The coordinates of the samples of each region: [regions, bins * ratio]."""
    places = (torch.arange(bins * ratio) + 0.5) / (bins * ratio)
    return start.unsqueeze(1) + extent.unsqueeze(1) * places


def _bilinear(x: torch.Tensor, batches: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    height, width = x.shape[2], x.shape[3]
    inside_rows = (rows >= -1) & (rows <= height)
    inside_columns = (columns >= -1) & (columns <= width)
    y, z = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    top, left = torch.floor(y).to(torch.int64), torch.floor(z).to(torch.int64)
    below, after = (top + 1).clamp(max=height - 1), (left + 1).clamp(max=width - 1)
    down, right = (y - top).unsqueeze(2), (z - left).unsqueeze(1)
    images = batches.reshape(-1, 1, 1)

    def at(row: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
        return x.permute(0, 2, 3, 1)[images, row.unsqueeze(2), column.unsqueeze(1)]

    weights = [(1 - down) * (1 - right), (1 - down) * right, down * (1 - right), down * right]
    corners = [at(top, left), at(top, after), at(below, left), at(below, after)]
    total: Any = 0
    inside = (inside_rows.unsqueeze(2) & inside_columns.unsqueeze(1)).to(x.dtype)
    for weight, corner in zip(weights, corners, strict=True):
        total = total + corner * (weight * inside).unsqueeze(3)
    return total.permute(0, 3, 1, 2)


@op("NonMaxSuppression", as_given=(2,))
def non_max_suppression(
    call: NodeCall,
    boxes: torch.Tensor,
    scores: torch.Tensor,
    most: Any = None,
    overlap: torch.Tensor | None = None,
    least: torch.Tensor | None = None,
) -> torch.Tensor:
    """(batch, class, box) of the boxes that overlap no better one too much."""
    count = min(call.number(most, default=0), boxes.shape[1])
    shape = (scores.shape[0], scores.shape[1], boxes.shape[1])
    if count == 0:
        return torch.zeros((0, 3), dtype=torch.int64)
    corners = _corners(boxes, bool(call.get("center_point_box")))
    overlaps = _overlaps(corners).unsqueeze(1)
    limit = torch.zeros(()) if overlap is None else overlap.reshape(())
    alive = torch.ones(shape, dtype=torch.bool) if least is None else scores > least.reshape(())
    chosen, found = [], []
    for _ in range(count):
        best = torch.where(alive, scores, -float("inf")).argmax(2, keepdim=True)
        found.append(alive.gather(2, best).squeeze(2))
        chosen.append(best.squeeze(2))
        near = overlaps.expand(*shape, shape[2]).gather(2, best.unsqueeze(3).expand(-1, -1, -1, shape[2])).squeeze(2)
        alive = alive & (near <= limit) & (torch.arange(shape[2]) != best)
    places, kept = torch.stack(chosen, 2), torch.stack(found, 2)
    batch, kind, at = torch.nonzero(kept).unbind(1)
    return torch.stack([batch, kind, places[batch, kind, at]], 1)


def _corners(boxes: torch.Tensor, by_centre: bool) -> torch.Tensor:
    if by_centre:
        centre, half = boxes[..., :2], boxes[..., 2:] / 2
        return torch.cat([centre - half, centre + half], -1)
    return torch.cat([torch.minimum(boxes[..., :2], boxes[..., 2:]), torch.maximum(boxes[..., :2], boxes[..., 2:])], -1)


def _overlaps(corners: torch.Tensor) -> torch.Tensor:
    """The intersection over union of each box with each other one."""
    first, second = corners.unsqueeze(2), corners.unsqueeze(1)
    low, high = torch.maximum(first[..., :2], second[..., :2]), torch.minimum(first[..., 2:], second[..., 2:])
    common = (high - low).clamp(min=0).prod(-1)
    area = (corners[..., 2:] - corners[..., :2]).prod(-1)
    union = area.unsqueeze(2) + area.unsqueeze(1) - common
    return torch.where(union > 0, common / union, 0)
