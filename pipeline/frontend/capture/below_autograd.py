"""Models that differentiate as they run, by torch.func or torch.autograd.grad: captured below autograd.

torch.export records what stands above autograd, where a derivative is not taken yet: it takes the tensors of
torch.func's transforms for constants, and fails on what it made of them. Below autograd the derivative's own ops are
what is recorded.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export._trace import _export

#: Where torch implements the transforms of torch.func.
_TRANSFORMS = ("_functorch/eager_transforms.py", "_functorch/vmap.py", "_functorch/predispatch.py")


def export_below_autograd(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any
) -> ExportedProgram:
    """As torch.export.export, with ops that are taken apart as autograd sees them."""
    return _export(module, args, dict(kwargs), dynamic_shapes, strict=False, pre_dispatch=False)


def differentiates(exported: ExportedProgram) -> bool:
    """Whether a program captured above autograd enables gradients, or has a transform of torch.func left."""
    return any(_is_of_autograd(node) for node in exported.graph.nodes)


def comes_from_transform(error: Exception) -> bool:
    """Whether torch failed in a transform of torch.func, or on a tensor of one."""
    frames = traceback.extract_tb(error.__traceback__)
    return "functorch tensor" in str(error) or any(
        frame.filename.replace("\\", "/").endswith(_TRANSFORMS) for frame in frames
    )


def _is_of_autograd(node: fx.Node) -> bool:
    if node.target is torch.ops.higher_order.wrap_with_set_grad_enabled:
        return node.args[0] is True
    return node.op == "call_function" and getattr(node.target, "__module__", "") == "torch._functorch.predispatch"
