"""Forward keeps what is dear to compute again, and backward computes the rest: torch's partition by min-cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import min_cut_rematerialization_partition

from pipeline.frontend.decompositions import COPIED_VIEWS, decomposition_table
from pipeline.frontend.gradients.kept_bases import keep_bases
from pipeline.frontend.gradients.kept_layouts import keep_as_in_memory
from pipeline.frontend.gradients.kept_values import keep_what_is_read
from pipeline.frontend.gradients.norms import statistics_in_float32
from pipeline.frontend.gradients.recompute import copy_what_is_written

aten = torch.ops.aten

#: Ops that stay whole until forward and backward are parted, so that what backward keeps of them is what eager keeps.
_WHOLE = (
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
    aten.convolution_backward.default,
)


def joint_table(random: str) -> Mapping[Any, Callable[..., Any]]:
    """What graphs of forward and backward together are taken apart to; `random` as of `decomposition_table`."""
    table = statistics_in_float32(decomposition_table(random))
    return {op: function for op, function in table.items() if op not in (*_WHOLE, *COPIED_VIEWS)}


def activation_partition(
    joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **options: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """(forward, backward) of a graph of aot_autograd's that computes both, as a `partition_fn` gives them."""
    copy_what_is_written(joint)
    forward, backward = min_cut_rematerialization_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **options)
    keep_bases(forward, backward, num_fwd_outputs)
    keep_what_is_read(forward, backward, num_fwd_outputs)
    keep_as_in_memory(forward, backward, num_fwd_outputs)
    return forward, backward
