"""Vulkan devices, through wgpu: memory, launches collected into one submission, results read back."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.errors import PipelineError
from pipeline.runtime.device.device import Device
from pipeline.runtime.device.device_code import DeviceCode, DeviceKernel
from pipeline.runtime.device.host_plan import View
from pipeline.runtime.interface.signature import DTYPE_BYTES
from pipeline.runtime.interface.storage_types import numpy_dtype

#: The most blocks along one dimension of a launch; kernels with more threads loop.
_MOST_BLOCKS = 65535

#: Idle memory beyond this is given back to the driver.
_IDLE_BYTES = 1 << 30

_FORMATS = {"index": "<i", "i64": "<q", "f32": "<f", "f64": "<d"}


class _DeviceBuffer:
    """Memory of the device; goes back to the pool when nobody refers to it."""

    def __init__(self, pool: _Pool, raw: Any, size: int):
        self._pool = pool
        self.raw = raw
        self.size = size

    def __del__(self) -> None:
        self._pool.take_back(self.raw, self.size)


class _Pool:
    """Buffers to be used again, by size."""

    def __init__(self, device: Any, usage: int):
        self._device = device
        self._usage = usage
        self._free: dict[int, list[Any]] = {}
        self._idle = 0

    def take(self, size: int) -> _DeviceBuffer:
        """A buffer of at least `size` bytes; what is in it is undefined."""
        size = max(256, -(-size // 256) * 256)
        free = self._free.get(size)
        if free:
            self._idle -= size
            return _DeviceBuffer(self, free.pop(), size)
        return _DeviceBuffer(self, self._device.create_buffer(size=size, usage=self._usage), size)

    def take_back(self, raw: Any, size: int) -> None:
        """Keeps a buffer for the next one who wants this size."""
        if self._idle + size > _IDLE_BYTES:
            self._free.clear()
            self._idle = 0
        self._free.setdefault(size, []).append(raw)
        self._idle += size


class VulkanDevice(Device):
    """The first Vulkan device, with the kernels of one executable."""

    family = "vulkan"

    @classmethod
    def of_code(cls, code: DeviceCode) -> VulkanDevice:
        """See `Device.of_code`."""
        return cls(code.code, code.launches, code.required)

    def __init__(self, code: Sequence[bytes], kernels: Sequence[DeviceKernel], required: Sequence[str]):
        self._wgpu = _wgpu()
        self._device = _open(self._wgpu, required)
        self._kernels = kernels
        self._code = code
        usage = self._wgpu.BufferUsage
        self._pool = _Pool(self._device, usage.STORAGE | usage.COPY_SRC | usage.COPY_DST)
        self._reading = _Pool(self._device, usage.MAP_READ | usage.COPY_DST)
        self._pipelines: dict[int, Any] = {}
        self._layouts: dict[int, Any] = {}
        self._groups: dict[Any, Any] = {}
        self._encoder: Any = None
        self._pass: Any = None

    def allocate(self, dtype: str, elements: int) -> _DeviceBuffer:
        """Memory for a tensor."""
        return self._pool.take(elements * DTYPE_BYTES[dtype])

    def arena(self, size: int) -> _DeviceBuffer:
        """Memory for the temporaries of a call."""
        return self._pool.take(size)

    def upload(self, view: View, data: np.ndarray) -> None:
        """Writes a whole tensor."""
        if data.size:
            raw = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
            self._device.queue.write_buffer(view.buffer.raw, view.base * DTYPE_BYTES[view.dtype], raw)

    def launch(self, kernel: int, threads: int, arguments: Sequence[Any]) -> None:
        """Adds a launch to the submission."""
        info = self._kernels[kernel]
        blocks = min(info.blocks(threads), _MOST_BLOCKS)
        if not blocks:
            return
        views, numbers = info.split(arguments)
        pipeline = self._pipeline(kernel)
        if self._pass is None:
            self._encoder = self._device.create_command_encoder()
            self._pass = self._encoder.begin_compute_pass()
        self._pass.set_pipeline(pipeline)
        self._pass.set_bind_group(0, self._bind(kernel, views, numbers))
        self._pass.dispatch_workgroups(blocks, 1, 1)

    def read_number(self, buffer: _DeviceBuffer, dtype: str, place: int) -> int | float:
        """Submits, waits, and reads one element."""
        view = View(buffer, dtype, place, 1, 0, (1,), (1,))
        return self.download([view])[0][0].item()

    def download(self, views: Sequence[View]) -> list[np.ndarray]:
        """Submits, waits, and reads whole tensors."""
        sizes = [view.elements * DTYPE_BYTES[view.dtype] for view in views]
        places = np.cumsum([0, *(-(-size // 8) * 8 for size in sizes)]).tolist()
        staging = self._reading.take(places[-1])
        self._end_pass()
        encoder = self._encoder or self._device.create_command_encoder()
        for view, size, place in zip(views, sizes, places, strict=False):
            if size:
                base = view.base * DTYPE_BYTES[view.dtype]
                encoder.copy_buffer_to_buffer(view.buffer.raw, base, staging.raw, place, size)
        self._encoder = None
        self._device.queue.submit([encoder.finish()])
        staging.raw.map_sync(self._wgpu.MapMode.READ)
        try:
            memory = bytes(staging.raw.read_mapped(0, places[-1])) if places[-1] else b""
        finally:
            staging.raw.unmap()
        return [
            np.frombuffer(memory, numpy_dtype(view.dtype), view.elements, place).reshape(view.sizes)
            for view, place in zip(views, places, strict=False)
        ]

    def _end_pass(self) -> None:
        if self._pass is not None:
            self._pass.end()
            self._pass = None

    def _pipeline(self, kernel: int) -> Any:
        if kernel not in self._pipelines:
            info = self._kernels[kernel]
            try:
                module = self._device.create_shader_module(code=self._code[info.code])
                layout = self._device.create_pipeline_layout(bind_group_layouts=[self._layout(_bindings(info))])
                self._pipelines[kernel] = self._device.create_compute_pipeline(
                    layout=layout, compute={"module": module, "entry_point": "main"}
                )
            except self._wgpu.GPUError as error:
                raise PipelineError(f"the Vulkan driver refused the kernel {info.name}: {error}") from error
        return self._pipelines[kernel]

    def _layout(self, bindings: int) -> Any:
        """The layout of a kernel with so many buffers, all of which it may write."""
        if bindings not in self._layouts:
            visible = {"visibility": self._wgpu.ShaderStage.COMPUTE, "buffer": {"type": "storage"}}
            entries = [{"binding": number, **visible} for number in range(bindings)]
            self._layouts[bindings] = self._device.create_bind_group_layout(entries=entries)
        return self._layouts[bindings]

    def _bind(self, kernel: int, views: list[View], numbers: list[tuple[str, Any]]) -> Any:
        """The bind group of a launch; equal ones are made once."""
        words = b"".join(struct.pack(_FORMATS.get(kind, "<i"), value) for kind, value in numbers)
        ranges = [(view.buffer, view.base * DTYPE_BYTES[view.dtype], _bytes(view)) for view in views]
        key = (kernel, words, tuple((buffer.raw, first, size) for buffer, first, size in ranges))
        if key not in self._groups:
            if len(self._groups) > 10_000:
                self._groups.clear()
            resources = [{"buffer": buffer.raw, "offset": first, "size": size} for buffer, first, size in ranges]
            if numbers:
                usage = self._wgpu.BufferUsage.STORAGE
                raw = self._device.create_buffer_with_data(data=words, usage=usage)
                resources.append({"buffer": raw, "offset": 0, "size": len(words)})
            entries = [{"binding": number, "resource": resource} for number, resource in enumerate(resources)]
            layout = self._layout(_bindings(self._kernels[kernel]))
            self._groups[key] = self._device.create_bind_group(layout=layout, entries=entries)
        return self._groups[key]


def _bindings(info: DeviceKernel) -> int:
    """How many buffers a kernel takes: its own, and one for its numbers."""
    buffers = [argument for argument in info.arguments if argument[0] == "buffer"]
    numbers = any(kind[0] == "number" or kind[2] or kind[3] or kind[4] for kind in info.arguments)
    return len(buffers) + numbers


def _bytes(view: View) -> int:
    """How much of its buffer a tensor takes; a binding cannot be empty."""
    return max(DTYPE_BYTES[view.dtype], view.length * DTYPE_BYTES[view.dtype])


def _wgpu() -> Any:
    try:
        import wgpu
    except ImportError:
        raise PipelineError("the target vulkan needs wgpu; pip install 'pipeline-mlir[vulkan]'") from None
    return wgpu


def _open(wgpu: Any, required: Sequence[str]) -> Any:
    """A device with everything that the adapter offers of what we use."""
    adapters = [
        candidate for candidate in wgpu.gpu.enumerate_adapters_sync() if candidate.info["backend_type"] == "Vulkan"
    ]
    if not adapters:
        raise PipelineError(
            "no Vulkan device was found; install a driver, for CPUs: apt-get install mesa-vulkan-drivers libvulkan1"
        )
    adapter = adapters[0]
    missing = [feature for feature in required if feature not in adapter.features]
    if missing:
        raise PipelineError(f"the model needs {', '.join(missing)}, which {adapter.info['device']} does not have")
    wanted = ("max-storage-buffers-per-shader-stage", "max-storage-buffer-binding-size", "max-buffer-size")
    limits = {name: adapter.limits[name] for name in wanted}
    return adapter.request_device_sync(required_features=list(required), required_limits=limits)
