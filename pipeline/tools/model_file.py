"""The models that pipeline-compile is given: by a Python factory, or in a file that `pipeline.compile` takes."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.errors import PipelineError
from pipeline.frontend.capture.file_kinds import EXPORTED, MLIR_FILES, ONNX, TORCH_FILES
from pipeline.plugins import one_line
from pipeline.tools.example_arguments import example_arguments
from pipeline.tools.quiet import load_torch_silently

DEFAULT_FACTORY = "model"

_RETURNS = "(model, args), (model, args, kwargs) or a dict with model, args, kwargs and dynamic_shapes"


@dataclass(frozen=True)
class Model:
    """What `pipeline.compile` takes of a model."""

    model: Any
    args: tuple[Any, ...] | None = None
    kwargs: Mapping[str, Any] | None = None
    dynamic_shapes: Any = None


#: What the names of files with a model end in.
_ENDINGS = (".py", EXPORTED, ONNX, *MLIR_FILES, *TORCH_FILES)


def is_model(name: str) -> bool:
    """Whether `name` has the form of a model's, rather than that of an artifact's."""
    return name.endswith(_ENDINGS) or ".py:" in name


def takes_inputs(name: str) -> bool:
    """Whether a model is compiled for inputs that are given beside it, as it has no example arguments of its own."""
    return name.endswith(TORCH_FILES)


def load_model(name: str, inputs: Sequence[str] = ()) -> Model:
    """The model that `FILE.py[:factory]` names, or a file that `pipeline.compile` takes.

    Args:
        inputs: the example arguments of one that has none of its own: a TorchScript archive.

    Raises:
        PipelineError: it is no model. What lies in a file other than of Python or MLIR is not looked at here.
    """
    file, _, factory = name.rpartition(":") if ".py:" in name else (name, "", "")
    if file.endswith(".py"):
        return _call(_factory(_import(Path(file)), factory or DEFAULT_FACTORY, file), f"{file}:{factory or 'model'}")
    if name.endswith((*MLIR_FILES, ONNX)) and not Path(name).is_file():
        raise PipelineError(f"{name}: no such file")
    return Model(Path(name), *example_arguments(inputs)) if inputs else Model(Path(name))


def _import(path: Path) -> ModuleType:
    """The file as a module that, like a script, finds the modules beside it."""
    if not path.is_file():
        raise PipelineError(f"{path}: no such file")
    load_torch_silently()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader  # a file that ends in .py has both
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules[path.stem] = module  # dataclasses and pickled programs look the module of a class up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise PipelineError(f"{path}: {one_line(error)}") from error
    return module


def _factory(module: ModuleType, name: str, file: str) -> Any:
    factory = getattr(module, name, None)
    if factory is None:
        own = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__]
        there = f"; its functions are {', '.join(own)}" if own else ""
        raise PipelineError(f"{file}: has no function {name!r}{there}; name one as {file}:FUNCTION")
    if inspect.isclass(factory) or not inspect.isfunction(factory):
        kind = "class" if inspect.isclass(factory) else type(factory).__name__
        raise PipelineError(
            f"{file}:{name}: is a {kind}; expected a function that returns {_RETURNS}: "
            "a model is compiled for the shapes of example arguments"
        )
    return factory


def _call(factory: Any, name: str) -> Model:
    try:
        made = factory()
    except (Exception, SystemExit) as error:
        raise PipelineError(f"{name}: {one_line(error)}") from error
    if isinstance(made, Mapping):
        unknown = sorted(set(map(str, made)) - {"model", "args", "kwargs", "dynamic_shapes"})
        if unknown or "model" not in made or "args" not in made:
            raise PipelineError(f"{name}: returned a dict with {', '.join(map(str, made))}; expected {_RETURNS}")
        return _checked(Model(**made), name)
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        came = f"{len(made)} values" if isinstance(made, tuple) else f"a {type(made).__name__}"
        raise PipelineError(f"{name}: returned {came}; expected {_RETURNS}")
    return _checked(Model(*made), name)


def _checked(made: Model, name: str) -> Model:
    if not isinstance(made.args, tuple):
        raise PipelineError(f"{name}: args is a {type(made.args).__name__}; expected a tuple of example arguments")
    if made.kwargs is not None and not isinstance(made.kwargs, Mapping):
        raise PipelineError(f"{name}: kwargs is a {type(made.kwargs).__name__}; expected a dict")
    return made
