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
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from pipeline.errors import ArtifactError
from pipeline.runtime.call.array_libraries import as_numpy, as_pairs, from_pairs, numpy_library, torch_library
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.interface.atomic_files import replacing
from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.signature import Signature
from pipeline.runtime.mapped_file import FileInMemory, MappedFile, TensorFile, checksum
from pipeline.runtime.native.cpu_features import why_foreign
from pipeline.runtime.safetensors_file import chunks
from pipeline.runtime.weights.weight_source import FixedWeights, WeightSource

if TYPE_CHECKING:
    from pipeline.runtime.device.device_code import DeviceCode
    from pipeline.runtime.executable import Executable

#: Goes up with every change of the format or of how code is called; an artifact of another version is refused.
VERSION = 7

#: What begins the name of a weight.
WEIGHT = "weights/"

#: The key of the metadata of files with several entries, see `pipeline.runtime.bundle`.
BUNDLE_KEY = "pipeline bundle"

_KEY = "pipeline artifact"
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
    has_torch = library == "torch" and importlib.util.find_spec("torch") is not None
    with _file_without_a_name() as file:
        file.write(data)
        file.flush()
        executable = load(f"/proc/self/fd/{file.fileno()}", torch_library() if has_torch else numpy_library())
    executable.num_threads = num_threads
    return executable


def _file_without_a_name() -> IO[bytes]:
    """A file in memory; on the disk where Python was built for systems that have none in memory."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("pipeline artifact"), "wb")
    return cast(IO[bytes], tempfile.TemporaryFile())


def _contents(
    code: Any, signature: Signature, weights: Mapping[str, Any], name: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """The tensors and the metadata of an artifact."""
    tensors, sums = weight_tensors(weights)
    tensors |= code_tensors(_CODE, code)
    manifest = {"name": name, "code": code.to_json(), "signature": signature.to_json(), "weights": sums}
    return tensors, {_KEY: header_of(manifest, code.objects)}


def weight_tensors(weights: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Weights as tensors of a file, and the checksums that its manifest has of them."""
    arrays = {key: as_numpy(weight) for key, weight in weights.items()}
    tensors = {WEIGHT + key: as_pairs(array) for key, array in arrays.items()}
    return tensors, {key: checksum(array) for key, array in sorted(arrays.items())}


def code_tensors(prefix: str, code: Any) -> dict[str, Any]:
    """Object files as tensors of a file, whose names begin with `prefix`."""
    objects = enumerate(code.objects)
    return {f"{prefix}{number}": np.frombuffer(object_file, np.uint8) for number, object_file in objects}


def header_of(manifest: Mapping[str, Any], objects: tuple[bytes, ...]) -> str:
    """What the metadata of a file says: the manifest, and a digest of all that would crash the process if damaged."""
    return json.dumps({"version": VERSION, "sha256": _digest(manifest, objects), "manifest": manifest})


def _digest(manifest: Mapping[str, Any], objects: tuple[bytes, ...]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode() + b"".join(objects)).hexdigest()


def load(path: str | Path, library: ArrayLibrary | None = None) -> Executable:
    """Reads an artifact; `library` is what results are made with where no argument is a tensor, NumPy by default.

    Raises `ArtifactError` if it is none, is damaged, or is for another version or CPU.

    Weights stay in the file, of which memory has what is read. So replace a file that is in use, as `save` does, and do
    not write to it.
    """
    path = Path(path)
    return _executable(path, *open_file(path, _KEY), library)


def load_from_memory(data: Any, name: str = "the artifact") -> Executable:
    """The executable of an artifact that lies in memory, in what has a buffer that nobody writes to.

    Weights stay where they are, but for those that the model writes to; `name` is what messages call it. Raises
    `ArtifactError` as `load` does.
    """
    return _executable(Path(name), *_open_memory(data, Path(name)), None)


def signature_of(data: Any, name: str = "the artifact") -> Signature:
    """What the model of an artifact in memory takes and returns, whatever its CPU; raises `ArtifactError` likewise."""
    header, _ = _open_memory(data, Path(name))
    return _signature(Path(name), header["manifest"])


def _open_memory(data: Any, path: Path) -> tuple[dict[str, Any], FileInMemory]:
    try:
        held = FileInMemory(data)
    except ValueError as error:
        raise ArtifactError(f"{path}: no artifact, or cut short: {error}") from error
    return _header(path, held.metadata, _KEY), held


def _executable(path: Path, header: dict[str, Any], file: TensorFile, library: ArrayLibrary | None) -> Executable:
    manifest = header["manifest"]
    objects = read_objects(path, file, manifest, _CODE)
    check_digest(path, header, objects)
    code, signature = code_of(path, manifest, objects)
    weights = read_weights(path, file, [signature], manifest["weights"])
    executable = executable_of(code, signature, FixedWeights(weights), file, library)
    executable.name = manifest.get("name", path.stem)  # artifacts made before it was kept lack it
    return executable


