"""The artifact's way to other machines: from a model, an executable or a file to bytes that all of them can load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.errors import ArtifactError
from pipeline.frontend.capture.file_kinds import EXPORTED, MLIR_FILES, ONNX, TORCH_FILES
from pipeline.runtime.artifact import to_bytes
from pipeline.runtime.executable import Executable
from pipeline.url_files import open_folder

#: What is compiled: files with these endings.
_MODELS = (*TORCH_FILES, EXPORTED, ONNX, *MLIR_FILES)


def is_artifact(model: Any) -> bool:
    """Whether it is an artifact, the path or URL of one, or an executable, and no model that is to be compiled."""
    if isinstance(model, Executable | bytes | bytearray | memoryview):
        return True
    return isinstance(model, str | Path) and not str(model).endswith(_MODELS)


def artifact_bytes(artifact: Any) -> bytes:
    """The bytes of what `is_artifact`; an executable's have what it prepared, so that who loads them prepares nothing.

    Raises:
        ArtifactError: the file cannot be read.
        PipelineError: the executable cannot be saved.
    """
    if isinstance(artifact, Executable):
        return to_bytes(*artifact.contents(prepacked=True), artifact.name)
    if isinstance(artifact, str | Path):
        return read(str(artifact))
    return bytes(artifact)


def read(url: str) -> bytes:
    """A file, by its path or URL; raises `ArtifactError` if it cannot be read."""
    folder, _, name = url.rpartition("/")
    try:
        return open_folder(folder or ".").read(name)
    except Exception as error:  # every file system of fsspec's has errors of its own
        raise ArtifactError(f"{url}: cannot be read: {error}") from error


def write(url: str, data: bytes) -> None:
    """Writes a file, by its path or URL; raises `ArtifactError` if it cannot be written."""
    folder, _, name = url.rpartition("/")
    try:
        open_folder(folder or ".").write(name, data)
    except Exception as error:  # likewise
        raise ArtifactError(f"{url}: cannot be written: {error}") from error
