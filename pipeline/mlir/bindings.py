"""The MLIR Python bindings of the `torch_mlir` wheel, and contexts to use them in."""

from __future__ import annotations

import ctypes
import importlib
import re
import sys
import types
from pathlib import Path
from typing import Any

from torch_mlir import ir, rewrite
from torch_mlir._mlir_libs import _torchMlir
from torch_mlir.dialects import (
    affine,
    arith,
    bufferization,
    ext,
    func,
    linalg,
    math,
    memref,
    scf,
    tensor,
)
from torch_mlir.passmanager import PassManager

__all__ = [
    "PassManager",
    "affine",
    "arith",
    "bufferization",
    "context",
    "dialect_names",
    "ext",
    "func",
    "gpu",
    "ir",
    "libraries",
    "linalg",
    "math",
    "memref",
    "nvgpu",
    "portable_stablehlo",
    "register_stablehlo",
    "rewrite",
    "scf",
    "tensor",
    "vector",
    "x86",
]

_address_in_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_address_in_capsule.restype = ctypes.c_void_p
_address_in_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _hash_of_op(op: Any) -> int:
    """The address of the op, by which ops are compared, too.

    The bindings' own hash is made of operands, types and attributes: a dict or a set would lose an op that changes.
    """
    return _address_in_capsule(op._CAPIPtr, b"torch_mlir.ir.Operation._CAPIPtr")


ir.Operation.__hash__ = _hash_of_op

# The bindings look for a Python module of the dialect whenever they meet an op; what is not there, they try to import
# again for every op.
sys.modules.setdefault("torch_mlir.dialects.fusion", types.ModuleType("torch_mlir.dialects.fusion"))


class _Late:
    """The module of a dialect, imported when something of it is asked for: the large ones take longer to import than
    everything else that a driver needs.
    """

    def __init__(self, dialect: str):
        self._module = f"torch_mlir.dialects.{dialect}"

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)


gpu: Any = _Late("gpu")
nvgpu: Any = _Late("nvgpu")
vector: Any = _Late("vector")
x86: Any = _Late("x86")


def context() -> ir.Context:
    """A new MLIR context with upstream's dialects, torch-mlir's, ours and those of plugins."""
    from pipeline.dialects import load_plugin_dialects

    ctx = ir.Context()
    _torchMlir.register_dialect(ctx)
    ctx.allow_unregistered_dialects = True  # for the fusion dialect, see there; `parse` refuses any other
    load_plugin_dialects(ctx)
    return ctx


def register_stablehlo(ctx: ir.Context) -> None:
    """Lets a context read StableHLO."""
    importlib.import_module("torch_mlir._mlir_libs._stablehlo").register_dialect(ctx)


def portable_stablehlo(data: bytes, ctx: ir.Context) -> ir.Module:
    """The module that portable StableHLO holds; raises what the bindings raise where it cannot be read."""
    return importlib.import_module("torch_mlir._mlir_libs._stablehlo").deserialize_portable_artifact(ctx, data)


def libraries() -> list[Path]:
    """The shared libraries of the wheel."""
    return sorted((Path(ir.__file__).parent / "_mlir_libs").glob("*.so"))


def dialect_names(ctx: ir.Context) -> list[str]:
    """The names of the dialects that are registered in `ctx` or loaded into it.

    The bindings have no listing, but the parser's note on an unknown dialect carries one.
    """
    try:
        ir.Module.parse("no_such_dialect.op", ctx)
    except ir.MLIRError as error:
        notes = [note.message for diagnostic in error.error_diagnostics for note in diagnostic.notes]
        listing = re.search(r"Available dialects: (.*?)(?: \(\* corresponding|;|$)", "".join(notes))
        return sorted(name.removesuffix(" (*)") for name in listing.group(1).split(", ")) if listing else []
    return []
