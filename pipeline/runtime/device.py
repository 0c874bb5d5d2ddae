"""Executables that run on a device with memory of its own: the code, what a device can do, and the call."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NoReturn, Protocol

import numpy as np

from pipeline.errors import ArtifactError, PipelineError
from pipeline.runtime.arguments import ArgumentReader, Arguments
from pipeline.runtime.arrays import ArrayLibrary, as_numpy, dtype_and_shape, library_of
from pipeline.runtime.code import Kernel, kernel_from_json
from pipeline.runtime.destinations import Destinations
from pipeline.runtime.executable import Executable, result_of
from pipeline.runtime.externals import Externals
from pipeline.runtime.layout import result_types
from pipeline.runtime.plan import Plan, Run, View, row_major
from pipeline.runtime.pytree import unflatten
from pipeline.runtime.signature import Source, TensorType
from pipeline.runtime.storage import numpy_dtype


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
    main: Plan
    main_sources: tuple[Source, ...]
    moved: tuple[bool, ...]
    prepare: Plan | None = None
    prepare_sources: tuple[Source, ...] = ()
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
            DeviceKernel(**{**kernel, "arguments": tuple(tuple(one) for one in kernel["arguments"])})
            for kernel in data["launches"]
        )
        return DeviceCode(
            target=data["target"],
            code=objects[:count],
            launches=launches,
            constants=tuple(constants),
            main=Plan.from_json(data["main"]),
            main_sources=tuple(Source(**source) for source in data["main_sources"]),
            moved=tuple(data["moved"]),
            prepare=None if data["prepare"] is None else Plan.from_json(data["prepare"]),
            prepare_sources=tuple(Source(**source) for source in data["prepare_sources"]),
            prepared=tuple(TensorType(kind["dtype"], tuple(kind["shape"])) for kind in data["prepared"]),
            checks=tuple(data["checks"]),
            required=tuple(data["required"]),
            kernels=tuple(map(kernel_from_json, data["kernels"])),
        )


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


class TensorDevice(Device, Protocol):
    """A device whose memory torch's tensors may lie in."""

    def begin(self) -> None:
        """Is called before each call."""
        ...

    def borrow(self, tensor: Any, dtype: str) -> View:
        """A torch tensor on the device as a view, with no copy."""
        ...

    def copy(self, target: View, source: View) -> None:
        """Copies a whole tensor on the device."""
        ...


def create_device(code: DeviceCode) -> Device:
    """The device that `code` is for, with its code loaded; raises `PipelineError` if there is none."""
    if code.target == "vulkan":
        from pipeline.runtime.vulkan import VulkanDevice

        return VulkanDevice(code.code, code.launches, code.required)
    if code.target.startswith("cuda"):
        from pipeline.runtime.cuda import CudaDevice

        return CudaDevice(code.code, code.launches, code.target)
    raise ArtifactError(f"the code is for {code.target}, which this version does not know")


