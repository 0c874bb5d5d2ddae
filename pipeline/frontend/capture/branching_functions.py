"""Functions that PyTorch writes with branches on the values of tensors, without these, so that a trace can hold them.

What PyTorch raises by a branch is a check of the call.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """cov(x: [variables, observations]) → (x - mean) @ (x - mean).T / (observations - correction), as torch.cov."""
    x = input.reshape(1, -1) if input.dim() < 2 else input
    x = x if x.is_floating_point() or x.is_complex() else x.to(torch.get_default_dtype())
    if fweights is None and aweights is None:
        x = x - x.mean(1, keepdim=True)
        return ((x @ x.mH) / torch.sym_max(x.shape[1] - correction, 0)).squeeze()
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            torch._assert_async((given >= 0).all(), f"cov: {name} cannot be negative")
    weights = torch.ones(x.shape[1], dtype=torch.int64)
    for given in (fweights, aweights):
        weights = weights if given is None else weights * given
    total = weights.sum()
    torch._assert_async(total != 0, "cov: weights sum to zero, can't be normalized")
    x = x - (x * weights).sum(1, keepdim=True) / total
    lost = correction if aweights is None else correction * (weights * aweights).sum() / total
    return ((x @ (x * weights).mH) / (total - lost).clamp(min=0)).squeeze()


def corrcoef(input: Tensor) -> Tensor:
    """corrcoef(x) → cov(x) / (deviations of both), within -1 and 1, as torch.corrcoef."""
    covariance = cov(input)
    if covariance.dim() == 0:
        return covariance / covariance
    deviations = covariance.diagonal().real.sqrt()
    found = covariance / deviations.unsqueeze(1) / deviations
    return torch.complex(found.real.clip(-1, 1), found.imag.clip(-1, 1)) if found.is_complex() else found.clip(-1, 1)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """gaussian_nll_loss(x, y, v) → (log v + (x - y)² / v) / 2, as torch.nn.functional's."""
    if isinstance(var, float):
        var = torch.full_like(input, var)
    torch._assert_async((var >= 0).all(), "gaussian_nll_loss: var has negative entry/entries")
    if var.dim() == input.dim() - 1 and var.dim() > 0:
        var = var.unsqueeze(-1)
    if var.dim() != input.dim() or sum(b for a, b in zip(input.shape, var.shape, strict=True) if a != b) not in (0, 1):
        raise ValueError("gaussian_nll_loss: var is of incorrect size")
    var = var.clone()
    with torch.no_grad():  # the gradient passes the clamp by, as in torch
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return loss.mean() if reduction == "mean" else loss.sum()
