"""A model as torch runs it, for the driver that compares: called as its executable is, on the same arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pipeline.errors import PipelineError
from pipeline.frontend.capture.file_kinds import EXPORTED, MLIR
from pipeline.frontend.capture.model_files import load_file
from pipeline.runtime.call.array_libraries import as_numpy, library_of
from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.signature import Signature


class EagerForm:
    """A model, called in PyTorch without gradients.

    Attributes:
        signature: that of the executable that it is compared with.
    """

    def __init__(self, model: Any, executable: Executable):
        self.signature: Signature = executable.signature
        self._run = _callable(copy.deepcopy(model) if self.signature.mutations else model)

    @property
    def num_threads(self) -> int:
        """How many threads torch's ops share."""
        return torch.get_num_threads()

    @num_threads.setter
    def num_threads(self, number: int) -> None:
        torch.set_num_threads(number)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model on tensors, or on arrays as tensors."""
        with torch.no_grad():
            return self._run(*map(_as_tensor, args), **{name: _as_tensor(value) for name, value in kwargs.items()})


def _callable(model: Any) -> Callable[..., Any]:
    """What a model file's model is to call; of a file, what torch loads."""
    if isinstance(model, Path):
        if model.suffix == MLIR:
            raise PipelineError(f"--against eager: {model} is MLIR, which PyTorch does not run")
        loaded = load_file(model)
        return loaded.module() if model.suffix == EXPORTED else loaded
    return model.module() if isinstance(model, torch.export.ExportedProgram) else model


def _as_tensor(value: Any) -> Any:
    library = library_of(value)
    return value if library is None or isinstance(value, torch.Tensor) else torch.from_numpy(as_numpy(value))
