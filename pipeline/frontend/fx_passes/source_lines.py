"""The line of the model's source that a node of an FX graph comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import fx

_TORCH = str(Path(torch.__file__).parent)

#: What runs TorchScript lies here, and is not the model's source.
_FRONTEND = str(Path(__file__).parents[1])


def source_line(node: fx.Node) -> tuple[str, int] | None:
    """(file, line) of the innermost line of the model's source that made `node`."""
    return line_in(node.meta)


def line_in(meta: Mapping[str, Any]) -> tuple[str, int] | None:
    """Likewise, of what torch keeps of a node."""
    trace = meta.get("stack_trace") or ""
    frames = re.findall(r'File "([^"<]+)", line (\d+)', trace)  # the names of generated code are in <>
    frames = [frame for frame in frames if not frame[0].startswith(_FRONTEND)]
    own = [frame for frame in frames if not frame[0].startswith(_TORCH)] or frames
    return (own[-1][0], int(own[-1][1])) if own else None
