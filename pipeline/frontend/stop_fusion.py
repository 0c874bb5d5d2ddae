"""The barrier that models are written with: `pipeline.stop_fusion`, an op of torch that is the identity."""

from __future__ import annotations

from typing import Any

import torch


@torch.library.custom_op("pipeline::stop_fusion", mutates_args=())
def _stop_fusion(x: torch.Tensor) -> torch.Tensor:
    return x.clone()  # an op of torch's may not return its argument itself


@_stop_fusion.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@_stop_fusion.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], x: torch.Tensor) -> tuple[torch.Tensor, int | None]:
    return _stop_fusion(x), in_dims[0]


_stop_fusion.register_autograd(lambda context, gradient: gradient)


def stop_fusion(x: torch.Tensor) -> torch.Tensor:
    """Returns `x`; what computes it and what uses it do not become one kernel.

    In eager mode this does nothing. torch.export, torch.compile and TorchScript keep it in the graph; it leaves no
    code.

    Args:
        x: a tensor of any shape and dtype.
    """
    if torch.jit.is_scripting() or torch.jit.is_tracing() or torch.compiler.is_compiling():
        return torch.ops.pipeline.stop_fusion(x)
    return x
