"""`F.linear_cross_entropy` with options: some rows of logits at a time, so that there are never all of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.modules import linear_cross_entropy

from pipeline.frontend.decompositions.replacements.table import replaces

#: So many parts at most are unrolled; of more each is larger.
_MOST_PARTS = 64


@dataclass(frozen=True)
class _Rows:
    """Some rows of the data, of shapes (rows, features) and (rows,).

    Attributes:
        data: in the dtype that is computed in, as is `scale`.
        targets: the class of each, 0 of one that does not count.
        scale: the weight of each in the loss, 0 of one that does not count.
    """

    data: Tensor
    targets: Tensor
    scale: Tensor


def _parts(
    x: Tensor, targets: Tensor, class_weights: Tensor | None, ignored: int, rows: int, dtype: torch.dtype
) -> list[_Rows]:
    counts = targets != ignored
    inside = torch.where(counts, targets, 0)
    scale = counts.to(dtype)
    if class_weights is not None:
        scale = scale * class_weights.to(dtype).index_select(0, inside)
    count = x.size(0)
    if isinstance(count, int) and isinstance(rows, int):
        rows = max(rows, -(-count // _MOST_PARTS), 1)
        starts = list(range(0, count, rows)) or [0]
    else:
        rows, starts = count, [0]  # of sizes that are not known: all at once
    pieces = (tensor.split(rows) if len(starts) > 1 else (tensor,) for tensor in (x.to(dtype), inside, scale))
    return [_Rows(*part) for part in zip(*pieces, strict=True)]


def _probabilities(part: _Rows, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """The logarithms of softmax(x @ w.T + b): (rows, classes), and those of the targets: (rows,)."""
    logits = part.data @ weight.T
    logs = torch.log_softmax(logits if bias is None else logits + bias, 1)
    return logs, logs.gather(1, part.targets.unsqueeze(1)).squeeze(1)


def _by_logits(part: _Rows, logs: Tensor, total: Tensor | None) -> Tensor:
    """The gradient of sum(-scale * logs[target]) / total: (softmax - one_hot(target)) * scale / total."""
    is_target = torch.arange(logs.size(1)) == part.targets.unsqueeze(1)
    scale = part.scale if total is None else part.scale / total
    return (logs.exp() - is_target.to(logs.dtype)) * scale.unsqueeze(1)


@replaces(linear_cross_entropy._linear_cross_entropy_batch_chunked_no_reduction._opoverload)
def losses_of_rows(
    x: Tensor,
    weight: Tensor,
    targets: Tensor,
    bias: Tensor | None,
    class_weights: Tensor | None,
    ignore_index: int,
    rows: int,
    policy: str,
    dtype: torch.dtype,
) -> Tensor:
    """linear_cross_entropy(x: [N, F], w: [C, F]) → of some rows at a time -scale * log_softmax(x @ w.T)[target]."""
    wide, shift = weight.to(dtype), None if bias is None else bias.to(dtype)
    losses = [
        -part.scale * _probabilities(part, wide, shift)[1]
        for part in _parts(x, targets, class_weights, ignore_index, rows, dtype)
    ]
    return torch.cat(losses).to(x.dtype)


@replaces(linear_cross_entropy._linear_cross_entropy_batch_chunked._opoverload)
def loss_of_rows(
    x: Tensor,
    weight: Tensor,
    targets: Tensor,
    bias: Tensor | None,
    class_weights: Tensor | None,
    reduction: str,
    ignore_index: int,
    _smoothing: float,
    rows: int,
    policy: str,
    dtype: torch.dtype,
    _retained: bool,
    for_x: bool,
    for_weight: bool,
    for_bias: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """linear_cross_entropy(x, w) → the sum or mean of `losses_of_rows` and its gradients, which eager has at once, too.

    Gradients that are not asked for have no elements.
    """
    wide, shift = weight.to(dtype), None if bias is None else bias.to(dtype)
    parts = _parts(x, targets, class_weights, ignore_index, rows, dtype)
    total = torch.cat([part.scale for part in parts]).sum()
    losses, by_x = [], []
    by_weight, by_bias = torch.zeros_like(wide), torch.zeros(weight.size(0), dtype=dtype)
    for part in parts:
        logs, of_targets = _probabilities(part, wide, shift)
        losses += [-part.scale * of_targets]
        by_logits = _by_logits(part, logs, total if reduction == "mean" else None)
        by_x += [by_logits @ wide] if for_x else []
        by_weight = by_weight + by_logits.T @ part.data if for_weight else by_weight
        by_bias = by_bias + by_logits.sum(0) if for_bias else by_bias
    gradients = (
        torch.cat(by_x) if for_x else x.new_zeros((0, 0)),
        by_weight if for_weight else x.new_zeros((0, 0)),
        by_bias if for_bias else x.new_zeros(0),
    )
    loss = torch.cat(losses).sum()
    whole = loss / total if reduction == "mean" else loss
    return whole.to(x.dtype), *(gradient.to(x.dtype) for gradient in gradients)
