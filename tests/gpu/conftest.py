"""What tests of kernels of CUDA share."""

from __future__ import annotations

import pytest
from cuda_simulator import SimulatedExecutable

from pipeline.runtime import device_executable


@pytest.fixture
def simulator(monkeypatch):
    """Executables for GPUs run on the simulator."""
    monkeypatch.setattr(device_executable, "DeviceExecutable", SimulatedExecutable)
