"""A PyTorch compiler on MLIR whose every step can be read, replayed, changed and explained.

    exe = pipeline.compile(model, (x,))
    y = exe(x)
    exe.save("model.pipeline")
    y = pipeline.load("model.pipeline")(x)

Importing this package imports neither torch nor MLIR; `compile` does, `load` and running what it gives do not.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from pipeline import debug, fusions, generation, ray
from pipeline.errors import (
    ArgumentError,
    ArtifactError,
    CaptureError,
    CompileError,
    FusionError,
    OptionError,
    PipelineError,
    UnsupportedOpError,
)
from pipeline.fusion_rules.rules import FusionRules, load_rules
from pipeline.fusions import fuse_into
from pipeline.installation import require_compiler
from pipeline.runtime.call.generator import manual_seed
from pipeline.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.captured import Captured
    from pipeline.frontend.dynamo import executables
    from pipeline.frontend.dynamo.training_executable import TrainingExecutable
    from pipeline.frontend.stop_fusion import stop_fusion
    from pipeline.runtime.bundle import Bundle
    from pipeline.runtime.executable import Executable

__all__ = [
    "ArgumentError",
    "ArtifactError",
    "Bundle",
    "CaptureError",
    "CompileError",
    "FusionError",
    "FusionRules",
    "OptionError",
    "PipelineError",
    "UnsupportedOpError",
    "__version__",
    "capture",
    "compile",
    "debug",
    "executables",
    "fuse_into",
    "fusions",
    "generation",
    "load",
    "load_rules",
    "manual_seed",
    "ray",
    "stop_fusion",
]


@overload
def compile(
    model: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    target: str = "cpu",
    training: Literal[False] = False,
    **options: Any,
) -> Executable: ...


@overload
def compile(
    model: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    target: str = "cpu",
    training: Literal[True],
    **options: Any,
) -> TrainingExecutable: ...


def compile(
    model: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    target: str = "cpu",
    training: bool = False,
    **options: Any,
) -> Executable | TrainingExecutable:
    """Compiles a model to an `Executable`; for training to a `TrainingExecutable`, whose results carry gradients.

    Args:
        model: an nn.Module, a function, torch.jit.ScriptModule, torch.export.ExportedProgram, the path of a `.pt2` or
            TorchScript archive, of an ONNX file or of one of MLIR (linalg, StableHLO, TOSA), MLIR as text, bytecode or
            module, an ONNX ModelProto, or what `jax.export` gives; see docs/formats.md.
        args, kwargs: example arguments; their shapes and dtypes are compiled in, and their constants, which calls may
            leave out. A tensor stands for a tuple of one. None for MLIR.
        dynamic_shapes: the dimensions that may change, as torch.export takes them.
        target: `cpu`, `vulkan`, or `cuda:sm_90` and the like.
        training: whether gradients are wanted: of an nn.Module, in the mode in which it is, or of a function. See
            docs/training.md.
        options: `precision`, `num_threads`, `tune`, `disable` and others: see `pipeline.options.Options`; and what is
            for drivers: see `pipeline.compiler.compile`.

    Raises:
        CaptureError: torch cannot capture the model.
        UnsupportedOpError: ops of the model cannot be lowered; lists all of them with their source lines.
        OptionError: an option or its value is unknown.
        CompileError: a pass or the code generator failed.
        PipelineError: the compiler is not installed.
    """
    require_compiler()
    if training:
        from pipeline.frontend.dynamo.training_executable import compile_for_training

        return compile_for_training(model, args, kwargs, dynamic_shapes, {"target": target, **options})
    from pipeline import compiler

    return compiler.compile(model, args, kwargs, dynamic_shapes=dynamic_shapes, target=target, **options)


def capture(
    model: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    **options: Any,
) -> Captured:
    """Captures a model, to compile it with several options: the model runs, and is imported, once for all of them.

        captured = pipeline.capture(model, (x,))
        exact, fast = captured.compile(), captured.compile(precision="bf16")

    Args:
        model, args, kwargs, dynamic_shapes: as of `compile`.
        options: `capture` and `random`; all others are those of the compilations.

    Raises:
        CaptureError: torch cannot capture the model.
        OptionError: an option is unknown, or is one of a compilation.
    """
    require_compiler()
    from pipeline import captured

    return captured.capture(model, args, kwargs, dynamic_shapes, options)


class _Package(types.ModuleType):
    """This package; says what is wrong where it is taken for transformers' function of the same name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises `PipelineError`."""
        raise PipelineError(
            "pipeline is a package here, the compiler, and cannot be called; its function is pipeline.compile(model, "
            "args). For transformers' function: from transformers import pipeline as transformers_pipeline"
        )


sys.modules[__name__].__class__ = _Package

#: What is found when it is first asked for, since it takes long to import: the module that has it.
_LATER = {
    "Bundle": "pipeline.runtime.bundle",
    "executables": "pipeline.frontend.dynamo",
    "stop_fusion": "pipeline.frontend.stop_fusion",
}


def __getattr__(name: str) -> Any:
    """What `_LATER` names."""
    if name not in _LATER:
        raise AttributeError(f"module 'pipeline' has no attribute {name!r}")
    found = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = found
    return found


def load(path: str | Path) -> Executable:
    """Loads an artifact that `Executable.save` wrote; needs neither torch nor MLIR, and gives and takes NumPy arrays.

    Raises:
        ArtifactError: the file is no artifact, is cut short, or is for another version or CPU.
    """
    from pipeline import logs
    from pipeline.runtime.artifact import load

    logs.set_up()
    return load(path)
