"""What becomes of random programs on GPUs: Vulkan on the CPU, and CUDA on the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import outcomes
from cuda_simulator import SimulatedExecutable
from tensor_programs import Program

from pipeline.captured import Captured
from pipeline.runtime import device_executable


def resized(programs: Sequence[Program]) -> list[outcomes.Outcome]:
    """As `outcomes.resized`, on each target."""

    def judge(captured: Captured, some: Sequence[Program]) -> list[outcomes.Outcome]:
        on_vulkan = outcomes.compared_resized(captured.compile(target="vulkan"), some)
        with _simulated_cuda():
            on_cuda = outcomes.compared_resized(captured.compile(target="cuda:sm_80"), some)
        return [outcomes.first_problem(*pair) for pair in zip(on_vulkan, on_cuda, strict=True)]

    return outcomes.attempt(programs, judge, outcomes.open_sizes)


@contextmanager
def _simulated_cuda() -> Iterator[None]:
    real = device_executable.DeviceExecutable
    device_executable.DeviceExecutable = SimulatedExecutable
    try:
        yield
    finally:
        device_executable.DeviceExecutable = real
