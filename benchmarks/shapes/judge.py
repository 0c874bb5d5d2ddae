"""Whether results are right: as near to float64's as eager's, up to a factor, where a result is a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

#: Results may be off by this many times as much as eager's.
FACTOR = 4.0

#: In parts of the largest result, what any result may be off by: some roundings of its dtype.
ROUNDING = {"f32": 3e-6, "bf16": 2.0**-6}


@dataclass(frozen=True)
class Verdict:
    """How far results are off.

    Attributes:
        error: the largest difference from float64, in parts of the largest result.
        eager: the same of eager.
        wrong: what is wrong, in words, or None.
    """

    error: float
    eager: float
    wrong: str | None = None

    def as_fields(self) -> dict[str, Any]:
        """As fields of a JSON line."""
        return {"error": self.error, "eager_error": self.eager} | ({"wrong": self.wrong} if self.wrong else {})


def judged(results: list[torch.Tensor], exact: list[torch.Tensor], eager: list[torch.Tensor], dtype: str) -> Verdict:
    """All results of a call against eager's and those in float64."""
    if len(results) != len(eager):
        return Verdict(float("inf"), 0.0, f"{len(results)} results, not {len(eager)}")
    verdicts = [_one(*three, dtype) for three in zip(results, exact, eager, strict=True)]
    wrong = next((f"result {n}: {one.wrong}" for n, one in enumerate(verdicts) if one.wrong), None)
    return Verdict(max(one.error for one in verdicts), max(one.eager for one in verdicts), wrong)


def _one(result: torch.Tensor, exact: torch.Tensor, eager: torch.Tensor, dtype: str) -> Verdict:
    if result.shape != eager.shape:
        return Verdict(float("inf"), 0.0, f"shape {list(result.shape)}, not {list(eager.shape)}")
    if not eager.is_floating_point():
        others = int((result != eager).sum())
        return Verdict(0.0, 0.0, f"{others} of {eager.numel()} differ" if others else None)
    if not eager.numel():
        return Verdict(0.0, 0.0)
    # A value that the dtype cannot hold is an infinity in eager, too: what is not finite has to be so in both.
    wide, other = result.double(), eager.double()
    if not torch.equal(
        torch.where(wide.isfinite(), 0.0, wide).nan_to_num(2.0),
        torch.where(other.isfinite(), 0.0, other).nan_to_num(2.0),
    ):
        return Verdict(float("inf"), 0.0, "an infinity or NaN stands at other places")
    finite = other.isfinite() & exact.isfinite()
    scale = exact[finite].abs().max().item() if finite.any() else 0.0
    if not scale:
        return Verdict(0.0, 0.0, None if torch.equal(wide[finite], other[finite]) else "not zero")
    error, eagers = (((one - exact)[finite].abs().max() / scale).item() for one in (wide, other))
    allowed = max(FACTOR * eagers, ROUNDING[dtype])
    return Verdict(error, eagers, f"off by {error:.1e}, eager by {eagers:.1e}" if error > allowed else None)
