"""Artifacts: an executable as one file.

An artifact is a safetensors file: any tool that reads those can look at the weights (`weights/<name>`). The machine
code is a tensor of bytes (`code/0`), a shared object; version, signature and entry points are JSON in the
file's metadata, under one key, so that equal executables make equal files. A checksum of each tensor is there, too.
Complex weights are stored as pairs of real numbers, [.., 2], since readers of safetensors need not know them. To read
and run one takes NumPy alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.errors import ArtifactError
from pipeline.runtime.call.array_libraries import as_numpy, as_pairs, from_pairs, numpy_library, torch_library
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.interface.atomic_files import replacing
from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.signature import Signature
from pipeline.runtime.mapped_file import MappedFile, checksum
from pipeline.runtime.native.cpu_features import host_features
from pipeline.runtime.safetensors_file import chunks
from pipeline.runtime.weights.weight_source import FixedWeights

if TYPE_CHECKING:
    from pipeline.runtime.executable import Executable

#: Goes up with every change of the format or of how code is called; an artifact of another version is refused.
VERSION = 7

_KEY = "pipeline artifact"
_WEIGHT = "weights/"
_CODE = "code/"


def save(path: Path, code: Any, signature: Signature, weights: Mapping[str, Any], name: str) -> None:
    """Writes an artifact, whole or not at all; raises `ArtifactError` if the file can't be written.

    Args:
        name: what the model is called, for people.
    """
    tensors, metadata = _contents(code, signature, weights, name)
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:
            file.writelines(chunks(tensors, metadata))
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be written: {error}") from error


def to_bytes(code: Any, signature: Signature, weights: Mapping[str, Any], name: str) -> bytes:
    """What `save` writes."""
    return b"".join(chunks(*_contents(code, signature, weights, name)))


def from_bytes(data: bytes, library: str, num_threads: int | None) -> Executable:
    """The executable that `to_bytes` was given, whose weights are its own.

    Args:
        library: `torch` or `numpy`: what results are made with where no argument is a tensor; NumPy where there is no
            torch.
        num_threads: see `Executable.num_threads`.
    """
    memory = os.memfd_create("pipeline artifact")
    try:
        with open(memory, "wb", closefd=False) as file:
            file.write(data)
        has_torch = library == "torch" and importlib.util.find_spec("torch") is not None
        executable = load(f"/proc/self/fd/{memory}", torch_library() if has_torch else numpy_library())
    finally:
        os.close(memory)
    executable.num_threads = num_threads
    return executable


def _contents(
    code: Any, signature: Signature, weights: Mapping[str, Any], name: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """The tensors and the metadata of an artifact."""
    arrays = {key: as_numpy(weight) for key, weight in weights.items()}
    tensors = {_WEIGHT + key: as_pairs(array) for key, array in arrays.items()}
    tensors |= {
        f"{_CODE}{number}": np.frombuffer(object_file, np.uint8) for number, object_file in enumerate(code.objects)
    }
    sums = {key: checksum(array) for key, array in sorted(arrays.items())}
    manifest = {"name": name, "code": code.to_json(), "signature": signature.to_json(), "weights": sums}
    header = {"version": VERSION, "sha256": _digest(manifest, code.objects), "manifest": manifest}
    return tensors, {_KEY: json.dumps(header)}


def _digest(manifest: Mapping[str, Any], objects: tuple[bytes, ...]) -> str:
    """Of what would crash the process if it were damaged."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode() + b"".join(objects)).hexdigest()


def load(path: str | Path, library: ArrayLibrary | None = None) -> Executable:
    """Reads an artifact; `library` is what results are made with where no argument is a tensor, NumPy by default.

    Raises `ArtifactError` if it is none, is damaged, or is for another version or CPU.

    Weights stay in the file, of which memory has what is read. So replace a file that is in use, as `save` does, and do
    not write to it.
    """
    from pipeline.runtime.loading import code_from_json, make_executable

    path = Path(path)
    try:
        mapped = MappedFile(path)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error}") from error
    except ValueError as error:
        raise ArtifactError(f"{path}: no artifact, or cut short: {error}") from error
    header = _header(path, mapped.metadata)
    try:
        manifest = header["manifest"]
        count = manifest["code"]["objects"]
        objects = tuple(mapped.tensors[f"{_CODE}{number}"].tobytes() for number in range(count))
        if _digest(manifest, objects) != header["sha256"]:
            raise ArtifactError(f"{path}: the code in it is damaged")
        code = code_from_json(manifest["code"], objects)
        signature = Signature.from_json(manifest["signature"])
    except (KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: its manifest is damaged: {error!r}") from error
    if isinstance(code, Code):
        _check_cpu(path, code)
    weights = {
        name.removeprefix(_WEIGHT): tensor for name, tensor in mapped.tensors.items() if name.startswith(_WEIGHT)
    }
    missing = [weight.name for weight in signature.weights if weight.name not in weights]
    if missing:
        raise ArtifactError(f"{path}: the weights {', '.join(missing)} are missing")
    types = {weight.name: weight.type.dtype for weight in signature.weights}
    weights = {name: from_pairs(tensor, types.get(name)) for name, tensor in weights.items()}
    damaged = [name for name, tensor in weights.items() if checksum(tensor) != manifest["weights"].get(name)]
    if damaged:
        raise ArtifactError(f"{path}: the weights {', '.join(damaged)} are damaged")
    executable = make_executable(
        code,
        signature,
        FixedWeights(weights),
        library,
        release=lambda names: mapped.release(_WEIGHT + name for name in names),
    )
    executable.name = manifest.get("name", path.stem)  # artifacts made before it was kept lack it
    return executable


def _header(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The JSON in the file's metadata; raises `ArtifactError` if there is none of this version."""
    if _KEY not in metadata:
        raise ArtifactError(f"{path}: a safetensors file, but no artifact; pipeline.compile(...).save() makes those")
    try:
        header = json.loads(metadata[_KEY])
    except (ValueError, TypeError) as error:
        raise ArtifactError(f"{path}: its header is damaged: {error}") from error
    if not isinstance(header, dict):
        raise ArtifactError(f"{path}: its header is damaged: it is no table")
    if header.get("version") != VERSION:
        raise ArtifactError(
            f"{path}: has version {header.get('version')}, this pipeline reads version {VERSION}; compile it again"
        )
    return header


def _check_cpu(path: Path, code: Code) -> None:
    if code.machine != platform.machine():
        raise ArtifactError(f"{path}: is for {code.machine} machines, this one is {platform.machine()}")
    missing = sorted(set(code.required) - host_features())
    if missing:
        raise ArtifactError(f"{path}: is for the CPU {code.cpu}; this one lacks {', '.join(missing)}")
