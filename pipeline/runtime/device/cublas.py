"""cuBLAS, through NVIDIA's own binding nvmath-python; both are optional.

cuBLAS counts along columns first, our matrices along rows: `out = left @ right` is `outᵀ = rightᵀ @ leftᵀ` there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from pipeline.errors import PipelineError
from pipeline.runtime.device.gemm_descriptor import Gemm, Matrix

#: What NVIDIA advises for Hopper; older GPUs need less. With a workspace of ours a call can be part of a CUDA graph.
WORKSPACE_BYTES = 32 << 20

#: cudaDataType_t and cublasComputeType_t, of cuBLAS's C interface.
_TYPES = {"float32": 0, "float16": 2, "bfloat16": 14}
_COMPUTE_32F, _COMPUTE_32F_FAST_TF32 = 68, 77
_DEFAULT_ALGORITHM = -1
_AS_IT_IS, _TRANSPOSED = 0, 1


class Cublas:
    """A handle of cuBLAS; it belongs to the context that is current when it is made."""

    def __init__(self, workspace: int, binding: Any = None):
        self._binding = binding or load_binding()
        self._workspace = workspace
        self._one, self._zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        self._handle = self._call("creating a handle", self._binding.create)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._binding.destroy(self._handle)

    def multiply(self, gemm: Gemm, address: Callable[[Matrix, str], int], stream: int) -> None:
        """Multiplies on a stream; `address` says where the first element of a matrix of a dtype is."""
        what = f"product of {gemm.batch} x {gemm.rows} x {gemm.sum} x {gemm.columns}"
        self._call(what, self._binding.set_stream, self._handle, stream)
        # Setting a stream takes the workspace away.
        self._call(what, self._binding.set_workspace, self._handle, self._workspace, WORKSPACE_BYTES)
        first, second = gemm.right, gemm.left
        kind = _TYPES[gemm.element]
        left = (address(first, gemm.element), kind, *_leading(first))
        right = (address(second, gemm.element), kind, *_leading(second))
        out = (address(gemm.out, gemm.out_element), _TYPES[gemm.out_element], gemm.out.rows)
        compute = _COMPUTE_32F_FAST_TF32 if gemm.tf32 else _COMPUTE_32F
        one, zero = ctypes.addressof(self._one), ctypes.addressof(self._zero)
        sizes = (self._handle, left[3], right[3], gemm.columns, gemm.rows, gemm.sum, one)
        arguments: tuple[Any, ...]
        if gemm.batch == 1:
            arguments = (*sizes, *left[:3], *right[:3], zero, *out, compute, _DEFAULT_ALGORITHM)
            self._call(what, self._binding.gemm_ex, *arguments)
            return
        arguments = (
            *(*sizes, *left[:3], first.batch, *right[:3], second.batch),
            *(zero, *out, gemm.out.batch, gemm.batch, compute, _DEFAULT_ALGORITHM),
        )
        self._call(what, self._binding.gemm_strided_batched_ex, *arguments)

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:  # the binding has an error class for each library
            raise PipelineError(f"cuBLAS: {what}: {error}") from error


def _leading(matrix: Matrix) -> tuple[int, int]:
    """(how far apart columns are as cuBLAS sees it, whether it has to transpose what it sees)."""
    return (matrix.rows, _AS_IT_IS) if matrix.columns == 1 else (matrix.columns, _TRANSPOSED)


def load_binding() -> Any:
    """The module with cuBLAS's functions.

    Raises:
        PipelineError: nvmath-python or cuBLAS itself is missing.
    """
    try:
        from nvmath.bindings import cublas

        cublas.get_cudart_version()  # loads the library
    except ImportError:
        raise PipelineError("nvmath-python is missing; pip install 'pipeline-mlir[cublas]'") from None
    except Exception as error:  # what the loader of the library raises differs between versions
        raise PipelineError(f"cuBLAS was not found ({error}); pip install 'pipeline-mlir[cublas]'") from error
    return cublas
