"""Executables that run on a device with memory of its own: the call, and what lies on the device between calls."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from pipeline import locks
from pipeline.errors import PipelineError
from pipeline.remarks import Remark
from pipeline.runtime.call.arguments import ArgumentReader, Arguments
from pipeline.runtime.call.array_libraries import as_numpy, as_seen_by_code, library_of
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.call.device_call import CallAddresses, DeviceCall, suits
from pipeline.runtime.call.out_arguments import Destinations
from pipeline.runtime.call.outcome import hand_out, write_mutations
from pipeline.runtime.call.slot_layout import result_types
from pipeline.runtime.device.device import Device, create_device
from pipeline.runtime.device.host_plan import HostPlan, PlanRun, View, row_major
from pipeline.runtime.device.launch_parameters import ALIGNMENT, address_of
from pipeline.runtime.device.recorded_plan import RecordedPlan, record
from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.signature import PAIRS_OF, ParameterSource, TensorType
from pipeline.runtime.interface.storage_types import numpy_dtype
from pipeline.runtime.native.externals import Externals
from pipeline.runtime.weights.watch import PolledWatch
from pipeline.runtime.weights.weight_binding import live_weights, watched_copies

#: What a remark on a library that is missing is about.
_LIBRARY = "cublas"


class DeviceExecutable(Executable):
    """A compiled model that runs on a device.

    The device is looked for at the first call, so that a machine without one can compile and save. Weights are copied
    to it then, and again when they have changed. One call runs at a time.
    """

    _code: Any

    @property
    def target(self) -> str:
        """What its code is for: `vulkan`, or `cuda:` and an architecture."""
        return str(self._code.target)

    @property
    def code(self) -> Any:
        """The code, plans and constants."""
        return self._code

    @property
    def memory(self) -> NoReturn:
        """Is known of executables for the CPU alone."""
        raise PipelineError("memory: what executables for GPUs take is not reported yet")

    @property
    def has_profile(self) -> bool:
        """Kernels are timed on CPUs alone."""
        return False

    def profile(self, *args: Any, repeats: int = 10, **kwargs: Any) -> NoReturn:
        """Is there for executables for the CPU alone."""
        raise PipelineError("profile: kernels are timed on the target cpu only; use the tools of the GPU's vendor")

    def _prepacked(self) -> NoReturn:
        """Is there for executables for the CPU alone."""
        raise PipelineError("prepacked: executables for GPUs are saved with their weights; leave it out")

    def load_code(self, functions: Mapping[str, Callable[..., Any]], num_threads: int | None) -> None:
        """Readies everything but the device."""
        self._threads = self._record = None
        self._reader = ArgumentReader(self.signature, self._code.target.partition(":")[0])
        self._externals = Externals((), {})
        self._calling = locks.recursive_lock()
        self._device: Any = None
        self._watch: PolledWatch | None = None
        self._live: dict[str, Any] = {}
        self._on_device: dict[str, View] = {}
        self._prepared: list[Any] = []
        self._constants: list[View] = []
        self._launches: RecordedPlan | None = None
        self._short: DeviceCall | None = None

    def start(self) -> None:
        """Does nothing: the first call copies the weights."""

    def make_device(self) -> Device:
        """The device to run on."""
        return create_device(self._code)

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Runs the model; see `Executable.__call__`."""
        if self._short is not None and out is None and not kwargs:
            with self._calling:
                self._begin()
                short = None if self._is_outdated() else self._short
                result = NotImplemented if short is None else short.call(args)
            if result is not NotImplemented:
                return result
        call = self._reader.read(args, kwargs, self._library, ())
        destinations = None if out is None else Destinations(self.signature, out)
        with self._calling:
            self._wake()
            self._begin()
            if self._is_outdated():
                self.refresh()
            computed = self._compute(call)
            self._note_missing()
            self._write_mutations_on_device(call, computed)
        return hand_out(self.signature, call, computed, destinations)

    def refresh(self) -> None:
        """Copies the weights to the device, and computes again what depends on them alone."""
        with self._calling:
            if self._device is None:
                return
            self._live = live_weights(self.signature, self._source)
            if self._is_watched:
                self._watch = PolledWatch(watched_copies(self._live), self._source)
            self._on_device, self._prepared, self._short = {}, [], None
            self._prepared = self._prepare()

    def _is_outdated(self) -> bool:
        """Whether the weights are not what was copied to the device."""
        return self._watch is not None and bool(self._watch.run(0, 0))

    def _begin(self) -> None:
        """Has the device take over torch's current stream."""
        if hasattr(self._device, "begin"):
            self._device.begin()

    def _wake(self) -> None:
        """Finds the device at the first call."""
        if self._device is None:
            self._device = self.make_device()
            self._constants = [self._put(array, str(array.dtype)) for array in self._code.constants]
            self.refresh()
            self._launches = record(self._code.main, self._device, self._constants)

    def _note_missing(self) -> None:
        """Leaves one remark if a library is missing that products were to be left to."""
        reason = self._device.missing() if hasattr(self._device, "missing") else None
        if reason is None or any(remark.op == _LIBRARY for remark in self.remarks):
            return
        said = f"kernels of our own multiply: {reason}"
        self.remarks = (*self.remarks, Remark("mark-library-gemm", "missed", _LIBRARY, said))

    def _compute(self, call: Arguments) -> dict[int, Any]:
        """The results of main, by number, as tensors of the call's library and numbers."""
        plan: HostPlan = self._code.main
        parameters = [
            self._parameter(source, call, dtype)
            for source, dtype in zip(self._code.main_sources, plan.dtypes, strict=False)
        ]
        like = next((value for value in call.values if is_on_device(value)), None)
        types = result_types(self.signature, len(self._code.moved))
        places = self._places(plan, len(parameters), types, like)
        passed = [*parameters, *(view for view, _ in places)]
        returned = self._run(plan, passed)
        if self._launches is not None and self._short is None and like is not None:
            self._short = self._short_call(passed, types, like)
        values = self._in_order(places, [(value, None) for value in returned])
        pairs = zip(self._code.main_sources, parameters, strict=True)
        status = [view for source, view in pairs if source.kind == "status"]
        return self._results(values, status, types, call, like)

    def _run(self, plan: HostPlan, parameters: list[Any]) -> list[Any]:
        """The results of a plan; launches that are the same at every call are recorded where the device can do that."""
        if self._launches is not None:
            self._run_recorded(self._launches, list(map(address_of, parameters)))
            return []
        if not (plan.only_launches and len(plan.steps) > 1 and hasattr(self._device, "replay")):
            return PlanRun(plan, self._device, self._constants)(parameters)

        def work() -> Any:
            again = PlanRun(plan, self._device, self._constants)
            again(parameters)
            return again.arena

        if not self._device.replay(parameters, work):
            work()
        return []

    def _run_recorded(self, recorded: RecordedPlan, addresses: list[int]) -> None:
        """Launches one by one what is one launch, or comes with these addresses for the first time; else in one go."""
        if recorded.is_one_launch or not self._device.replay(addresses, lambda: recorded.run(addresses)):
            recorded.run(addresses)

    def _short_call(self, parameters: list[View], types: Sequence[TensorType | None], like: Any) -> DeviceCall | None:
        """What calls with tensors on the device of `like` go through from now on; None where some need more."""
        recorded, sources = self._launches, self._code.main_sources
        if recorded is None or not suits(self.signature, sources, self._code.moved):
            return None
        addresses = CallAddresses(tuple(map(address_of, parameters)), sources, ALIGNMENT)
        results = [kind for kind in types if kind is not None]
        run = functools.partial(self._run_recorded, recorded)
        return DeviceCall(self.signature, addresses, results, like.device, run)

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

    def _places(
        self, plan: HostPlan, first: int, types: Sequence[TensorType | None], like: Any
    ) -> list[tuple[View, Any]]:
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
        tensor = torch.empty(_sizes_of(kind, sizes), dtype=getattr(torch, kind.dtype), device=like.device)
        return self._device.borrow(tensor, dtype), tensor

    def _in_order(self, places: list[Any], returned: list[Any]) -> list[Any]:
        """The results of main, some of which went to parameters."""
        moved, others = iter(places), iter(returned)
        return [next(moved) if is_moved else next(others) for is_moved in self._code.moved]

    def _parameter(self, source: ParameterSource, call: Arguments | None, dtype: str | None) -> Any:
        if source.kind == "weight":
            return self._weight(source.name, str(dtype))
        if source.kind == "prepared":
            return self._prepared[source.index]
        if source.kind == "status":
            return self._put(np.zeros(1, np.int64), "int64")
        assert call is not None
        if source.kind == "seed":
            return call.library.seed()
        value = call.values[source.index]
        if dtype is None:
            return value
        return self._device.borrow(value, dtype) if is_on_device(value) else self._put(as_numpy(value), dtype)

    def _weight(self, name: str, dtype: str) -> View:
        if name not in self._on_device:
            live = self._live[name]
            live = live.cpu() if is_on_device(live) else live
            self._on_device[name] = self._put(as_numpy(live), dtype)
        return self._on_device[name]

    def _put(self, array: np.ndarray, dtype: str) -> View:
        """A copy of an array on the device, its elements stored as `dtype`."""
        view = self._new(dtype, as_seen_by_code(array).shape)
        self._device.upload(view, _as_stored(array, dtype))
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
        returned = PlanRun(plan, self._device, self._constants)([*parameters, *places])
        assert not returned, "@prepare has results of unknown size"
        self._device.download([])
        parameters.clear()
        self._forget_unread_weights()
        return places

    def _forget_unread_weights(self) -> None:
        """Gives back the memory of weights that only @prepare reads."""
        read = {source.name for source in self._code.main_sources if source.kind == "weight"}
        self._on_device = {name: view for name, view in self._on_device.items() if name in read}
        if hasattr(self._device, "trim"):
            self._device.trim()

    def _write_mutations_on_device(self, call: Arguments, computed: dict[int, Any]) -> None:
        """Writes what the model mutates to the caller's tensors and the weights, and to the weights' copies here."""
        write_mutations(self.signature, call, computed, self._live, {})
        if self._watch is not None:
            self._watch.accept(mutation.weight for mutation in self.signature.mutations if mutation.weight is not None)
        for mutation in self.signature.mutations:
            if mutation.weight in self._on_device:
                view = self._on_device[str(mutation.weight)]
                result = computed[mutation.result]
                array = as_numpy(result.cpu() if is_on_device(result) else result)
                self._device.upload(view, _as_stored(array, view.dtype))


def is_on_device(value: Any) -> bool:
    """Whether a value is a tensor in the memory of a GPU."""
    owner = library_of(value)
    return owner is not None and owner.device(value).startswith("cuda")


def _sizes_of(kind: TensorType, seen: Sequence[int]) -> tuple[int, ...]:
    """The sizes of a tensor by those that code sees: pairs, where it is complex."""
    return tuple(seen[:-1] if kind.dtype in PAIRS_OF else seen)


def _as_stored(array: np.ndarray, dtype: str) -> np.ndarray:
    """An array with elements of a dtype of the device; bytes in words have the sign that code gives them."""
    array, stored = as_seen_by_code(array), numpy_dtype(dtype)
    if array.dtype.kind == "u" and array.itemsize < np.dtype(stored).itemsize:
        array = array.view(f"i{array.itemsize}")
    return array.astype(stored, copy=False)


def _to_library(array: np.ndarray, kind: TensorType | None, library: ArrayLibrary) -> Any:
    assert kind is not None
    tensor = library.empty(_sizes_of(kind, array.shape), kind.dtype)
    np.copyto(as_seen_by_code(as_numpy(tensor)), array, casting="unsafe")
    return tensor
