"""Shapes of ops that torch's capture does not know, though they can be told: so that these ops run in torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def register_fakes() -> None:
    """Tells torch's fake tensors; does nothing where they know already."""
    for name, fake in _FAKES.items():
        if not torch._library.simple_registry.singleton.find(name).fake_impl.kernel:
            torch.library.register_fake(name, fake, allow_override=True)


def _lstsq(a: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Solution, residuals (none for a matrix of less than full rank: a size that the data decides), rank, values."""
    is_vector = b.dim() == a.dim() - 1
    columns = [] if is_vector else [b.size(-1)]
    count = torch.library.get_ctx().new_dynamic_size(min=0)
    values = (*a.shape[:-2], min(a.size(-2), a.size(-1))) if driver in ("gelss", "gelsd") else (0,)
    ranks = (0,) if driver == "gels" else a.shape[:-2]
    return (
        a.new_empty(*a.shape[:-2], a.size(-1), *columns),
        a.new_empty(count),
        a.new_empty(ranks, dtype=torch.int64),
        a.new_empty(values, dtype=a.real.dtype),
    )


def _ctc_loss(log_probs: Tensor, targets: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The loss of each sequence; what a backward pass would read, at most as long as the targets allow."""
    steps, batch = log_probs.shape[:2]
    return log_probs.new_empty(batch), log_probs.new_empty(batch, steps, 2 * targets.size(-1) + 1)


_FAKES = {"aten::linalg_lstsq": _lstsq, "aten::_ctc_loss": _ctc_loss, "aten::_ctc_loss.Tensor": _ctc_loss}
