"""Who asks about a size while a model is captured: the model itself, or torch for reasons of its own."""

from __future__ import annotations

import traceback
from pathlib import Path

import torch
from torch._guards import SLoc

_TORCH = Path(torch.__file__).parent

#: Parts of torch that decide by sizes what a model computes; the others look for layouts and sizes of 1.
_PARTS_OF_MODELS = (_TORCH / "nn", _TORCH / "functional.py")

#: Functions of other parts that do, by the folder of their file: how many dims or tensors there are as a result.
_DECIDING = {
    ("_prims_common", "infer_size"),
    ("_refs", "squeeze"),
    ("_decomp", "split"),
    ("_refs", "chunk"),
    ("_refs", "tensor_split"),
    ("_refs", "unbind"),
}

#: What runs the model's Python where it is captured by its bytecode.
_INTERPRETER = _TORCH / "_dynamo"


def place_in_model(place: SLoc, function: str | None = None) -> str | None:
    """`file:line` of what asks for the sake of what the model computes; None if it is torch for how it does so.

    `function` is the one that asks, where the place only knows that a generator in it does.
    """
    frame = place.framework_loc
    if not isinstance(frame, traceback.FrameSummary):
        return None
    path = Path(frame.filename)
    if _INTERPRETER in path.parents:
        return None if place.maybe_user_loc is None else place.maybe_user_loc.rpartition("# ")[2]
    return f"{frame.filename}:{frame.lineno}" if _decides(path, function or frame.name) else None


def _decides(path: Path, function: str) -> bool:
    if _TORCH not in path.parents:
        return True
    if (path.parent.name, function) in _DECIDING:
        return True
    return any(part == path or part in path.parents for part in _PARTS_OF_MODELS)
