"""Where the pieces of NVIDIA's toolkit are: ptxas, libdevice. Both are optional."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


@functools.cache
def ptxas() -> str | None:
    """The assembler: of CUDA_HOME, of the pip package nvidia-cuda-nvcc, or the one on the PATH; None without."""
    for root in _roots():
        found = root / "bin" / "ptxas"
        if found.is_file() and os.access(found, os.X_OK):
            return str(found)
    return shutil.which("ptxas")


@functools.cache
def libdevice() -> Path | None:
    """NVIDIA's mathematical functions as bitcode: of CUDA_HOME, or of the pip package nvidia-nvvm; None without."""
    for root in _roots():
        for found in root.glob("nvvm/libdevice/libdevice*.bc"):
            return found
    return None


def _roots() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        yield from sorted(Path(place).glob("cu*"), reverse=True)
        yield from (Path(place) / "cuda_nvcc", Path(place) / "nvvm")
    yield Path("/usr/local/cuda")
    yield from sorted(Path("/usr/local").glob("cuda-*"), reverse=True)
