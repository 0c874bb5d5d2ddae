"""Several executables that share weights and buffers, as one file; and files of others that belong to them.

A bundle is a safetensors file like an artifact: a weight of several entries is in it once (`weights/<name>`), and is
one array for all of them when it is loaded; so is what several entries prepare of weights. The code of an entry is
`code/<entry>/0` and so on, a file `files/<name>`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import ArtifactError, PipelineError
from pipeline.runtime.artifact import (
    BUNDLE_KEY,
    check_digest,
    code_of,
    code_tensors,
    executable_of,
    header_of,
    open_file,
    read_objects,
    read_weights,
    weight_tensors,
)
from pipeline.runtime.call.array_libraries import dtype_and_shape, numpy_library, pointer
from pipeline.runtime.call.numpy_arrays import NumpyArrays
from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.aligned_memory import Arena
from pipeline.runtime.interface.atomic_files import replacing
from pipeline.runtime.mapped_file import MappedFile, checksum
from pipeline.runtime.prepacked import PREPARED
from pipeline.runtime.safetensors_file import chunks
from pipeline.runtime.weights.preparation import Preparation
from pipeline.runtime.weights.weight_source import FixedWeights

_FILE = "files/"


class Bundle:
    """Executables by name.

        pipeline.Bundle({"prefill": prefill, "decode": decode}).save("model.pipeline")
        entries = pipeline.Bundle.load("model.pipeline").entries

    Attributes:
        entries: the executables.
        files: what else is kept with them, by name: a tokenizer, a config.
        scratch: the names of the buffers of which files have the size alone: they are zeros in what is loaded.
    """

    def __init__(
        self, entries: Mapping[str, Executable], files: Mapping[str, bytes] | None = None, scratch: Iterable[str] = ()
    ):
        """Takes executables in which weights of one name are one tensor.

        Raises:
            PipelineError: two have different tensors of one name, a name is empty or has a slash, or scratch is no
                buffer; says which.
        """
        self.entries, self.files, self.scratch = dict(entries), dict(files or {}), tuple(scratch)
        for name in (*self.entries, *self.files):
            if not name or "/" in name:
                raise PipelineError(f"{name!r}: expected the name of an entry or of a file, without slashes")
        _joined({name: entry.weights for name, entry in self.entries.items()})
        unknown = sorted(set(self.scratch) - self.buffers.keys())
        if unknown:
            raise PipelineError(f"scratch: {unknown[0]!r} is no buffer that an entry writes to")

    @property
    def buffers(self) -> dict[str, Any]:
        """The tensors that entries write to, by name, as of `Executable.buffers`."""
        return {name: tensor for entry in self.entries.values() for name, tensor in entry.buffers.items()}

    def save(self, path: str | Path, *, prepacked: bool = False) -> None:
        """Writes all of it to one file, whole or not at all.

        Args:
            prepacked: writes what is prepared from weights, and not the weights that only that needs; see
                `Executable.save`.

        Raises:
            ArtifactError: the file cannot be written.
        """
        path = Path(path)
        contents = {name: entry.contents(prepacked=prepacked) for name, entry in self.entries.items()}
        parts = {name: (code, signature) for name, (code, signature, _) in contents.items()}
        weights = _joined({name: tensors for name, (_, _, tensors) in contents.items()})
        scratch = {name: dtype_and_shape(weights.pop(name)) for name in self.scratch}
        tensors, sums = weight_tensors(weights)
        manifests = {}
        for name, (code, signature) in parts.items():
            tensors |= code_tensors(_code(name), code)
            kind = self.entries[name].name
            manifests[name] = {"name": kind, "code": code.to_json(), "signature": signature.to_json()}
        tensors |= {_FILE + name: np.frombuffer(data, np.uint8) for name, data in self.files.items()}
        files = {name: checksum(np.frombuffer(data, np.uint8)) for name, data in sorted(self.files.items())}
        manifest = {"entries": manifests, "weights": sums, "scratch": scratch, "files": files}
        objects = tuple(data for code, _ in parts.values() for data in code.objects)
        try:
            with replacing(path) as temporary, temporary.open("wb") as file:
                file.writelines(chunks(tensors, {BUNDLE_KEY: header_of(manifest, objects)}))
        except OSError as error:
            raise ArtifactError(f"{path}: cannot be written: {error}") from error

    @staticmethod
    def load(path: str | Path) -> Bundle:
        """Reads what `save` has written; needs neither torch nor MLIR, and its entries take and give NumPy arrays.

        Raises:
            ArtifactError: the file is no bundle, is cut short, or is for another version or CPU.
        """
        path = Path(path)
        header, mapped = open_file(path, BUNDLE_KEY)
        manifest = header["manifest"]
        if not isinstance(manifest.get("entries"), dict):
            raise ArtifactError(f"{path}: its manifest is damaged: it has no entries")
        objects = {name: read_objects(path, mapped, of, _code(name)) for name, of in manifest["entries"].items()}
        check_digest(path, header, tuple(data for of_entry in objects.values() for data in of_entry))
        parts = {name: code_of(path, manifest["entries"][name], of_entry) for name, of_entry in objects.items()}
        signatures = [signature for _, signature in parts.values()]
        weights = read_weights(path, mapped, signatures, manifest["weights"])
        weights |= {name: _zeros(dtype, shape) for name, (dtype, shape) in manifest["scratch"].items()}
        entries, source = {}, FixedWeights(weights, Preparation())
        for name, (code, signature) in parts.items():
            entries[name] = executable_of(code, signature, source, mapped, None)
            entries[name].name = manifest["entries"][name]["name"]
        return Bundle(entries, _files(path, mapped, manifest["files"]), manifest["scratch"])


def _joined(weights: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The weights of all entries, each of which has some by name.

    Raises:
        PipelineError: two have different tensors of one name.
    """
    found: dict[str, Any] = {}
    for entry, tensors in weights.items():
        for name, tensor in tensors.items():
            same = name not in found or name.startswith(PREPARED) or pointer(found[name]) == pointer(tensor)
            if not same:
                raise PipelineError(f"entry {entry}: its weight {name} is another tensor than that of an earlier entry")
            found.setdefault(name, tensor)
    return found


def _code(entry: str) -> str:
    return f"code/{entry}/"


def _zeros(dtype: str, shape: Sequence[int]) -> np.ndarray:
    kind = NumpyArrays.dtypes[dtype]
    memory = Arena(math.prod(shape) * kind.itemsize)
    zeros = numpy_library().adopt(memory, memory.address, shape, dtype)
    zeros[...] = 0
    return zeros


def _files(path: Path, mapped: MappedFile, sums: Mapping[str, str]) -> dict[str, bytes]:
    files = {}
    for name, expected in sums.items():
        data = mapped.tensors.get(_FILE + name)
        if data is None or checksum(data) != expected:
            raise ArtifactError(f"{path}: the file {name} in it is damaged")
        files[name] = data.tobytes()
    return files
