"""cuBLAS's functions as nvmath-python has them, computed by NumPy on memory of the CPU."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np

_DTYPES = {0: np.dtype("float32"), 2: np.dtype("float16"), 14: np.dtype(ml_dtypes.bfloat16)}


class FakeCublas:
    """Notes what it was called for; `failing` makes the next product fail."""

    def __init__(self, driver=None):
        self.driver = driver
        self.products = []
        self.streams = []
        self.workspace = None
        self.handles = 0
        self.failing = False

    def create(self):
        self.handles += 1
        return 1234

    def destroy(self, handle):
        self.handles -= 1

    def set_stream(self, handle, stream):
        assert handle == 1234
        self.streams.append(stream)
        self.workspace = None

    def set_workspace(self, handle, address, size):
        assert address % 256 == 0
        self.workspace = (address, size)

    def gemm_ex(
        self, handle, ta, tb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, compute, algorithm
    ):
        self.gemm_strided_batched_ex(
            handle, ta, tb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute,
            algorithm,
        )  # fmt: skip

    def gemm_strided_batched_ex(
        self, handle, ta, tb, m, n, k, alpha, a, a_type, lda, a_step, b, b_type, ldb, b_step, beta, c, c_type, ldc,
        c_step, batch, compute, algorithm,
    ):  # fmt: skip
        if self.failing:
            raise RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED")
        assert self.workspace is not None, "setting a stream takes the workspace away"
        assert (ctypes.c_float.from_address(alpha).value, ctypes.c_float.from_address(beta).value) == (1.0, 0.0)
        self.products.append((batch, m, n, k, compute))

        def work():
            for number in range(batch):
                self._multiply(
                    number,
                    ta,
                    tb,
                    m,
                    n,
                    k,
                    (a, a_type, lda, a_step),
                    (b, b_type, ldb, b_step),
                    (c, c_type, ldc, c_step),
                )

        if self.driver is not None and self.driver.recording is not None:
            self.driver.recording.append(work)
        else:
            work()

    def _multiply(self, number, ta, tb, m, n, k, left, right, out):
        def matrix(one, rows, columns):
            address, kind, leading, step = one
            return _columns(address, _DTYPES[kind], number * step, leading, rows, columns)

        first, second = matrix(left, *((k, m) if ta else (m, k))), matrix(right, *((n, k) if tb else (k, n)))
        one, other = (part.astype(np.float32) for part in (first.T if ta else first, second.T if tb else second))
        target = matrix(out, m, n)
        target[...] = (one @ other).astype(target.dtype)


def _columns(address, dtype, first, leading, rows, columns):
    """A matrix as cuBLAS sees it: elements of a column side by side."""
    assert leading >= rows
    raw = (ctypes.c_uint8 * (((columns - 1) * leading + rows) * dtype.itemsize)).from_address(
        address + first * dtype.itemsize
    )
    flat = np.frombuffer(raw, dtype)
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), (dtype.itemsize, leading * dtype.itemsize))
