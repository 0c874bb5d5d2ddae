"""A PyTorch compiler on MLIR whose every step can be read, replayed, changed and explained.

    exe = pipeline.compile(model, (x,))
    y = exe(x)
    exe.save("model.pipeline")
    y = pipeline.load("model.pipeline")(x)

Importing this package imports neither torch nor MLIR; `compile` does, `load` and running what it gives do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.analysis.fusion_rules import FusionRules, load_rules
from pipeline.errors import (
    ArgumentError,
    ArtifactError,
    CaptureError,
    CompileError,
    OptionError,
    PipelineError,
    UnsupportedOpError,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runtime.executable import Executable

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "ArtifactError",
    "CaptureError",
    "CompileError",
    "FusionRules",
    "OptionError",
    "PipelineError",
    "UnsupportedOpError",
    "__version__",
    "compile",
    "load",
    "load_rules",
]


def compile(
    model: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    target: str = "cpu",
    **options: Any,
) -> Executable:
    """Compiles a model to an executable; see `pipeline.compiler.compile`."""
    from pipeline import compiler

    return compiler.compile(model, args, kwargs, dynamic_shapes=dynamic_shapes, target=target, **options)


def load(path: str | Path) -> Executable:
    """Loads an artifact that `Executable.save` wrote; needs neither torch nor MLIR, and gives and takes NumPy arrays.

    Raises:
        ArtifactError: the file is no artifact, is cut short, or is for another version or CPU.
    """
    from pipeline.runtime.artifact import load

    return load(path)
