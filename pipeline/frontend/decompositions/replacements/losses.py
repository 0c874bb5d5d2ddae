"""Losses."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten.binary_cross_entropy.default)
def binary_cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1) -> Tensor:
    """The logarithms that torch takes it apart to, after the check that it has in eager mode alone."""
    for of, values in (("input", x), ("target", target)):
        message = f"binary_cross_entropy: all elements of {of} should be between 0 and 1"
        aten._assert_async.msg(((values >= 0) & (values <= 1)).all(), message)
    return decomposition_table[aten.binary_cross_entropy.default](x, target, weight, reduction)


@replaces(aten.multilabel_margin_loss_forward.default)
def multilabel_margin_loss(x: Tensor, targets: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """The sums of max(0, 1 - x[target] + x[other]), divided by the number of classes; and which classes are targets.

    Targets end at the first -1. Torch's own decomposition takes what comes after that for targets, too, in part.
    """
    classes = x.size(-1) if x.dim() else 1
    scores, labels = x.reshape(-1, classes), targets.reshape(-1, classes)
    numbers = torch.arange(classes)
    counts = numbers < torch.where(labels < 0, numbers, classes).amin(1, keepdim=True)
    labels = torch.where(counts, labels, 0)
    is_target = (counts.unsqueeze(2) & (labels.unsqueeze(2) == numbers)).any(1)
    margins = (1 - scores.gather(1, labels).unsqueeze(2) + scores.unsqueeze(1)).clamp(min=0)
    margins = torch.where(counts.unsqueeze(2) & is_target.logical_not().unsqueeze(1), margins, 0)
    losses = margins.sum((1, 2)) / classes
    loss = losses.reshape(x.shape[:-1]) if reduction == 0 else losses.mean() if reduction == 1 else losses.sum()
    return loss, is_target.to(x.dtype).reshape(targets.shape)


@replaces(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default)
def nll_loss_backward(
    gradient: Tensor,
    x: Tensor,
    targets: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """where(class == target, -weight * gradient, 0), element by element, so that what reads it computes it.

    Torch's own decomposition scatters into zeros, and multiplies these with the gradient.
    """
    dim = 0 if x.dim() < 2 else 1
    shape = [x.size(dim) if each == dim else 1 for each in range(x.dim())]
    if reduction == 1:
        gradient = gradient / total_weight
    if 0 < gradient.dim() < x.dim():
        gradient = gradient.unsqueeze(dim)
    if weight is not None:
        gradient = gradient * weight.reshape(shape)
    targets = targets.unsqueeze(dim)
    is_target = (torch.arange(x.size(dim)).reshape(shape) == targets) & (targets != ignore_index)
    return torch.where(is_target, -gradient, 0.0)
