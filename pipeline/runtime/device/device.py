"""What a plan needs of a device, and finding the one that code is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pipeline.errors import ArtifactError
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.device.host_plan import View


class Device(Protocol):
    """What a plan needs of a device. Work may be collected and handed to the device in one go when it is needed."""

    def allocate(self, dtype: str, elements: int) -> Any:
        """Memory; it is given back when nothing refers to it any more."""
        ...

    def arena(self, size: int) -> Any:
        """Memory for the temporaries of a call, in bytes."""
        ...

    def upload(self, view: View, data: np.ndarray) -> None:
        """Writes a whole tensor, in the stored dtype; before the launches of the call."""
        ...

    def launch(self, kernel: int, threads: int, arguments: Sequence[Any]) -> None:
        """Runs a kernel; `threads` is -1 where the kernel says it."""
        ...

    def read_number(self, buffer: Any, dtype: str, place: int) -> int | float:
        """An element, after everything that was launched."""
        ...

    def download(self, views: Sequence[View]) -> list[np.ndarray]:
        """Whole tensors, after everything that was launched."""
        ...


def create_device(code: DeviceCode) -> Device:
    """The device that `code` is for, with its code loaded; raises `PipelineError` if there is none."""
    if code.target == "vulkan":
        from pipeline.runtime.device.vulkan import VulkanDevice

        return VulkanDevice(code.code, code.launches, code.required)
    if code.target.startswith("cuda"):
        from pipeline.runtime.device.cuda import CudaDevice

        return CudaDevice(code.code, code.launches, code.target)
    raise ArtifactError(f"the code is for {code.target}, which this version does not know")
