"""The functions from outside that an executable calls: of shared libraries, and of Python.

They are called by MLIR's C interface: for a tensor a pointer to the descriptor of a memref, which holds the address of
the allocation, that of the data, an offset in elements, the sizes and the strides; a number as it is.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.errors import ArtifactError, PipelineError
from pipeline.runtime.interface.code import ExternalFunction
from pipeline.runtime.interface.small_floats import BFLOAT16

_DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f16": np.float16,
    "bf16": BFLOAT16,
    "f32": np.float32,
    "f64": np.float64,
}
_NUMBERS: dict[str, Any] = {
    "i1": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "index": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


class Externals:
    """The functions of one executable, found and ready to be linked.

    Attributes:
        addresses: where each is, by the symbol that the code calls.
    """

    def __init__(self, externals: Sequence[ExternalFunction], functions: Mapping[str, Callable[..., Any]]):
        self.addresses: dict[str, int] = {}
        self._python = [external.function for external in externals if not external.library]
        self._failed = threading.local()
        self._kept: list[Any] = []
        for external in externals:
            function = (
                self._wrapped(external, functions[external.function]) if not external.library else _find(external)
            )
            self._kept.append(function)
            self.addresses[external.symbol] = ctypes.cast(function, ctypes.c_void_p).value or 0

    def raise_failure(self) -> None:
        """Raises what a Python function has raised in this thread, as a `PipelineError`."""
        error = getattr(self._failed, "error", None)
        if error is None:
            return
        self._failed.error = None
        raise PipelineError(f"a Python function of the model failed: {type(error).__name__}: {error}") from error

    def check_saving(self) -> None:
        """Raises `ArtifactError` if there are Python functions, which no file can hold."""
        if self._python:
            raise ArtifactError(
                "this executable calls Python functions (pipeline.fusions.Callback), which cannot be saved; "
                "make them functions of a shared library (pipeline.fusions.External)"
            )

    def _wrapped(self, external: ExternalFunction, function: Callable[..., Any]) -> Any:
        """The Python function as one of C."""
        kinds = [ctypes.c_void_p if rank is not None else _NUMBERS[dtype] for dtype, rank in external.parameters]
        prototype = ctypes.CFUNCTYPE(None, *kinds, *(ctypes.c_int64 for _ in external.numbers))

        def call(*given: Any) -> None:
            values = [
                given[number] if rank is None else _array(given[number], dtype, rank)
                for number, (dtype, rank) in enumerate(external.parameters)
            ]
            count = len(values) - external.outputs
            inputs, outputs = values[:count], values[count:]
            try:
                for value in inputs:
                    if isinstance(value, np.ndarray):
                        value.flags.writeable = False
                _store(function(*inputs, *given[len(values) :]), outputs)
            except BaseException as error:  # it cannot pass through the code that calls us; `raise_failure` raises it
                self._failed.error = error
                for output in outputs:
                    output[...] = 0

        return prototype(call)


def _find(external: ExternalFunction) -> Any:
    try:
        library = ctypes.CDLL(external.library)
    except OSError as error:
        raise ArtifactError(f"the library of {external.function} cannot be loaded: {error}") from None
    try:
        return getattr(library, external.function)
    except AttributeError:
        raise ArtifactError(f"{external.library} has no function {external.function}") from None


def _array(descriptor: int, dtype: str, rank: int) -> np.ndarray:
    """The tensor that a descriptor describes, in place."""
    words = (ctypes.c_int64 * (3 + 2 * rank)).from_address(descriptor)
    shape, strides = words[3 : 3 + rank], words[3 + rank :]
    kind = np.dtype(_DTYPES[dtype])
    if 0 in shape:
        return np.empty(shape, kind)
    extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    raw = (ctypes.c_char * (extent * kind.itemsize)).from_address(words[1] + words[2] * kind.itemsize)
    return np.ndarray(shape, kind, raw, strides=[stride * kind.itemsize for stride in strides])


def _store(returned: Any, outputs: Sequence[np.ndarray]) -> None:
    """Puts what a function returned into the places of its results."""
    results = returned if isinstance(returned, (tuple, list)) else (returned,)
    if len(results) != len(outputs):
        raise TypeError(f"it returned {len(results)} results, expected {len(outputs)}")
    for result, output in zip(results, outputs, strict=True):
        array = np.asarray(result)
        if array.shape != output.shape or array.dtype != output.dtype:
            raise TypeError(
                f"it returned {array.dtype}{list(array.shape)}, expected {output.dtype}{list(output.shape)}"
            )
        output[...] = array
