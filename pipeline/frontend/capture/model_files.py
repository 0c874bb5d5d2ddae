"""The files that a model may be: what lies in them, and what to do about those that are none."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import torch

from pipeline.errors import CaptureError, PipelineError
from pipeline.frontend.capture.capture_errors import first_line
from pipeline.frontend.capture.file_kinds import EXPORTED, NO_PROGRAM, ONNX, TORCH_FILES

_EXPECTED = "expected a .pt2 archive, a TorchScript archive (.pt, .pth, .jit), an .onnx or an .mlir file"


def load_file(path: Path) -> Any:
    """The ExportedProgram or ScriptModule that a file holds; of an ONNX file a module that runs its graph.

    Raises:
        PipelineError: the file is not there, or holds no program; says what to do.
        CaptureError: torch cannot load it.
    """
    if path.suffix in NO_PROGRAM:
        raise PipelineError(f"{path}: {NO_PROGRAM[path.suffix]}")
    if path.is_dir():
        raise PipelineError(f"{path}: is a folder; {_EXPECTED}")
    if not path.is_file():
        raise PipelineError(f"{path}: no such file")
    if path.suffix == EXPORTED:
        return _load(path, torch.export.load, ".pt2 archive")
    if path.suffix == ONNX:
        return onnx_module(path)
    if path.suffix not in TORCH_FILES:
        raise PipelineError(f"{path}: {_EXPECTED}")
    if not _is_script(path):
        raise PipelineError(
            f"{path}: it is no TorchScript archive, torch.save wrote it: it holds weights or a pickled module; build "
            "or torch.load the module, load its weights, and compile that"
        )
    return _load(path, torch.jit.load, "TorchScript archive")


def onnx_module(model: Any) -> Any:
    """The module of an ONNX model: of a file's path, a ModelProto, or the bytes of one."""
    from pipeline.frontend.onnx.model_file import checked, model_of_bytes, onnx_package, read_model

    onnx_package(str(model) if isinstance(model, Path) else "the model")
    from pipeline.frontend.onnx.module import OnnxModule  # loads the package onnx

    if isinstance(model, Path):
        return OnnxModule(read_model(model))
    return OnnxModule(model_of_bytes(model) if isinstance(model, bytes) else checked(model, "the model"))


def is_onnx(model: Any) -> bool:
    """Whether a model is ONNX's ModelProto, or bytes, of which an ONNX file consists."""
    return isinstance(model, bytes) or (type(model).__name__ == "ModelProto" and hasattr(model, "opset_import"))


def _is_script(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def _load(path: Path, load: Any, kind: str) -> Any:
    try:
        return load(str(path))
    except Exception as error:  # torch raises many types here
        raise CaptureError(f"{path}: not a {kind} that torch can load: {first_line(error)}") from error