class DeviceExecutable(Executable):
    """A compiled model that runs on a device.

    The device is looked for at the first call, so that a machine without one can compile and save. Weights are copied
    to it then, and again by `refresh()`. One call runs at a time.
    """

    _code: Any

    @property
    def code(self) -> Any:
        """The code, plans and constants."""
        return self._code

    @property
    def memory(self) -> NoReturn:
        """Is known of executables for the CPU alone."""
        raise PipelineError("memory: what executables for GPUs take is not reported yet")

    def profile(self, *args: Any, repeats: int = 10, **kwargs: Any) -> NoReturn:
        """Is there for executables for the CPU alone."""
        raise PipelineError("profile: kernels are timed on the target cpu only; use the tools of the GPU's vendor")

    def load_code(self, functions: Mapping[str, Callable[..., Any]], num_threads: int | None) -> None:
        """Readies everything but the device."""
        self._threads = self._record = None
        self._reader = ArgumentReader(self.signature, self._code.target.partition(":")[0])
        self._externals = Externals((), {})
        self._calling = threading.RLock()
        self._device: Any = None
        self._on_device: dict[str, View] = {}
        self._prepared: list[Any] = []
        self._constants: list[View] = []

    def make_device(self) -> Device:
        """The device to run on."""
        return create_device(self._code)

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Runs the model; see `Executable.__call__`."""
        call = self._reader.read(args, kwargs, self._library, ())
        destinations = None if out is None else Destinations(self.signature, out)
        with self._calling:
            self._wake()
            computed = self._compute(call)
            self._write_mutations_on_device(call, computed)
        if destinations is not None:
            destinations.fill(computed, call.leaves)
            return out
        leaves = iter([result_of(result, computed, call.leaves) for result in self.signature.results])
        return unflatten(self.signature.result_tree, leaves)

    def refresh(self) -> None:
        """Copies the weights to the device, and computes again what depends on them alone."""
        with self._calling:
            if self._device is None:
                return
            for weight in self.signature.weights:
                got = TensorType(*dtype_and_shape(self._weights[weight.name]))
                if got != weight.type:
                    raise PipelineError(f"weight {weight.name}: expected {weight.type}, is now {got}")
            self._on_device = {}
            self._prepared = self._prepare()

    def _wake(self) -> None:
        """Finds the device at the first call; has it take over torch's stream at each."""
        if self._device is None:
            self._device = self.make_device()
            self._constants = [self._put(array, str(array.dtype)) for array in self._code.constants]
            self.refresh()
        if hasattr(self._device, "begin"):
            self._device.begin()

    def _compute(self, call: Arguments) -> dict[int, Any]:
        """The results of main, by number, as tensors of the call's library and numbers."""
        plan: Plan = self._code.main
        parameters = [
            self._parameter(source, call, dtype)
            for source, dtype in zip(self._code.main_sources, plan.dtypes, strict=False)
        ]
        like = next((value for value in call.values if _is_on_device(value)), None)
        types = result_types(self.signature, len(self._code.moved))
        places = self._places(plan, len(parameters), types, like)
        returned = Run(plan, self._device, self._constants)([*parameters, *(view for view, _ in places)])
        values = self._in_order(places, [(value, None) for value in returned])
        pairs = zip(self._code.main_sources, parameters, strict=True)
        status = [view for source, view in pairs if source.kind == "status"]
        return self._results(values, status, types, call, like)

    def _results(
        self,
        values: list[tuple[Any, Any]],
        status: list[View],
        types: Sequence[TensorType | None],
        call: Arguments,
        like: Any,
    ) -> dict[int, Any]:
        """What the caller gets for each (value, tensor over it or None); raises `PipelineError` for a failed check."""
        computed: dict[int, Any] = {}
        wanted: dict[int, View] = {}
        for number, (value, tensor) in enumerate(values):
            if tensor is not None or not isinstance(value, View):
                computed[number] = value if tensor is None else tensor
            elif like is not None:
                view, computed[number] = self._tensor(like, types[number], value.dtype, value.sizes)
                self._device.copy(view, value)
            else:
                wanted[number] = value
        if status or wanted:
            arrays = self._device.download([*status, *wanted.values()])
            if status and arrays[0][0]:
                raise PipelineError(self._code.checks[int(arrays[0][0]) - 1])
            for number, array in zip(wanted, arrays[len(status) :], strict=True):
                computed[number] = _to_library(array, types[number], call.library)
        return computed

    def _places(self, plan: Plan, first: int, types: Sequence[TensorType | None], like: Any) -> list[tuple[View, Any]]:
        """New memory for the results of known size: where a caller's tensor is on the device, that of a new tensor."""
        kinds = [kind for kind, moved in zip(types, self._code.moved, strict=True) if moved]
        places: list[tuple[View, Any]] = []
        for kind, dtype, sizes in zip(kinds, plan.dtypes[first:], plan.shapes[first:], strict=True):
            assert dtype is not None and sizes is not None
            if like is not None:
                places.append(self._tensor(like, kind, dtype, sizes))
            else:
                places.append((self._new(dtype, sizes), None))
        return places

    def _new(self, dtype: str, sizes: Sequence[int]) -> View:
        return row_major(self._device.allocate(dtype, math.prod(sizes)), dtype, sizes)

    def _tensor(self, like: Any, kind: TensorType | None, dtype: str, sizes: Sequence[int]) -> tuple[View, Any]:
        """A new torch tensor on the device of `like`, and a view of it."""
        assert kind is not None
        torch = sys.modules["torch"]
        tensor = torch.empty(tuple(sizes), dtype=getattr(torch, kind.dtype), device=like.device)
        return self._device.borrow(tensor, dtype), tensor

    def _in_order(self, places: list[Any], returned: list[Any]) -> list[Any]:
        """The results of main, some of which went to parameters."""
        moved, others = iter(places), iter(returned)
        return [next(moved) if is_moved else next(others) for is_moved in self._code.moved]

    def _parameter(self, source: Source, call: Arguments | None, dtype: str | None) -> Any:
        if source.kind == "weight":
            return self._weight(source.name, str(dtype))
        if source.kind == "prepared":
            return self._prepared[source.index]
        if source.kind == "status":
            return self._put(np.zeros(1, np.int64), "int64")
        assert call is not None
        value = call.values[source.index]
        if dtype is None:
            return value
        return self._device.borrow(value, dtype) if _is_on_device(value) else self._put(as_numpy(value), dtype)

    def _weight(self, name: str, dtype: str) -> View:
        if name not in self._on_device:
            live = self._weights[name]
            live = live.cpu() if _is_on_device(live) else live
            self._on_device[name] = self._put(as_numpy(live), dtype)
        return self._on_device[name]

    def _put(self, array: np.ndarray, dtype: str) -> View:
        """A copy of an array on the device, its elements stored as `dtype`."""
        view = self._new(dtype, array.shape)
        self._device.upload(view, array.astype(numpy_dtype(dtype), copy=False))
        return view

    def _prepare(self) -> list[Any]:
        plan = self._code.prepare
        if plan is None:
            return []
        parameters = [
            self._parameter(source, None, dtype)
            for source, dtype in zip(self._code.prepare_sources, plan.dtypes, strict=False)
        ]
        kinds = zip(plan.dtypes[len(parameters) :], plan.shapes[len(parameters) :], strict=True)
        places = [self._new(dtype, sizes) for dtype, sizes in kinds if dtype is not None and sizes is not None]
        returned = Run(plan, self._device, self._constants)([*parameters, *places])
        assert not returned, "@prepare has results of unknown size"
        self._device.download([])
        return places

    def _write_mutations_on_device(self, call: Arguments, computed: dict[int, Any]) -> None:
        """Writes what the model mutates to the caller's tensors and the weights, and to the weights' copies here."""
        self.write_mutations(call, computed, {})
        for mutation in self.signature.mutations:
            if mutation.weight in self._on_device:
                view = self._on_device[str(mutation.weight)]
                result = computed[mutation.result]
                array = as_numpy(result.cpu() if _is_on_device(result) else result)
                self._device.upload(view, array.astype(numpy_dtype(view.dtype), copy=False))


def _is_on_device(value: Any) -> bool:
    """Whether a value is a tensor in the memory of a GPU."""
    owner = library_of(value)
    return owner is not None and owner.device(value).startswith("cuda")


def _to_library(array: np.ndarray, kind: TensorType | None, library: ArrayLibrary) -> Any:
    assert kind is not None
    tensor = library.empty(array.shape, kind.dtype)
    np.copyto(as_numpy(tensor), array, casting="unsafe")
    return tensor
