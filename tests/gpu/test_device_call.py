"""The short way of calls on a device, and launches that are recorded; against the driver with memory on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fake_driver import FakeDriver
from gpu_models import MODELS, Function
from torch import nn

import pipeline
from pipeline.errors import ArgumentError
from pipeline.runtime import device_executable
from pipeline.runtime.call.device_call import DeviceCall
from pipeline.runtime.device.cuda import CudaDevice
from pipeline.runtime.device_executable import DeviceExecutable


@pytest.fixture
def drivers(monkeypatch):
    """torch's tensors are taken to lie on the device, whose memory is the CPU's."""
    found = []

    class Executable(DeviceExecutable):
        def make_device(self):
            found.append(FakeDriver(self._code.launches, self.ir("llvm")))
            return CudaDevice(self._code.code, self._code.launches, self._code.target, found[-1])

    monkeypatch.setattr(device_executable, "DeviceExecutable", Executable)
    monkeypatch.setattr(device_executable, "is_on_device", lambda value: isinstance(value, torch.Tensor))
    return found


@pytest.fixture
def short(monkeypatch):
    """Whether each call that tried the short way could go it."""
    found = []
    call = DeviceCall.call

    def recorded(self, args):
        result = call(self, args)
        found.append(result is not NotImplemented)
        return result

    monkeypatch.setattr(DeviceCall, "call", recorded)
    return found


def _executable(function, *args):
    model = function if isinstance(function, nn.Module) else Function(function)
    return pipeline.compile(model.eval(), args, target="cuda:sm_80")


def test_from_the_second_call_on(drivers, short):
    model = nn.Sequential(nn.Linear(8, 40), nn.LayerNorm(40), nn.Softmax(-1)).requires_grad_(False)
    executable = _executable(model, torch.randn(4, 8))
    for _ in range(4):
        x = torch.randn(4, 8)
        torch.testing.assert_close(executable(x), model(x))
    assert short == [True] * 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + 1, x.sum(-1)),
        lambda x: [x * 2],
        lambda x: {"a": x.exp(), "b": (x - 1, x.amax(0))},
        lambda x: (x * 2).t(),
        lambda x: x.reshape(-1) + 1,
        lambda x: torch.softmax(x @ x.t(), -1).bfloat16(),
    ],
)
def test_results_of_any_structure(function, drivers, short):
    executable = _executable(function, torch.randn(5, 6))
    for _ in range(3):
        x = torch.randn(5, 6)
        result, expected = executable(x), function(x)
        torch.testing.assert_close(result, expected)
        strides = [[leaf.stride() for leaf in torch.utils._pytree.tree_leaves(tree)] for tree in (result, expected)]
        assert strides[0] == strides[1]
    assert short == [True] * 2


def test_results_are_new_tensors(drivers):
    executable = _executable(lambda x: x + 1, torch.randn(300))
    first = executable(torch.zeros(300))
    second, third = executable(torch.ones(300)), executable(torch.full((300,), 2.0))
    assert first.eq(1).all() and second.eq(2).all() and third.eq(3).all()


def test_what_goes_the_long_way(drivers, short):
    """Other memory, as it lies or as it is aligned, is copied; what is wrong is said as ever."""
    executable = _executable(lambda x, y: x * y, torch.randn(6, 8), torch.randn(6, 8))
    x, y = torch.randn(8, 6), torch.randn(6, 8)
    executable(y, y)
    for other in (x.t(), torch.randn(49)[1:].view(6, 8), torch._neg_view(y), y.numpy()):
        short.clear()
        torch.testing.assert_close(executable(other, y), torch.as_tensor(other) * y)
        assert short == [False], other
    out = torch.empty(6, 8)
    short.clear()
    assert executable(y, y, out=out) is out and out.equal(y * y) and not short
    for wrong, said in (
        (torch.randn(6, 9), r"expected float32\[6, 8\], got float32\[6, 9\]"),
        (y.double(), "got float64"),
        (y.to_sparse(), "expected a dense tensor"),
        (3.0, "expected a tensor"),
    ):
        with pytest.raises(ArgumentError, match=said):
            executable(wrong, y)
    with pytest.raises(ArgumentError, match="missing"):
        executable(y)


def test_a_parameter_of_torch_and_what_is_recorded_for_autograd(drivers, short):
    executable = _executable(lambda x: x * 3, torch.randn(5))
    executable(torch.randn(5))
    for x in (nn.Parameter(torch.randn(5)), torch.randn(5, requires_grad=True)):
        result = executable(x)
        assert not result.requires_grad and result.equal(x.detach() * 3)
    assert short == [True, True]


def test_weights_that_change(drivers, short):
    model = nn.Linear(8, 33)
    executable = _executable(model, torch.randn(4, 8))
    x = torch.randn(4, 8)
    for _ in range(3):
        torch.testing.assert_close(executable(x), model(x).detach())
        with torch.no_grad():
            model.weight.mul_(2)
        torch.testing.assert_close(executable(x), model(x).detach())
        torch.testing.assert_close(executable(x), model(x).detach())
    assert short == [True] * len(short) and short


def test_weights_that_only_prepare_reads_leave_the_device(drivers):
    """The layer's weight is transposed once; what was transposed need not stay, and comes again when it has changed."""
    model = nn.Linear(64, 512, bias=False)
    executable = _executable(model, torch.randn(9, 64))
    x = torch.randn(9, 64)
    torch.testing.assert_close(executable(x), model(x).detach())
    held = sum(len(memory) for memory in drivers[0].memory.values())
    assert 4 * 64 * 512 <= held < 2 * 4 * 64 * 512
    with torch.no_grad():
        model.weight.neg_()
    torch.testing.assert_close(executable(x), model(x).detach())
    assert sum(len(memory) for memory in drivers[0].memory.values()) <= held + 512