def open_file(path: Path, key: str) -> tuple[dict[str, Any], MappedFile]:
    """The header that a file has under a key of its metadata, and its tensors.

    Raises:
        ArtifactError: it cannot be read, or is of another kind or version.
    """
    try:
        mapped = MappedFile(path)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error}") from error
    except ValueError as error:
        raise ArtifactError(f"{path}: no artifact, or cut short: {error}") from error
    return _header(path, mapped.metadata, key), mapped


def read_objects(path: Path, file: TensorFile, manifest: Mapping[str, Any], prefix: str) -> tuple[bytes, ...]:
    """The object files that a manifest counts; `prefix` is that of `code_tensors`."""
    try:
        return tuple(file.tensors[f"{prefix}{number}"].tobytes() for number in range(manifest["code"]["objects"]))
    except (KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: its manifest is damaged: {error!r}") from error


def code_of(path: Path, manifest: Mapping[str, Any], objects: tuple[bytes, ...]) -> tuple[Code | DeviceCode, Signature]:
    """Code and signature as a manifest describes them; raises `ArtifactError` where this CPU cannot run the code."""
    from pipeline.runtime.loading import code_from_json

    try:
        code = code_from_json(manifest["code"], objects)
    except (KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: its manifest is damaged: {error!r}") from error
    signature = _signature(path, manifest)
    if isinstance(code, Code):
        _check_cpu(path, code)
    return code, signature


def _signature(path: Path, manifest: Mapping[str, Any]) -> Signature:
    try:
        return Signature.from_json(manifest["signature"])
    except (KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: its manifest is damaged: {error!r}") from error


def check_digest(path: Path, header: Mapping[str, Any], objects: tuple[bytes, ...]) -> None:
    """Raises `ArtifactError` if the code, or what is said about it, is not what was written."""
    if _digest(header["manifest"], objects) != header["sha256"]:
        raise ArtifactError(f"{path}: the code in it is damaged")


def read_weights(
    path: Path, file: TensorFile, signatures: Sequence[Signature], sums: Mapping[str, str]
) -> dict[str, Any]:
    """The weights in a file, which has all that `sums` names, their checksums."""
    weights = {name.removeprefix(WEIGHT): tensor for name, tensor in file.tensors.items() if name.startswith(WEIGHT)}
    missing = [name for name in sums if name not in weights]
    if missing:
        raise ArtifactError(f"{path}: the weights {', '.join(missing)} are missing")
    declared = [weight for signature in signatures for weight in signature.weights]
    types = {weight.name: weight.type.dtype for weight in declared}
    weights = {name: from_pairs(tensor, types.get(name)) for name, tensor in weights.items()}
    damaged = [name for name, tensor in weights.items() if checksum(tensor) != sums.get(name)]
    if damaged:
        raise ArtifactError(f"{path}: the weights {', '.join(damaged)} are damaged")
    for name in {weight.name for weight in declared if weight.mutated} & weights.keys():
        weights[name] = np.require(weights[name], requirements="W")  # a copy of what others share
    return weights


def executable_of(
    code: Code | DeviceCode,
    signature: Signature,
    weights: WeightSource,
    file: TensorFile,
    library: ArrayLibrary | None,
) -> Executable:
    """An executable of what was read."""
    from pipeline.runtime.loading import make_executable

    return make_executable(
        code,
        signature,
        weights,
        library,
        release=lambda names: file.release(WEIGHT + name for name in names),
    )


def _header(path: Path, metadata: Mapping[str, str], key: str) -> dict[str, Any]:
    """The JSON in the file's metadata; raises `ArtifactError` if there is none of this kind and version."""
    if key not in metadata:
        raise ArtifactError(f"{path}: {_instead(metadata)}")
    try:
        header = json.loads(metadata[key])
    except (ValueError, TypeError) as error:
        raise ArtifactError(f"{path}: its header is damaged: {error}") from error
    if not isinstance(header, dict):
        raise ArtifactError(f"{path}: its header is damaged: it is no table")
    if header.get("version") != VERSION:
        raise ArtifactError(
            f"{path}: has version {header.get('version')}, this pipeline reads version {VERSION}; compile it again"
        )
    if not isinstance(header.get("manifest"), dict) or "sha256" not in header:
        raise ArtifactError(f"{path}: its manifest is damaged: there is none")
    return header


def _instead(metadata: Mapping[str, str]) -> str:
    """What a file is that is not what was wanted."""
    if BUNDLE_KEY in metadata:
        return "has several entries; pipeline.Bundle.load reads it, and pipeline.generation.load a language model"
    if _KEY in metadata:
        return "has one entry and no name for it; pipeline.load reads it"
    return "a safetensors file, but no artifact; pipeline.compile(...).save() makes those"


def _check_cpu(path: Path, code: Code) -> None:
    reason = why_foreign(code.machine, code.cpu, code.required)
    if reason is not None:
        raise ArtifactError(f"{path}: {reason}")
