"""What a compilation leaves in the disk cache, and the key under which the next one finds it.

The key is a digest of all that the outcome depends on: the captured graph or MLIR text, the options, the CPU, the
versions of what compiles and pipeline's own source. Weights are no part of it, nor of an entry: code takes them as
arguments. Compilations with passes of a user's, with plugins, or with fusion rules or fusions made in Python are not
cached: nobody knows what those depend on.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline import logs
from pipeline.disk_cache import KERNEL_PREFIX, DiskCache
from pipeline.fusion_rules.rules import FusionRules
from pipeline.options import Options
from pipeline.plugins import plugins
from pipeline.remarks import Remark, Subject
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.interface.code import CallSite, Code, Origin
from pipeline.runtime.interface.signature import Signature
from pipeline.runtime.loading import code_from_json
from pipeline.shared_cache import TwoLevels, open_caches

_COMPILERS = ("torch", "torch-mlir", "llvmlite", "numpy")


@dataclass(frozen=True)
class Outcome:
    """What a compilation makes of a model, apart from its weights.

    Attributes:
        stages: the text of every stage, in order.
        weights_library: what results are made with where no argument is a tensor.
        passes: see `Executable.passes`.
    """

    code: Code | DeviceCode
    signature: Signature
    weights_library: str
    remarks: tuple[Remark, ...]
    stages: Mapping[str, str]
    passes: str

    def to_bytes(self) -> bytes:
        """The outcome as bytes."""
        head = {
            "code": self.code.to_json(),
            "signature": self.signature.to_json(),
            "weights_library": self.weights_library,
            "remarks": [asdict(remark) for remark in self.remarks],
            "stages": dict(self.stages),
            "passes": self.passes,
            "places": [[place.ops for place in kernel.places] for kernel in self.code.kernels],
            "objects": [len(object_file) for object_file in self.code.objects],
        }
        text = zlib.compress(json.dumps(head).encode(), 1)
        return len(text).to_bytes(8, "little") + text + b"".join(self.code.objects)

    @staticmethod
    def from_bytes(data: bytes) -> Outcome:
        """The inverse of `to_bytes`."""
        start = 8 + int.from_bytes(data[:8], "little")
        head = json.loads(zlib.decompress(data[8:start]))
        objects = []
        for length in head["objects"]:
            objects.append(data[start : start + length])
            start += length
        code = code_from_json(head["code"], tuple(objects))
        kernels = zip(code.kernels, head["places"], strict=True)
        return Outcome(
            replace(code, kernels=tuple(replace(kernel, places=_places(places)) for kernel, places in kernels)),
            Signature.from_json(head["signature"]),
            head["weights_library"],
            tuple(map(_remark, head["remarks"])),
            head["stages"],
            head["passes"],
        )


def _places(data: list[Any]) -> tuple[CallSite, ...]:
    return tuple(CallSite(tuple(Origin(*origin) for origin in ops)) for ops in data)


def _remark(data: dict[str, Any]) -> Remark:
    edge = data["edge"]
    return Remark(**{**data, "edge": None if edge is None else (_subject(edge[0]), _subject(edge[1]))})


def _subject(data: dict[str, Any]) -> Subject:
    return Subject(**{**data, "names": tuple(data["names"]), "nodes": tuple(data["nodes"])})


@dataclass(frozen=True)
class KernelCache:
    """The code of kernels in the disk cache, for this version of what compiles them.

    Attributes:
        new: the entries that a compilation brings, which are written when it is done.
    """

    disk: DiskCache
    new: dict[str, bytes] = field(default_factory=dict)

    def get(self, key: str) -> bytes | None:
        """See `targets.KernelStore`."""
        return self.disk.get(_name_of_kernel(key))

    def put_all(self, entries: Mapping[str, bytes]) -> None:
        """See `targets.KernelStore`."""
        self.new.update({_name_of_kernel(key): code for key, code in entries.items()})


def kernels_of(caches: TwoLevels | None) -> KernelCache | None:
    """Where the code of kernels is kept; None where it is not.

    It stays on this machine: the code of a model comes from elsewhere in one piece.
    """
    return KernelCache(caches.disk) if caches is not None and caches.disk.limit else None


def _name_of_kernel(key: str) -> str:
    return KERNEL_PREFIX + hashlib.sha256(json.dumps([key, _versions(), _own_digest()]).encode()).hexdigest()


def cache_for(options: Options) -> TwoLevels | None:
    """The caches that a compilation with these options uses; None if it uses none."""
    theirs = options.passes or options.fusions or plugins() or isinstance(options.fusion_rules, FusionRules)
    cache = open_caches() if options.cache else None
    obstacles = {
        "cache=False": cache is None,
        "passes, fusions or rules of the user's": theirs,
        "check=True": options.check,
        "its size is 0, and it has no URL": cache is not None and cache.is_off,
    }
    why = next((obstacle for obstacle, is_there in obstacles.items() if is_there), None)
    if why is None:
        return cache
    logs.log("cache").debug("not asked: %s", why)
    return None


def key_of(source: str, options: Options, how: list[str]) -> str:
    """The name of the entry for what `source` describes.

    Args:
        source: a fingerprint, see `pipeline.program.ProgramSource`.
        options: where they say by themselves what is meant.
        how: what the rest of the options comes to: the target, the fusion rules.
    """
    chosen = [sorted(options.disable), options.tune is not None, options.random]
    known = json.dumps([source, chosen, how, _versions(), _own_digest()], sort_keys=True)
    return hashlib.sha256(known.encode()).hexdigest()


@functools.cache
def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in _COMPILERS}


@functools.cache
def _own_digest() -> str:
    """Of pipeline's own source: while it is being worked on, its version says too little."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for file in sorted([*folder.rglob("*.py"), *folder.rglob("*.yaml")]):
        digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()
