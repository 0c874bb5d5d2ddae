"""What `--version` prints: the version of pipeline and of what it is built on. Imports neither torch nor MLIR."""

from __future__ import annotations

import argparse
import importlib.util
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pipeline

#: Where torch-mlir's wheel has a program that knows the version of its LLVM.
_OPT = Path("_mlir_libs", "torch-mlir-opt")


class VersionAction(argparse.Action):
    """The option `--version`: prints, and ends the process."""

    def __init__(self, option_strings: Sequence[str], dest: str):
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help="print versions, and stop")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Prints, and exits with 0."""
        sys.stdout.write(versions(parser.prog))
        parser.exit()


def versions(program: str) -> str:
    """A line of the driver's version, and one for each part that it is built on."""
    parts = {
        "torch": _installed("torch"),
        "torch-mlir": f"{_installed('torch-mlir')}, MLIR of LLVM {_llvm_of_mlir()}",
        "llvmlite": f"{_installed('llvmlite')}, code generator of LLVM {_llvm_of_llvmlite()}",
        "Python": f"{platform.python_version()}, {platform.machine()}",
    }
    return f"{program} {pipeline.__version__}\n" + "".join(f"  {name} {text}\n" for name, text in parts.items())


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "is not installed"


def _llvm_of_mlir() -> str:
    spec = importlib.util.find_spec("torch_mlir")
    folders = spec.submodule_search_locations if spec is not None else None
    program = Path(next(iter(folders or ()), ""), _OPT)
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # a wheel without it, or of another machine
        return "unknown"
    found = re.search(r"LLVM version (\S+)", said.stdout)
    return found[1] if found else "unknown"


def _llvm_of_llvmlite() -> str:
    try:
        from llvmlite import binding
    except ImportError:
        return "unknown"
    return ".".join(map(str, binding.llvm_version_info))
