"""CudaDevice against a driver that keeps memory on the CPU and launches on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fake_driver import FakeDriver
from gpu_models import MODELS, Function
from torch import nn

import pipeline
from pipeline.errors import PipelineError
from pipeline.runtime import device_executable
from pipeline.runtime.device.cuda import CudaDevice
from pipeline.runtime.device.host_plan import row_major
from pipeline.runtime.device_executable import DeviceExecutable


@pytest.fixture
def on_fake_driver(monkeypatch):
    drivers = []

    class Executable(DeviceExecutable):
        def make_device(self):
            drivers.append(FakeDriver(self._code.launches, self.ir("llvm")))
            return CudaDevice(self._code.code, self._code.launches, self._code.target, drivers[-1])

    monkeypatch.setattr(device_executable, "DeviceExecutable", Executable)
    return drivers


@pytest.mark.parametrize("name", ["mlp", "while", "dynamic batch", "gather", "rows", "products", "sort"])
def test_models(name, on_fake_driver):
    from agreement_with_eager import check

    check(MODELS[name](), "cuda:sm_80")
    assert on_fake_driver[0].launches


def _executable(function, *args, target="cuda:sm_80"):
    return pipeline.compile(Function(function), args, target=target)


def test_machine_code_for_this_gpu_else_ptx():
    executable = _executable(lambda x: x + 1, torch.randn(4))
    code = executable.code
    pieces = (code.code[0], b"cubin")
    for capability, expected in (((8, 6), b"cubin"), ((9, 0), code.code[0] + b"\0")):
        driver = FakeDriver(code.launches, executable.ir("llvm"), capability)
        CudaDevice(pieces, code.launches, code.target, driver)
        assert driver.loaded == expected
    with pytest.raises(PipelineError, match="is for cuda:sm_80 and later, this GPU is sm_75"):
        CudaDevice(pieces, code.launches, code.target, FakeDriver(code.launches, executable.ir("llvm"), (7, 5)))


def test_code_for_one_architecture_alone():
    """What is for sm_90a runs on no other, later ones neither."""
    executable = _executable(lambda x: x + 1, torch.randn(4), target="cuda:sm_90a")
    code = executable.code
    for capability in ((8, 9), (10, 0)):
        driver = FakeDriver(code.launches, executable.ir("llvm"), capability)
        with pytest.raises(PipelineError, match=r"is for cuda:sm_90a alone, this GPU is sm_\d+"):
            CudaDevice(code.code, code.launches, code.target, driver)


def test_much_shared_memory_is_asked_for(on_fake_driver):
    a, b = (torch.randn(64, 64).bfloat16() for _ in range(2))
    executable = _executable(lambda a, b: a @ b, a, b, target="cuda:sm_90a")
    torch.testing.assert_close(executable(a, b), a @ b, rtol=2e-2, atol=0.25)
    (kernel,) = executable.code.launches
    assert on_fake_driver[0].shared == {kernel.name: kernel.shared} and kernel.shared > 48 * 1024


def test_an_error_names_the_kernel_and_the_launch(on_fake_driver):
    executable = _executable(lambda x: x + 1, torch.randn(300))
    executable(torch.randn(300))
    driver = on_fake_driver[0]
    driver.failing = driver.launches[-1]
    with pytest.raises(PipelineError, match=r"kernel add_0_dispatch with 1 blocks of \d+ threads: an illegal memory"):
        executable(torch.randn(300))


def test_memory_is_used_again(on_fake_driver):
    executable = _executable(lambda x: torch.softmax(x @ x, -1), torch.randn(8, 8))
    executable(torch.randn(8, 8))
    before = len(on_fake_driver[0].memory)
    for _ in range(3):
        executable(torch.randn(8, 8))
    assert len(on_fake_driver[0].memory) == before


def test_a_tensor_that_is_not_aligned_is_copied():
    executable = _executable(lambda x: x + 1, torch.randn(8))
    code = executable.code
    device = CudaDevice(code.code, code.launches, code.target, FakeDriver(code.launches, executable.ir("llvm")))
    whole = torch.arange(65, dtype=torch.float32)
    start = next(number for number in range(4) if whole[number:].data_ptr() % 16 == 0)
    aligned = device.borrow(whole[start : start + 8], "float32")
    assert aligned.buffer.address == whole[start:].data_ptr()
    copied = device.borrow(whole[start + 1 : start + 9], "float32")
    assert copied.buffer.address % 16 == 0
    (array,) = device.download([row_major(copied.buffer, "float32", (8,))])
    assert np.array_equal(array, whole[start + 1 : start + 9].numpy())


def test_a_call_that_comes_again_is_a_graph(on_fake_driver):
    """Not the first time: the addresses may never come again. Arguments change, results stay right."""
    model = nn.Sequential(nn.Linear(8, 40), nn.LayerNorm(40), nn.Softmax(-1))
    executable = pipeline.compile(model, (torch.randn(4, 8),), target="cuda:sm_80")
    for number in range(4):
        x = torch.randn(4, 8)
        torch.testing.assert_close(executable(x), model(x))
        driver = on_fake_driver[0]
        assert driver.graph_launches == max(0, number)
    assert len(driver.graphs) == 1 and len(driver.graphs[0]) > 1


def test_what_reads_numbers_back_is_no_graph(on_fake_driver):
    """Must not fire: which launches there are depends on what the device computes; nor with one launch alone."""
    loop = MODELS["while"]()
    executable = pipeline.compile(loop.model, loop.args, target="cuda:sm_80")
    single = _executable(lambda x: x + 1, torch.randn(4))
    for _ in range(3):
        executable(*loop.args)
        single(torch.randn(4))
    assert not on_fake_driver[0].graphs and not on_fake_driver[1].graphs


def test_an_error_of_a_graph_is_reported(on_fake_driver):
    executable = _executable(lambda x: torch.softmax(x @ x, -1), torch.randn(8, 8))
    for _ in range(2):
        executable(torch.randn(8, 8))
    on_fake_driver[0].failing = "graph"
    with pytest.raises(PipelineError, match="launching the graph of a call: an illegal memory"):
        executable(torch.randn(8, 8))


def test_few_graphs_are_kept(on_fake_driver):
    """Other addresses, another graph; the oldest goes."""
    from pipeline.runtime.device import cuda_graphs

    driver = FakeDriver((), "")
    graphs = cuda_graphs.Graphs(driver, lambda returned, what: returned[1] if len(returned) > 1 else None)
    for number in range(cuda_graphs._MOST_GRAPHS + 2):
        assert not graphs.replay(number, 0, lambda stream: None)
        assert graphs.replay(number, 0, lambda stream: None)
    assert [graph is None for graph in driver.graphs] == [True] * 2 + [False] * cuda_graphs._MOST_GRAPHS
