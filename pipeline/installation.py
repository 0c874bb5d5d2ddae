"""What is installed: NumPy alone runs what was compiled elsewhere, the extra `compile` brings what compiles."""

from __future__ import annotations

import functools
import importlib.util

from pipeline.errors import PipelineError

#: The name under which pip knows this package.
DISTRIBUTION = "pipeline-mlir"

#: What the extra `compile` installs, by the names that are imported.
_COMPILER = {
    "torch": "torch",
    "torch_mlir": "torch-mlir",
    "llvmlite": "llvmlite",
    "yaml": "pyyaml",
    "ml_dtypes": "ml-dtypes",
}


@functools.cache
def require_compiler() -> None:
    """Raises `PipelineError` where this installation can only load and run artifacts; says how to have the rest."""
    missing = [name for module, name in _COMPILER.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise PipelineError(
            f"compiling needs {', '.join(missing)}, which this installation lacks; it only runs artifacts. "
            f"Install the compiler: pip install '{DISTRIBUTION}[compile]'"
        )
