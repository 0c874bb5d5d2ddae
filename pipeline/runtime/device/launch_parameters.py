"""The parameters of a kernel of CUDA, in the memory that the driver reads them from."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from pipeline.runtime.device.device_code import DeviceKernel
from pipeline.runtime.device.host_plan import View
from pipeline.runtime.interface.signature import DTYPE_BYTES

#: Kernels access so many bytes at once; drivers and torch align memory better, views of tensors may not be.
ALIGNMENT = 16

_C_TYPES: dict[str, Any] = {
    "index": ctypes.c_int64,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int32,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


def address_of(view: View) -> int:
    """Where the tensor of a view begins."""
    return int(view.buffer.address + view.base * DTYPE_BYTES[view.dtype])


class LaunchParameters:
    """A kernel's arguments in order, then the sizes that go along.

    Attributes:
        address: of the parameters' addresses, as the driver takes them.
    """

    def __init__(self, kernel: DeviceKernel, arguments: Sequence[Any]):
        views, numbers = kernel.split(arguments)
        self._addresses = [(ctypes.c_uint64(), view.buffer, view.base * DTYPE_BYTES[view.dtype]) for view in views]
        addresses, rest = iter(self._addresses), iter(numbers)
        self._values = [
            next(addresses)[0] if kind[0] == "buffer" else _number(*next(rest)) for kind in kernel.arguments
        ]
        self._values += [_number(*number) for number in rest]
        self._pointers = (ctypes.c_void_p * len(self._values))(*map(ctypes.addressof, self._values))
        self.address = ctypes.addressof(self._pointers)

    def update(self) -> None:
        """Reads the addresses of the buffers again."""
        for value, buffer, offset in self._addresses:
            value.value = buffer.address + offset


def _number(kind: str, value: Any) -> Any:
    return _C_TYPES[kind](value)
