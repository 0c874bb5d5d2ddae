"""Example arguments on a command line: `x.npy`, `mask=m.npy`, `rate=16000`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.errors import PipelineError
from pipeline.tools.arrays_file import read_array


def example_arguments(given: Sequence[str]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs): tensors of .npy files, and numbers; those with a name before `=` are kwargs.

    Raises:
        PipelineError: a file cannot be read, a value is no number, or a name is given twice.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            args.append(_value(text))
        elif name in kwargs:
            raise PipelineError(f"--input {name}: given twice")
        else:
            kwargs[name] = _value(value)
    return tuple(args), kwargs


def _value(text: str) -> Any:
    if text.endswith(".npy"):
        return _tensor(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise PipelineError(f"--input {text}: expected a .npy file or a number")


def _tensor(path: str) -> Any:
    import torch  # for models that lie in torch's files alone

    try:
        return torch.from_numpy(read_array(path, ""))
    except TypeError as error:
        raise PipelineError(f"{path}: {error}") from None
