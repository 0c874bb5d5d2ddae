"""NVIDIA GPUs, through CUDA's driver: memory, launches on torch's current stream, results read back.

Needs the package cuda-bindings, and no toolkit: PTX is translated by the driver.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pipeline.errors import PipelineError
from pipeline.runtime.device.cublas import WORKSPACE_BYTES, Cublas
from pipeline.runtime.device.cuda_graphs import Graphs
from pipeline.runtime.device.device import Device
from pipeline.runtime.device.device_code import DeviceCode, DeviceKernel
from pipeline.runtime.device.gemm_descriptor import Gemm, Matrix
from pipeline.runtime.device.host_plan import View, row_major
from pipeline.runtime.device.launch_parameters import ALIGNMENT, LaunchParameters, address_of
from pipeline.runtime.interface.signature import DTYPE_BYTES
from pipeline.runtime.interface.storage_types import numpy_dtype

#: Idle memory beyond this is given back to the driver.
_IDLE_BYTES = 1 << 32

#: The most blocks along one dimension of a launch; kernels with more threads loop.
_MOST_BLOCKS = 65535

#: Kernels that share more must have said so before they are launched.
_STATIC_SHARED = 48 * 1024


class _Memory:
    """Memory of the device; goes back to the pool when nobody refers to it."""

    def __init__(self, address: int, size: int, give_back: Callable[[int, int], None] | None, owner: Any = None):
        self.address = address
        self._size = size
        self._give_back = give_back
        self._owner = owner

    def __del__(self) -> None:
        if self._give_back is not None:
            self._give_back(self.address, self._size)


class CudaDevice(Device):
    """The current CUDA device, with the kernels of one executable."""

    family = "cuda"

    @classmethod
    def of_code(cls, code: DeviceCode) -> CudaDevice:
        """See `Device.of_code`."""
        return cls(code.code, code.launches, code.target)

    def __init__(
        self,
        code: Sequence[bytes],
        kernels: Sequence[DeviceKernel],
        target: str,
        driver: Any = None,
        cublas: Any = None,
    ):
        self._driver = driver or _cuda_driver()
        self._cublas_binding = cublas
        self._cublas: tuple[Cublas, _Memory] | None = None
        self._missing: str | None = None
        self._kernels = kernels
        self._target = target
        self._free: dict[int, list[int]] = {}
        self._idle = 0
        self._stream = 0
        self._check(self._driver.cuInit(0), "looking for a GPU")
        self._number = _torch_device()
        self._device = self._check(self._driver.cuDeviceGet(self._number), "cuDeviceGet")
        self._context = self._check(self._driver.cuDevicePrimaryCtxRetain(self._device), "cuDevicePrimaryCtxRetain")
        self._check(self._driver.cuCtxSetCurrent(self._context), "cuCtxSetCurrent")
        self._graphs = Graphs(self._driver, self._check)
        module = self._load(code)
        self._functions = [
            self._check(self._driver.cuModuleGetFunction(module, kernel.name.encode()), f"kernel {kernel.name}")
            for kernel in kernels
        ]
        for kernel, function in zip(kernels, self._functions, strict=True):
            if kernel.shared > _STATIC_SHARED:
                self._allow_shared(kernel, function)

    def _allow_shared(self, kernel: DeviceKernel, function: Any) -> None:
        what = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        allowed = self._driver.cuFuncSetAttribute(function, what, kernel.shared)
        self._check(allowed, f"{kernel.shared} bytes of shared memory for kernel {kernel.name}")

    def begin(self) -> None:
        """Takes over the context and torch's current stream; waits for the last one if that is another."""
        self._check(self._driver.cuCtxSetCurrent(self._context), "cuCtxSetCurrent")
        stream = _torch_stream(self._number)
        if stream != self._stream:
            self._check(self._driver.cuStreamSynchronize(self._stream), "cuStreamSynchronize")
            self._stream = stream

    def allocate(self, dtype: str, elements: int) -> _Memory:
        """Memory for a tensor."""
        return self._take(elements * DTYPE_BYTES[dtype])

    def arena(self, size: int) -> _Memory:
        """Memory for the temporaries of a call."""
        return self._take(size)

    def borrow(self, tensor: Any, dtype: str) -> View:
        """A torch tensor on the device as a view, with no copy if it is aligned for kernels' widest accesses.

        Raises:
            PipelineError: it lies on another GPU.
        """
        if tensor.is_cuda and tensor.get_device() != self._number:
            raise PipelineError(
                f"an argument lies on {tensor.device}, the executable runs on cuda:{self._number}, where torch was at "
                "its first call; move the tensor, or load the executable again where torch.cuda.device says that GPU"
            )
        sizes = (*tensor.shape, 2) if tensor.is_complex() else tuple(tensor.shape)
        view = row_major(_Memory(tensor.data_ptr(), 0, None, tensor), dtype, sizes)
        if tensor.data_ptr() % ALIGNMENT == 0:
            return view
        aligned = row_major(self.allocate(dtype, view.elements), dtype, view.sizes)
        self.copy(aligned, view)
        return aligned

    def upload(self, view: View, data: np.ndarray) -> None:
        """Writes a whole tensor."""
        data = np.ascontiguousarray(data)
        if data.size:
            copied = self._driver.cuMemcpyHtoDAsync(address_of(view), data.ctypes.data, data.nbytes, self._stream)
            self._check(copied, "a copy to the device")
            self._check(self._driver.cuStreamSynchronize(self._stream), "a copy to the device")

    def launch(self, kernel: int, threads: int, arguments: Sequence[Any]) -> None:
        """Launches a kernel on the stream."""
        prepared = self.prepare(kernel, threads, arguments)
        if prepared is not None:
            prepared()

    def prepare(self, kernel: int, threads: int, arguments: Sequence[Any]) -> Callable[[], None] | None:
        """What launches a kernel on the stream of the time, with the addresses that buffers then have; None for none.

        See `recorded_plan.record`.
        """
        info = self._kernels[kernel]
        blocks = min(info.blocks(threads), _MOST_BLOCKS)
        if not blocks:
            return None
        parameters = LaunchParameters(info, arguments)
        function, address = self._functions[kernel], parameters.address

        def launch() -> None:
            parameters.update()
            launched = self._driver.cuLaunchKernel(
                function, blocks, 1, 1, info.block, 1, 1, info.shared, self._stream, address, 0
            )
            if int(launched[0]):
                self._check(launched, f"kernel {info.name} with {blocks} blocks of {info.block} threads")

        return launch

    def has_library(self) -> bool:
        """Whether cuBLAS is there."""
        if self._cublas is None and self._missing is None:
            self._load_cublas()
        return self._cublas is not None

    def multiply(self, product: Gemm, arguments: Sequence[View]) -> bool:
        """Has cuBLAS compute a product on the stream; False if it is not there."""
        if not self.has_library() or self._cublas is None:
            return False

        def address(matrix: Matrix, dtype: str) -> int:
            return address_of(arguments[matrix.argument]) + matrix.offset * DTYPE_BYTES[dtype]

        self._cublas[0].multiply(product, address, int(self._stream))
        return True

    def missing(self) -> str | None:
        """Why products are not left to cuBLAS, though they were to be; None if nothing is missed."""
        return self._missing

    def replay(self, parameters: Sequence[Any], work: Callable[[], Any]) -> bool:
        """Does again in one go what `work` did for the same parameters, if it came often enough to be recorded.

        `work` launches kernels and no more, and gets all its memory through `arena`. Parameters are views, addresses
        and numbers.
        """
        key = tuple(
            (address_of(parameter), parameter.sizes) if isinstance(parameter, View) else parameter
            for parameter in parameters
        )

        def record(stream: Any) -> Any:
            current, self._stream = self._stream, stream
            try:
                return work()
            finally:
                self._stream = current

        return self._graphs.replay(key, self._stream, record)

    def read_number(self, buffer: _Memory, dtype: str, place: int) -> int | float:
        """Waits, and reads one element."""
        return self.download([View(buffer, dtype, place, 1, 0, (1,), (1,))])[0][0].item()

    def download(self, views: Sequence[View]) -> list[np.ndarray]:
        """Waits, and reads whole tensors."""
        arrays = [np.empty(view.sizes, numpy_dtype(view.dtype)) for view in views]
        for view, array in zip(views, arrays, strict=True):
            if array.size:
                copied = self._driver.cuMemcpyDtoHAsync(array.ctypes.data, address_of(view), array.nbytes, self._stream)
                self._check(copied, "a copy from the device")
        self._check(self._driver.cuStreamSynchronize(self._stream), "waiting for the kernels")
        return arrays

    def copy(self, target: View, source: View) -> None:
        """Copies a whole tensor on the device."""
        size = source.elements * DTYPE_BYTES[source.dtype]
        if size:
            copied = self._driver.cuMemcpyDtoDAsync(address_of(target), address_of(source), size, self._stream)
            self._check(copied, "a copy on the device")

    def _load_cublas(self) -> None:
        try:
            workspace = self._take(WORKSPACE_BYTES)
            self._cublas = Cublas(workspace.address, self._cublas_binding), workspace
        except PipelineError as error:
            self._missing = str(error)

    def _take(self, size: int) -> _Memory:
        size = max(256, -(-size // 256) * 256)
        free = self._free.get(size)
        if free:
            self._idle -= size
            return _Memory(free.pop(), size, self._take_back)
        address = int(self._check(self._driver.cuMemAlloc(size), f"{size} bytes of memory"))
        return _Memory(address, size, self._take_back)

    def _take_back(self, address: int, size: int) -> None:
        """Keeps memory for the next one who wants this size: launches run in order, so it may be used at once."""
        if self._idle + size > _IDLE_BYTES:
            self._driver.cuMemFree(address)
            return
        self._free.setdefault(size, []).append(address)
        self._idle += size

    def trim(self) -> None:
        """Gives idle memory back to the driver, which waits for what has been launched."""
        for addresses in self._free.values():
            for address in addresses:
                self._driver.cuMemFree(address)
        self._free, self._idle = {}, 0

    def _load(self, code: Sequence[bytes]) -> Any:
        """The machine code if it is for this GPU, else the PTX, translated by the driver."""
        major, minor = (self._check(self._driver.cuDeviceGetAttribute(attribute, self._device), "cuDeviceGetAttribute")
                        for attribute in _capability(self._driver))  # fmt: skip
        here, named = 10 * major + minor, self._target.rpartition("_")[2]
        wanted, is_exact = int(named.rstrip("a")), named.endswith("a")
        if here < wanted or (is_exact and here != wanted):
            others = "alone" if is_exact else "and later"
            raise PipelineError(f"the executable is for {self._target} {others}, this GPU is sm_{here}")
        if len(code) > 1 and major == wanted // 10:
            return self._check(self._driver.cuModuleLoadData(code[1]), "loading the machine code")
        return self._check(self._driver.cuModuleLoadData(code[0] + b"\0"), "translating the PTX")

    def _check(self, returned: Sequence[Any], what: str) -> Any:
        """What a function of the driver returns after its error code; raises `PipelineError` for an error."""
        error, *values = returned
        if int(error):
            name = self._driver.cuGetErrorString(error)[1]
            raise PipelineError(f"CUDA: {what}: {name.decode() if isinstance(name, bytes) else name}")
        return values[0] if values else None


def _capability(driver: Any) -> tuple[Any, Any]:
    names = driver.CUdevice_attribute
    prefix = "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_"
    return getattr(names, prefix + "MAJOR"), getattr(names, prefix + "MINOR")


def find_gpu(driver: Any = None) -> str:
    """The name of the GPU that executables would run on; raises `PipelineError` if there is none, and says why."""
    driver = driver or _cuda_driver()
    error, *found = driver.cuInit(0)
    if not int(error):
        error, *found = driver.cuDeviceGet(_torch_device())
    if not int(error):
        error, *found = driver.cuDeviceGetName(128, found[0])
    if int(error):
        name = driver.cuGetErrorString(error)[1]
        raise PipelineError(f"CUDA: looking for a GPU: {name.decode() if isinstance(name, bytes) else name}")
    return bytes(found[0]).split(b"\0")[0].decode()


def _cuda_driver() -> Any:
    try:
        from cuda.bindings import driver

        driver.cuDriverGetVersion()  # loads the library
    except ImportError:
        raise PipelineError("the target cuda needs cuda-bindings; pip install 'pipeline-mlir[cuda]'") from None
    except Exception as error:  # what the binding raises without a driver differs between versions
        raise PipelineError(f"the target cuda needs NVIDIA's driver, which is not there: {error}") from None
    return driver


@functools.cache
def _available(torch: Any) -> bool:
    """Whether torch has CUDA and a GPU; asking the driver for that takes longer than a call."""
    return bool(torch.cuda.is_available())


def _torch_cuda() -> Any:
    """torch.cuda, if torch is in use and has it; this module does not import it."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and _available(torch) else None


def _torch_device() -> int:
    cuda = _torch_cuda()
    return 0 if cuda is None else cuda.current_device()


def _torch_stream(device: int) -> int:
    """The handle of torch's current stream, as the code that Inductor generates asks for it: in a tenth of the time."""
    if _torch_cuda() is None:
        return 0
    return int(sys.modules["torch"]._C._cuda_getCurrentRawStream(device))
