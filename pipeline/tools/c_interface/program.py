"""The files of a model for C and C++ programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.signature import Signature
from pipeline.runtime.interface.team import OF_CODE, SET_THREADS, USE_TEAM
from pipeline.runtime.native.linker import link
from pipeline.runtime.native.openmp_team import THREADS
from pipeline.runtime.weights.watched_words import GUARDED
from pipeline.tools.c_interface.header import Weights, header
from pipeline.tools.c_interface.names import prefix_of
from pipeline.tools.c_interface.objects import renamed, with_weights
from pipeline.tools.c_interface.weights import packed

_PREFIX = "pipeline_"


def program_files(
    path: Path,
    code: Code,
    signature: Signature,
    weights: Mapping[str, Any],
    title: str,
    *,
    is_shared: bool,
    is_beside: bool,
) -> Iterator[tuple[Path, bytes]]:
    """The code at `path`, the header beside it, and the weights, unless they lie in the code.

    Args:
        title: what the model is called, for people.
        is_shared: whether the code is to be a shared object, not an object file.
        is_beside: whether the weights are to be a file of their own.

    Raises:
        PipelineError: the model has something that a C header cannot offer.
    """
    prefix = prefix_of(path.name)
    bytes_of_weights = packed([weight.name for weight in signature.weights], weights)
    beside = path.with_suffix(".weights") if is_beside else None
    found = Weights(bytes_of_weights, None if beside is None else beside.name)
    text = header(code, signature, found, prefix, path.name, title, is_shared=is_shared)
    (data,) = code.objects
    if beside is None:
        data = with_weights(data, bytes_of_weights.content, f"{prefix}_code_weights")
    data = renamed(data, {name: f"{prefix}_code_{name.removeprefix(_PREFIX)}" for name in _symbols(code)})
    yield path, link([data], path.name) if is_shared else data
    yield path.with_suffix(".h"), text.encode()
    if beside is not None:
        yield beside, b"".join(bytes_of_weights.file())


def _symbols(code: Code) -> tuple[str, ...]:
    """The symbols that two models in one program would both have."""
    prepare = () if code.prepare is None else (code.prepare.symbol,)
    return (code.main.symbol, *prepare, GUARDED, THREADS, USE_TEAM, SET_THREADS, *OF_CODE)
