"""Where a node of an FX graph comes from: the line of the user's source, and the module of the model."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import fx

_TORCH = str(Path(torch.__file__).parent)

#: What runs TorchScript lies here, and is not the model's source.
_FRONTEND = str(Path(__file__).parents[1])

#: Libraries of models: a line of one of these says less than the line of the user's that calls it.
_LIBRARIES = ("timm", "torchvision", "transformers")

#: How dynamo calls the model itself, and what it got the model by: `L['self'].encoder`, `G['net'].encoder`.
_ROOT = re.compile(r"^L\['(?:self|fn)'\]\.?|^[LG]\['(\w+)'\]")


def source_line(node: fx.Node) -> tuple[str, int] | None:
    """(file, line) of the user's line that made `node`: the innermost that lies in no library.

    Where there is none, since a library's model is what was captured, that of the library's model; else torch's.
    """
    return line_in(node.meta)


def line_in(meta: Mapping[str, Any]) -> tuple[str, int] | None:
    """Likewise, of what torch keeps of a node."""
    trace = meta.get("stack_trace") or ""
    frames = re.findall(r'File "([^"<]+)", line (\d+)', trace)  # the names of generated code are in <>
    frames = [frame for frame in frames if not frame[0].startswith(_FRONTEND)]
    outside = [frame for frame in frames if not frame[0].startswith(_TORCH)]
    own = [frame for frame in outside if not frame[0].startswith(_library_folders())]
    models = [frame for frame in outside if "models" in Path(frame[0]).parts]
    chosen = own or models or outside or frames
    return (chosen[-1][0], int(chosen[-1][1])) if chosen else None


def module_path(node: fx.Node) -> str | None:
    """The path of the innermost module of the model that made `node`, e.g. `encoder.layer.3.attention`.

    None for what the model's own forward does, and where torch has not noted it. Of what backward does, the module
    whose gradients it is.
    """
    modules = modules_of(node)
    return (modules[-1][0] or None) if modules else None


def modules_of(node: fx.Node) -> tuple[tuple[str, str], ...]:
    """The paths and classes of the modules that made `node`, from the outermost in; the path of the model is empty."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    return tuple((_path(str(path)), _class_name(kind)) for path, kind in _entries(stack))


def _path(noted: str) -> str:
    path = re.sub(r"\._modules\['(\w+)'\]|\[(\d+)\]", r".\1\2", noted)
    return _ROOT.sub(lambda match: match[1] or "", path).strip(".")


def _class_name(kind: object) -> str:
    return (kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))).rpartition(".")[2]


def _entries(stack: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """What torch notes of each module, from the outermost in: its path and its class."""
    entries: Iterable[Any] = stack.values()
    return [entry for entry in entries if isinstance(entry, tuple) and len(entry) == 2]


@cache
def _library_folders() -> tuple[str, ...]:
    """Where the libraries lie that are installed; none of them is imported."""
    specs = filter(None, map(importlib.util.find_spec, _LIBRARIES))
    return tuple(str(Path(spec.origin).parent) for spec in specs if spec.origin)
