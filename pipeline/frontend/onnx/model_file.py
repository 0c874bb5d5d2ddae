"""Reads ONNX files: the graph, its external data, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.errors import CaptureError, PipelineError

#: What to do where the package is missing.
_NEEDED = "pip install onnx"


def read_model(path: Path) -> Any:
    """The ModelProto that a file holds, with its external data.

    Raises:
        PipelineError: the package `onnx` is missing, or the file is.
        CaptureError: the file is no ONNX model, or its external data are not beside it.
    """
    onnx = onnx_package(str(path))
    if not path.is_file():
        raise PipelineError(f"{path}: no such file")
    try:
        model = onnx.load(str(path))
    except FileNotFoundError as error:
        raise CaptureError(f"{path}: its external data are not there: {error}; keep them beside the model") from None
    except Exception as error:  # protobuf and onnx raise many types
        raise CaptureError(f"{path}: not an ONNX model, or its external data are damaged: {_line(error)}") from None
    return checked(model, str(path))


def model_of_bytes(data: bytes) -> Any:
    """Likewise, of a serialized model with all of its data."""
    onnx = onnx_package("the model")
    try:
        model = onnx.load_from_string(data)
    except Exception as error:  # protobuf raises many types
        raise CaptureError(f"the bytes are no ONNX model: {_line(error)}") from None
    return checked(model, "the model")


def checked(model: Any, name: str) -> Any:
    """The model; raises `CaptureError` if it has no graph, or no version of the ops."""
    if not model.graph.output or not (model.opset_import or model.ir_version < 3):
        raise CaptureError(f"{name}: not an ONNX model: it has no graph with results, or no versions of its ops")
    return model


def onnx_package(what: str) -> Any:
    """The package that reads ONNX; raises `PipelineError` where it is not installed."""
    try:
        import onnx
    except ImportError:
        raise PipelineError(f"{what}: ONNX is read with the package onnx, which is not installed: {_NEEDED}") from None
    return onnx


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
