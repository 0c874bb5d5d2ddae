"""What an executable for a device consists of: code for its driver, plans, constants; and its form in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from pipeline.errors import PipelineError
from pipeline.runtime.device.host_plan import HostPlan, View
from pipeline.runtime.interface.code import Kernel, kernel_from_json
from pipeline.runtime.interface.signature import ParameterSource, TensorType
from pipeline.runtime.interface.storage_types import numpy_dtype


@dataclass(frozen=True)
class DeviceKernel:
    """One launch's code.

    Attributes:
        name: its name, which drivers' errors and profilers show.
        code: the number of the piece of code that it is in.
        block: how many threads a block has.
        items: for how many of the launch's threads there is one block.
        threads: how many threads a launch has; -1 where the plan says it.
        arguments: for each, `["number", type]` or `["buffer", dtype, sizes, offset, strides]`: which of the view's
            sizes, whether its offset and which of its strides are passed along as numbers.
        shared: bytes of dynamic shared memory.
    """

    name: str
    code: int
    block: int
    items: int
    threads: int
    arguments: tuple[tuple[Any, ...], ...]
    shared: int = 0

    def split(self, values: Sequence[Any]) -> tuple[list[View], list[tuple[str, Any]]]:
        """The buffers and the (type, number)s to pass, from the arguments in a plan."""
        views: list[View] = []
        numbers: list[tuple[str, Any]] = []
        along: list[tuple[str, Any]] = []
        for kind, value in zip(self.arguments, values, strict=True):
            if kind[0] == "number":
                numbers.append((kind[1], value))
                continue
            views.append(value)
            _, _, sizes, offset, strides = kind
            along += [("index", value.sizes[dim]) for dim in sizes]
            along += [("index", value.offset)] * bool(offset)
            along += [("index", value.strides[dim]) for dim in strides]
        return views, numbers + along

    def blocks(self, threads: int) -> int:
        """How many blocks a launch has."""
        return -(-(self.threads if threads < 0 else threads) // self.items)


@dataclass(frozen=True)
class DeviceCode:
    """Everything of an executable for a device but its signature and weights.

    Attributes:
        target: what it is for: `vulkan`, or `cuda:` and the least architecture.
        code: pieces of code for the device's driver.
        launches: the kernels that plans launch, by number.
        constants: tensors that the program holds.
        main, main_sources: the plan of a call, and where each of its own parameters comes from.
        prepare, prepare_sources, prepared: likewise for what is computed from weights alone, and its results' types.
        moved: for each result of main, whether it goes to a parameter.
        checks: the messages of the checks that the code makes as it runs, by number from 1.
        required: what the device must have.
        kernels: for people, in the order of first use.
    """

    target: str
    code: tuple[bytes, ...]
    launches: tuple[DeviceKernel, ...]
    constants: tuple[np.ndarray, ...]
    main: HostPlan
    main_sources: tuple[ParameterSource, ...]
    moved: tuple[bool, ...]
    prepare: HostPlan | None = None
    prepare_sources: tuple[ParameterSource, ...] = ()
    prepared: tuple[TensorType, ...] = ()
    checks: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    kernels: tuple[Kernel, ...] = ()

    @property
    def objects(self) -> tuple[bytes, ...]:
        """The pieces of code, then the elements of the constants."""
        return (*self.code, *(constant.tobytes() for constant in self.constants))

    def machine_code(self) -> bytes:
        """Of a CUDA executable, what ptxas made; raises `PipelineError` if there was none."""
        if len(self.code) < 2:
            raise PipelineError(
                "ptxas was not found, or knows not the GPU; pip install nvidia-cuda-nvcc, or set CUDA_HOME"
            )
        return self.code[1]

    def files(self, suffix: str) -> dict[str, bytes]:
        """The piece of code of each kernel as a file named after it."""
        return {f"{kernel.name}{suffix}": self.code[kernel.code] for kernel in self.launches}

    def to_json(self) -> dict[str, Any]:
        """Everything but the objects and the kernels' places, as JSON values."""
        kernels = tuple(replace(kernel, places=()) for kernel in self.kernels)
        data = asdict(replace(self, code=(), constants=(), kernels=kernels))
        data["constants"] = [[str(array.dtype), list(array.shape)] for array in self.constants]
        return data | {"objects": len(self.objects)}

    @staticmethod
    def from_json(data: dict[str, Any], objects: tuple[bytes, ...]) -> DeviceCode:
        """The inverse of `to_json`."""
        count = len(objects) - len(data["constants"])
        constants = [
            np.frombuffer(raw, numpy_dtype(name)).reshape(shape)
            for raw, (name, shape) in zip(objects[count:], data["constants"], strict=True)
        ]
        launches = tuple(
            DeviceKernel(**{**kernel, "arguments": tuple(tuple(argument) for argument in kernel["arguments"])})
            for kernel in data["launches"]
        )
        return DeviceCode(
            target=data["target"],
            code=objects[:count],
            launches=launches,
            constants=tuple(constants),
            main=HostPlan.from_json(data["main"]),
            main_sources=tuple(ParameterSource(**source) for source in data["main_sources"]),
            moved=tuple(data["moved"]),
            prepare=None if data["prepare"] is None else HostPlan.from_json(data["prepare"]),
            prepare_sources=tuple(ParameterSource(**source) for source in data["prepare_sources"]),
            prepared=tuple(TensorType(kind["dtype"], tuple(kind["shape"])) for kind in data["prepared"]),
            checks=tuple(data["checks"]),
            required=tuple(data["required"]),
            kernels=tuple(map(kernel_from_json, data["kernels"])),
        )
