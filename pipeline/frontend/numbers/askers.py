"""Who asks about a size while a model is captured: the model itself, or torch for reasons of its own."""

from __future__ import annotations

import traceback
from functools import cache
from pathlib import Path
from types import FrameType

import torch
from torch._guards import SLoc
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.traceback import get_current_meta

from pipeline.frontend.fx_passes.source_lines import line_in

_TORCH = Path(torch.__file__).parent

#: Where code lies that is not the model's.
_OTHERS = {_TORCH, Path(__file__).parents[2]}

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
    ("_subclasses", "_compute_slice_index"),
}

#: Ops of C++ that do.
_DECIDING_OPS = (
    torch.ops.aten.tensor_split,
    torch.ops.aten.hsplit,
    torch.ops.aten.vsplit,
    torch.ops.aten.dsplit,
)

#: Functions that ask which dims are repeated; that others are not repeated decides nothing, as they are equal then.
_BROADCASTS = {
    ("_subclasses", "infer_size"),
    ("_refs", "_broadcast_shapes"),
    ("_refs", "expand"),
    ("_prims", "_broadcast_in_dim_meta"),
}

#: Functions that take the least or largest of two sizes for how many elements there are as a result.
_EXTENTS = {("_refs", "diagonal")}

#: What runs the model's Python where it is captured by its bytecode.
_INTERPRETER = _TORCH / "_dynamo"

#: Its function that gives the model's Python a value; others ask for themselves.
_WANTS_A_VALUE = "evaluate_expr"


def place_in_model(place: SLoc) -> str | None:
    """`file:line` of what asks for the sake of what the model computes; None if it is torch for how it does so."""
    frame = place.framework_loc
    if not isinstance(frame, traceback.FrameSummary):
        return None
    if _is_interpreters(frame.filename):
        return None if place.maybe_user_loc is None else place.maybe_user_loc.rpartition("# ")[2]
    return f"{frame.filename}:{frame.lineno}" if _decides(frame.filename, frame.name) else None


def place_of_frame(frame: FrameType, environment: ShapeEnv) -> str | None:
    """Likewise, of the frame that asks; `file:line` is the model's own where there is one."""
    file = frame.f_code.co_filename
    if _is_interpreters(file):
        is_for_model = frame.f_code.co_name == _WANTS_A_VALUE
        return place_in_model(environment._get_sloc()) if is_for_model else None
    decides = is_deciding_op(frame) or _decides(file, _function(frame))
    return line_of_frame(frame) if decides else None


def is_broadcast(frame: FrameType) -> bool:
    """Whether a frame finds out which dims of operands are repeated."""
    return _named(frame) in _BROADCASTS


def is_extent(frame: FrameType) -> bool:
    """Whether a frame finds out how many elements there are: of an op that does, or of the model."""
    return _named(frame) in _EXTENTS or not _is_others(frame.f_code.co_filename)


def line_of_frame(frame: FrameType) -> str:
    """The model's own `file:line` that a frame is called from, or that of the frame."""
    return _own_line(frame) or _line_that_runs() or f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _named(frame: FrameType) -> tuple[str, str]:
    """(folder of the file, function) of a frame."""
    return _folder(frame.f_code.co_filename), _function(frame)


@cache
def _folder(file: str) -> str:
    return Path(file).parent.name


def _function(frame: FrameType) -> str:
    return frame.f_code.co_qualname.partition(".")[0]


def is_deciding_op(frame: FrameType) -> bool:
    """Whether a frame calls an op that torch's C++ takes apart, and whose results depend on what it asks meanwhile."""
    op = frame.f_locals.get("self")
    return isinstance(op, OpOverload) and op.overloadpacket in _DECIDING_OPS


def _own_line(frame: FrameType) -> str | None:
    """The line of the model, or of what else calls torch; None if all frames are torch's or ours, or made by these."""
    here: FrameType | None = frame
    while here is not None and _is_others(here.f_code.co_filename):
        here = here.f_back
    return None if here is None else f"{here.f_code.co_filename}:{here.f_lineno}"


@cache  # asked for every frame of every question
def _is_others(file: str) -> bool:
    return file.startswith("<") or not _OTHERS.isdisjoint(Path(file).parents)


def _line_that_runs() -> str | None:
    """The line of the model that made the node of a captured graph that is run; None if none is."""
    line = line_in(get_current_meta())
    return None if line is None else f"{line[0]}:{line[1]}"


@cache
def _is_interpreters(file: str) -> bool:
    return _INTERPRETER in Path(file).parents


@cache
def _decides(file: str, function: str) -> bool:
    path = Path(file)
    if _TORCH not in path.parents:
        return True
    if (path.parent.name, function) in _DECIDING:
        return True
    return any(part == path or part in path.parents for part in _PARTS_OF_MODELS)
