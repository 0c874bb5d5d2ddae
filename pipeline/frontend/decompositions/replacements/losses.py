"""Losses."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces


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
