"""A plan whose launches are the same at every call, worked out once: what is left to a call is addresses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pipeline.runtime.device.gemm_descriptor import Gemm
from pipeline.runtime.device.host_plan import HostPlan, PlanRun, View, row_major


class Place:
    """Memory whose address each call says."""

    address = 0


class RecordedPlan:
    """The launches of a plan, over the memory of its parameters, which calls name by their addresses.

    Attributes:
        is_one_launch: whether there is nothing to gain from handing them over in one go. A library's products are
            several calls of its own.
    """

    def __init__(self, places: Sequence[Place], work: Sequence[Callable[[], Any]], products: int, arena: Any):
        self._places = places
        self._work = work
        self._arena = arena  # the launches have its address
        self.is_one_launch = len(work) < 2 and not products

    def run(self, addresses: Sequence[int]) -> None:
        """Launches everything; `addresses` are those of the parameters' first elements."""
        for place, address in zip(self._places, addresses, strict=True):
            place.address = address
        for launch in self._work:
            launch()


def record(plan: HostPlan, device: Any, constants: Sequence[View]) -> RecordedPlan | None:
    """The launches of a plan; None where they depend on more than addresses, or the device has no use for them.

    A device has if it has `prepare`, which takes what `launch` takes and returns what launches, as often as it is
    called, on whatever memory the views' buffers then are.
    """
    shapes = [shape for shape in plan.shapes if shape is not None and min(shape, default=0) >= 0]
    if not plan.only_launches or not hasattr(device, "prepare") or len(shapes) < len(plan.parameters):
        return None
    places = [Place() for _ in shapes]
    recorder = _LaunchRecorder(device)
    run = PlanRun(plan, recorder, constants)
    run([row_major(*parts) for parts in zip(places, map(str, plan.dtypes), shapes, strict=True)])
    return RecordedPlan(places, recorder.work, recorder.products, run.arena)


class _LaunchRecorder:
    """What `PlanRun` needs of a device; it prepares launches and launches nothing."""

    def __init__(self, device: Any):
        self._device = device
        self.work: list[Callable[[], Any]] = []
        self.products = 0

    def arena(self, size: int) -> Any:
        """Memory of the device's, for all calls."""
        return self._device.arena(size)

    def launch(self, kernel: int, threads: int, arguments: Sequence[Any]) -> None:
        """Prepares a launch."""
        prepared = self._device.prepare(kernel, threads, arguments)
        if prepared is not None:
            self.work.append(prepared)

    def multiply(self, product: Gemm, arguments: Sequence[View]) -> bool:
        """Leaves a product to a library; False if that is missing."""
        if not self._device.has_library():
            return False
        self.products += 1
        self.work.append(functools.partial(self._device.multiply, product, arguments))
        return True
