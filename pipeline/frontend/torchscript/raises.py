"""raise and assert of a script, where values of tensors decide: checks of the call."""

from __future__ import annotations

from typing import Any

import torch

from pipeline.errors import CaptureError
from pipeline.frontend.torchscript.python_ops import TensorBool, as_tensor


class ScriptRaises(CaptureError):
    """The script raises here; `said` is what it says."""

    def __init__(self, said: Any):
        super().__init__(f"the script raises {said!r} here, in a branch on values of tensors or always")
        self.said = str(said).removeprefix("AssertionError: ")


def raises(block: Any) -> bool:
    """Whether a block raises an exception whatever happens in it."""
    return any(node.kind() == "prim::RaiseException" for node in block.nodes())


def check(condition: Any, holds: bool, said: str) -> None:
    """if c: .. else: raise E("said")  →  _assert_async(c, "said"); of `not c` unless `holds`."""
    flag = as_tensor(condition) if isinstance(condition, (TensorBool, torch.SymBool)) else condition != 0
    torch._assert_async(flag if holds else torch.logical_not(flag), said)
