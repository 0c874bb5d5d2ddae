"""From whatever the user has to a functional ExportedProgram.

Takes an nn.Module, a ScriptModule, an ExportedProgram or a `.pt2` archive; gives an ExportedProgram in which mutation
is extra results and ops are those that the importer knows. Everything about torch.export's quirks lives here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export._remove_effect_tokens_pass import _remove_effect_tokens

from pipeline.errors import CaptureError, OptionError, PipelineError
from pipeline.frontend.decompositions import decomposition_table

CAPTURE_MODES = ("export", "script")


def capture(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    mode: str = "export",
) -> ExportedProgram:
    """Captures `model` on example arguments as a functional program in torch's core ops.

    Args:
        model: nn.Module, torch.jit.ScriptModule, ExportedProgram, or the path of a `.pt2` archive.
        args, kwargs: example arguments; for an ExportedProgram they may be None.
        dynamic_shapes: as torch.export takes it.
        mode: `export`, or `script` to go through TorchScript, which captures Python control flow on tensors.

    Raises:
        CaptureError: torch cannot capture the model; says why and where in the model's source.
    """
    if mode not in CAPTURE_MODES:
        raise OptionError(f"capture={mode!r}: expected one of {', '.join(CAPTURE_MODES)}")
    if args is not None and not isinstance(args, tuple):
        raise PipelineError(f"args: expected a tuple of example arguments, got {type(args).__name__}")
    with torch.no_grad():
        exported = _export(model, args, dict(kwargs or {}), dynamic_shapes, mode)
        try:
            return _remove_effect_tokens(exported.run_decompositions(decomposition_table()))
        except Exception as error:  # torch raises many types here
            raise CaptureError(f"torch could not functionalize the model: {_explain(error)}") from error


def _export(model: Any, args: Any, kwargs: dict[str, Any], dynamic_shapes: Any, mode: str) -> ExportedProgram:
    if isinstance(model, (str, Path)):
        model = _load_archive(Path(model))
    if isinstance(model, ExportedProgram):
        if dynamic_shapes is not None:
            raise OptionError("dynamic_shapes: an ExportedProgram has its own; give them to torch.export.export")
        return model
    if args is None:
        raise PipelineError("args: example arguments are needed to capture a module")
    if isinstance(model, torch.jit.ScriptModule):
        return _export_script(model, args, kwargs, dynamic_shapes)
    if not isinstance(model, torch.nn.Module):
        kinds = "an nn.Module, ScriptModule, ExportedProgram, .pt2 path or MLIR"
        raise PipelineError(f"model: expected {kinds}, got {type(model).__name__}")
    if mode == "script":
        return _export_script(_script(model), args, kwargs, dynamic_shapes)
    try:
        return _without_guards(torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False))
    except Exception as error:  # torch.export raises many types
        raise CaptureError(f"torch.export could not capture {type(model).__name__}: {_explain(error)}") from error


def _without_guards(exported: ExportedProgram) -> ExportedProgram:
    """Takes out torch's check of the arguments' sizes: ours is the runtime's, and torch's fails on None."""
    for node in list(exported.graph.nodes):
        if node.op == "call_module" and node.target == "_guards_fn":
            exported.graph.erase_node(node)
    return exported


def _load_archive(path: Path) -> ExportedProgram:
    try:
        return torch.export.load(path)
    except Exception as error:  # torch.export.load raises many types
        raise CaptureError(f"{path}: not a .pt2 archive that torch can load: {_first_line(error)}") from error


def _script(model: torch.nn.Module) -> torch.jit.ScriptModule:
    try:
        return torch.jit.script(model)
    except Exception as error:  # torch.jit raises many types
        raise CaptureError(f"torch.jit could not script {type(model).__name__}: {_explain(error)}") from error


def _export_script(
    model: torch.jit.ScriptModule, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> ExportedProgram:
    from torch._export.converter import TS2EPConverter

    if dynamic_shapes is not None:
        raise OptionError("dynamic_shapes: not for TorchScript models; export the nn.Module instead")
    try:
        return TS2EPConverter(model, args, kwargs).convert()
    except Exception as error:  # the converter raises many types
        raise CaptureError(f"torch could not convert the ScriptModule: {_explain(error)}") from error


_DATA_DEPENDENT = ("data-dependent", "DataDependent", "dynamic control flow", "GuardOnDataDependent")


def _explain(error: BaseException) -> str:
    """The first line of torch's message, the last line of the user's source in it, and what to do."""
    message = str(error)
    text = _first_line(error)
    source = re.findall(r'File "([^"]+)", line (\d+)', message)
    own = [(file, line) for file, line in source if "/torch/" not in file and not file.startswith("<")]
    if own:
        text += f" (at {own[-1][0]}:{own[-1][1]})"
    if any(word in message or word in type(error).__name__ for word in _DATA_DEPENDENT):
        text += (
            ". The model branches on the values of a tensor: write the branch with torch.cond or torch.while_loop, "
            'or compile with capture="script"'
        )
    return text


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def parameter_names(model: Any) -> tuple[str, ...]:
    """The names of the positional parameters of a module's forward method, as far as they can be known."""
    forward = getattr(model, "forward", None)
    if not isinstance(model, torch.nn.Module) or isinstance(model, torch.jit.ScriptModule) or forward is None:
        return ()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in inspect.signature(forward).parameters.values() if p.kind in positional)
