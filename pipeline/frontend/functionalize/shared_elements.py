"""Writes to tensors whose elements share memory, as `x.expand(2, 3).fill_(1)`: refused, as torch gets them wrong.

torch functionalizes a write through `expand` as x + sum(new - x), which adds the difference once for each element that
shares memory.
"""

from __future__ import annotations

import torch
from torch import fx

from pipeline.frontend.functionalize.region_aliases import refusal
from pipeline.frontend.functionalize.schema_aliases import viewed, written


def refuse_writes_to_shared_elements(module: fx.GraphModule) -> None:
    """Looks at a graph in ATen, and at those of its branches and loops.

    Raises:
        CaptureError: it writes in place to a view that has one element of memory under several indices.
    """
    for inner in module.modules():
        if isinstance(inner, fx.GraphModule):
            for node in inner.graph.nodes:
                if any(viewed(value) is not None and _shares_elements(value) for value in written(node)):
                    raise refusal(node, _REASON)


_REASON = (
    "this writes in place to a tensor whose elements share memory, as those of an expanded one do, which "
    "torch.export computes wrongly; write to the tensor before it is expanded, or to a clone"
)


def _shares_elements(node: fx.Node) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return False
    return any(
        isinstance(stride, int) and stride == 0 and not (isinstance(size, int) and size <= 1)
        for size, stride in zip(value.shape, value.stride(), strict=True)
    )
