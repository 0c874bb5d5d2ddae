"""Artifacts: an executable as one file.

An artifact is a safetensors file: any tool that reads those can look at the weights (`weights/<name>`). The machine
code is a tensor of bytes (`code`); signature, entry points and version are JSON in the file's metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from pipeline.errors import ArtifactError
from pipeline.runtime.arrays import as_numpy
from pipeline.runtime.code import Code
from pipeline.runtime.files import replacing
from pipeline.runtime.native import host_features
from pipeline.runtime.signature import Signature

if TYPE_CHECKING:
    from pipeline.runtime.executable import Executable

#: Goes up with every change of the format or of how code is called; an artifact of another version is refused.
VERSION = 1

_FORMAT = "pipeline artifact"
_WEIGHT = "weights/"


def save(path: Path, code: Code, signature: Signature, weights: Mapping[str, Any]) -> None:
    """Writes an artifact, whole or not at all; raises `ArtifactError` if the file can't be written."""
    tensors = {_WEIGHT + name: as_numpy(weight) for name, weight in weights.items()}
    tensors["code"] = np.frombuffer(code.object_file, np.uint8)
    manifest = {"code": code.to_json(), "signature": signature.to_json()}
    metadata = {
        "format": _FORMAT,
        "version": str(VERSION),
        "manifest": json.dumps(manifest),
        "sha256": hashlib.sha256(code.object_file).hexdigest(),
    }
    try:
        with replacing(path) as temporary:
            save_file(tensors, temporary, metadata)
    except (OSError, SafetensorError) as error:
        raise ArtifactError(f"{path}: cannot be written: {error}") from error


def load(path: str | Path) -> Executable:
    """Reads an artifact; raises `ArtifactError` if it is none, is damaged, or is for another version or CPU."""
    from pipeline.runtime.executable import Executable

    path = Path(path)
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            _check_format(path, metadata)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error}") from error
    except SafetensorError as error:
        raise ArtifactError(f"{path}: no artifact, or cut short: {error}") from error
    object_file = tensors.pop("code", np.empty(0, np.uint8)).tobytes()
    if hashlib.sha256(object_file).hexdigest() != metadata.get("sha256"):
        raise ArtifactError(f"{path}: the code in it is damaged")
    try:
        manifest = json.loads(metadata["manifest"])
        code = Code.from_json(manifest["code"], object_file)
        signature = Signature.from_json(manifest["signature"])
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{path}: its manifest is damaged: {error!r}") from error
    _check_cpu(path, code)
    weights = {name.removeprefix(_WEIGHT): tensor for name, tensor in tensors.items()}
    missing = [weight.name for weight in signature.weights if weight.name not in weights]
    if missing:
        raise ArtifactError(f"{path}: the weights {', '.join(missing)} are missing")
    return Executable(code, signature, weights)


def _check_format(path: Path, metadata: Mapping[str, str]) -> None:
    if metadata.get("format") != _FORMAT:
        raise ArtifactError(f"{path}: a safetensors file, but no artifact; pipeline.compile(...).save() makes those")
    if metadata.get("version") != str(VERSION):
        raise ArtifactError(
            f"{path}: has version {metadata.get('version')}, this pipeline reads version {VERSION}; compile it again"
        )


def _check_cpu(path: Path, code: Code) -> None:
    missing = sorted(set(code.required) - host_features())
    if missing:
        raise ArtifactError(f"{path}: is for the CPU {code.cpu}; this one lacks {', '.join(missing)}")