def test_other_addresses_in_a_graph(drivers, short):
    """Graphs hold the addresses that they were made with; others are launched one by one until they come again."""
    executable = _executable(lambda x: torch.softmax(x @ x, -1) @ x, torch.randn(40, 40))
    kept = [torch.randn(40, 40) for _ in range(5)]
    for _ in range(2):
        for x in kept:
            torch.testing.assert_close(executable(x), torch.softmax(x @ x, -1) @ x, atol=1e-4, rtol=1e-4)
    assert all(short)


@pytest.mark.parametrize("name", ["while", "cond, taken", "dynamic batch", "gather"])
def test_what_depends_on_more_than_addresses(name, drivers, short):
    """Must not fire: loops of the host, sizes that calls say, and checks whose outcome a call waits for."""
    case = MODELS[name]()
    executable = pipeline.compile(case.model, case.args, target="cuda:sm_80", dynamic_shapes=case.dynamic)
    for args in (case.args, *case.others, case.args):
        expected = case.model(*args)
        torch.testing.assert_close(executable(*args), expected, atol=1e-4, rtol=1e-4)
    assert not short


def test_arguments_on_the_host_between(drivers, short, monkeypatch):
    """NumPy's arrays are copied to the device and back, by the same launches."""
    executable = _executable(lambda x: torch.softmax(x, -1) + x, torch.randn(4, 8))
    for number in range(4):
        x = torch.randn(4, 8)
        given = x.numpy() if number % 2 else x
        result = executable(given)
        assert isinstance(result, np.ndarray if number % 2 else torch.Tensor)
        torch.testing.assert_close(torch.as_tensor(result), torch.softmax(x, -1) + x)


def test_no_elements(drivers, short):
    executable = _executable(lambda x: x + 1, torch.randn(0, 4))
    for _ in range(3):
        assert executable(torch.randn(0, 4)).shape == (0, 4)
    assert short == [True, True] and not drivers[0].launches


def test_tensors_on_another_device_go_the_long_way(drivers, short):
    executable = _executable(lambda x: x + 1, torch.randn(8))
    x = torch.randn(8)
    executable(x)
    executable._short._device = torch.device("cuda", 1)
    torch.testing.assert_close(executable(x), x + 1)
    assert short == [False]


class _Elsewhere(torch.Tensor):
    """A tensor that says that it lies on another GPU."""

    is_cuda = True

    def get_device(self):
        return 1


def test_another_gpu(drivers):
    executable = _executable(lambda x: x + 1, torch.randn(8))
    executable(torch.randn(8))
    with pytest.raises(pipeline.PipelineError, match="runs on cuda:0"):
        executable._device.borrow(torch.randn(8).as_subclass(_Elsewhere), "float32")
