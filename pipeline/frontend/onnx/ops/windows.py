"""What convolutions and pools say of their windows: sizes, strides, dilations, and pads, some by rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.frontend.onnx.call import NodeCall


@dataclass(frozen=True)
class Windows:
    """For each spatial dim, as `before` and `after` the pads are."""

    sizes: list[Any]
    strides: list[int]
    dilations: list[int]
    before: list[Any]
    after: list[Any]

    @property
    def is_symmetric(self) -> bool:
        """Whether there is as much before as after."""
        return all(
            isinstance(a, int) and isinstance(b, int) and a == b for a, b in zip(self.before, self.after, strict=True)
        )

    def around(self) -> list[Any]:
        """The pads as F.pad takes them: from the last dim to the first."""
        pairs = list(zip(self.before, self.after, strict=True))
        return [number for pair in reversed(pairs) for number in pair]


def windows_of(call: NodeCall, sizes: list[Any], spatial: list[Any]) -> Windows:
    """The windows of a node over an input of these spatial sizes."""
    rank = len(sizes)
    strides = call.get("strides") or [1] * rank
    dilations = call.get("dilations") or [1] * rank
    pads = call.get("pads") or [0] * (2 * rank)
    before, after = list(pads[:rank]), list(pads[rank:])
    rule = call.get("auto_pad", "NOTSET")
    if rule == "VALID":
        before, after = [0] * rank, [0] * rank
    elif rule != "NOTSET":
        for at in range(rank):
            extent = (sizes[at] - 1) * dilations[at] + 1
            count = -(-spatial[at] // strides[at])
            total = max(0, (count - 1) * strides[at] + extent - spatial[at])
            less, more = total // 2, total - total // 2
            before[at], after[at] = (less, more) if rule == "SAME_UPPER" else (more, less)
    return Windows(sizes, strides, dilations, before, after)
