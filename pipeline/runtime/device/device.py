"""What a plan needs of a device, and finding the one that code is for."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pipeline import plugins
from pipeline.errors import ArtifactError
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.device.host_plan import View


class Device(ABC):
    """What a plan needs of a device. Work may be collected and handed to the device in one go when it is needed.

    A device may have more than that, which is used where it is there: `begin` before each call, `prepare` and `replay`
    for launches that come again (see `recorded_plan`), `multiply` and `missing` for a library's products, `trim` when
    weights have been prepared; `CudaDevice` has all of them.

    Attributes:
        family: the family of the target whose code runs on it. Devices of plugins are found by it.
    """

    family: ClassVar[str]

    @classmethod
    @abstractmethod
    def of_code(cls, code: DeviceCode) -> Device:
        """The device, with code loaded; raises `PipelineError` if there is none."""

    @abstractmethod
    def allocate(self, dtype: str, elements: int) -> Any:
        """Memory; it is given back when nothing refers to it any more."""

    @abstractmethod
    def arena(self, size: int) -> Any:
        """Memory for the temporaries of a call, in bytes."""

    @abstractmethod
    def upload(self, view: View, data: np.ndarray) -> None:
        """Writes a whole tensor, in the stored dtype; before the launches of the call."""

    @abstractmethod
    def launch(self, kernel: int, threads: int, arguments: Sequence[Any]) -> None:
        """Runs a kernel; `threads` is -1 where the kernel says it."""

    @abstractmethod
    def read_number(self, buffer: Any, dtype: str, place: int) -> int | float:
        """An element, after everything that was launched."""

    @abstractmethod
    def download(self, views: Sequence[View]) -> list[np.ndarray]:
        """Whole tensors, after everything that was launched."""


#: Ours, by the family of their target; they are loaded when code is to run on them.
_OWN = {"cuda": "pipeline.runtime.device.cuda:CudaDevice", "vulkan": "pipeline.runtime.device.vulkan:VulkanDevice"}


def create_device(code: DeviceCode) -> Device:
    """The device that `code` is for, with its code loaded; raises `PipelineError` if there is none."""
    family = code.target.partition(":")[0]
    if family in _OWN:
        module, _, name = _OWN[family].partition(":")
        own: type[Device] = getattr(importlib.import_module(module), name)
        return own.of_code(code)
    for plugin in plugins.plugins():
        for kind in plugin.classes(Device, ("family",)):
            if kind.family == family:
                return kind.of_code(code)
    raise ArtifactError(f"the code is for {code.target}, which neither this version nor a plugin knows")
