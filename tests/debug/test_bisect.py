"""The bisector finds passes that do wrong, the ops that they do it to, and the code behind the passes on tensors."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
from cuda_simulator import SimulatedExecutable
from function_model import Function
from torch import nn
from torch.export import Dim

import pipeline
from pipeline import debug, plugins
from pipeline.debug import lowering, slowness
from pipeline.errors import CheckError
from pipeline.passmanager import registry
from pipeline.runtime import device_executable
from pipeline.tools import bisect as driver
from pipeline.tools import opt

PLUGIN = Path(__file__).with_name("defective_passes.py")


class Net(nn.Module):
    """Sums of even and of odd sizes, in front of and behind what else a model has."""

    def __init__(self, size: int = 6):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, size)
        self.register_buffer("calls", torch.zeros(2))

    def forward(self, x, y):
        self.calls.add_(1)
        return self.second(self.first(x).tanh()) + y


def odd():
    return Net(7), (torch.ones(2, 4), torch.ones(7))


def even():
    return Net(), (torch.ones(2, 4), torch.ones(6))


@pytest.fixture(autouse=True)
def _plugin(monkeypatch):
    """Loaded for one test at a time: who has plugins uses no disk cache, and docs know the passes of the house."""
    registry.passes()
    monkeypatch.setattr(registry, "_classes", dict(registry._classes))
    monkeypatch.setattr(plugins, "_files", dict(plugins._files))
    registry.load_plugin(PLUGIN)


def test_nothing_is_found_in_what_is_right():
    model, args = odd()
    assert debug.bisect(model, args) is None
    assert debug.bisect(Net(), even()[1], passes={"linalg": "odd-sizes-twice"}) is None
    assert torch.equal(model.calls, torch.zeros(2))  # the caller's own tensors are left alone


@pytest.mark.parametrize(
    ("stage", "name", "make"),
    [("linalg", "add-to-sub", even), ("fused", "odd-sizes-twice", odd), ("kernels", "add-to-sub", even)],
)
def test_a_pass_that_changes_numbers(stage, name, make, tmp_path, capsys):
    model, args = make()
    found = debug.bisect(model, args, passes={stage: f"cse,{name},canonicalize"})
    assert (found.kind, found.pass_name) == ("wrong", name)
    assert found.part.ops == 1
    assert not np.allclose(found.expected.results[0], found.got.results[0])
    assert (stage == "linalg") == (not found.kernels)

    reduced = found.write(tmp_path)
    inputs = [np.load(path) for path in sorted(tmp_path.glob("input*.npy"))]
    np.testing.assert_allclose(debug.interpret(reduced, *inputs)[0], found.expected.results[0], rtol=1e-5)
    program, *arguments = shlex.split(found.command(reduced))
    assert program == "pipeline-opt"
    after = tmp_path / "after.mlir"
    assert opt.main([*arguments, "-o", str(after)]) == 0, capsys.readouterr().err
    np.testing.assert_allclose(debug.interpret(after, *inputs)[0], found.got.results[0], rtol=1e-5)


def test_a_pass_that_crashes():
    model, args = even()
    found = debug.bisect(model, args, passes={"fused": "abort-on-tanh"})
    assert (found.kind, found.pass_name, found.part.ops) == ("failed", "abort-on-tanh", 1)
    assert "SIGABRT" in found.problem


def test_a_pass_that_makes_code_slower(monkeypatch):
    monkeypatch.setattr(slowness, "gain", lambda old, new: 5.0)  # what a clock says is no matter of tests
    model, args = even()
    found = debug.bisect(model, args, passes={"linalg": "many-sines"}, slower=True)
    assert (found.kind, found.pass_name) == ("slower", "many-sines")
    assert "5.00 times as fast" in str(found)
    assert any("sin" in kernel for kernel in found.kernels)


def test_a_slow_pass_of_a_network_with_prepared_weights_is_written(monkeypatch, tmp_path):
    monkeypatch.setattr(slowness, "gain", lambda old, new: 5.0)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
    found = debug.bisect(network, (torch.randn(1, 3, 9, 9),), passes={"fused": "many-sines"}, slower=True)
    reduced = found.write(tmp_path / "found")
    assert "@prepare" in reduced.read_text() and [path.name for path in reduced.parent.iterdir()] == ["reduced.mlir"]


def test_passes_of_the_lowering(monkeypatch):
    """Up to bufferization they are found as those before; behind it by the kernel that is wrong, compiled alone."""
    from pipeline.targets.cpu import build

    model, args = even()
    with monkeypatch.context() as patch:
        patch.setattr(build, "BUFFERIZE", build.BUFFERIZE.replace("tile-groups,", "tile-groups, tanh-to-sine,"))
        found = debug.bisect(model, args)
        assert (found.kind, found.pass_name, found.part.ops) == ("wrong", "tanh-to-sine", 1)
        with pytest.raises(CheckError, match="pass 'tanh-to-sine' changes the numbers"):
            pipeline.compile(model, args, check=True)
    monkeypatch.setattr(build, "BUFFERIZE", f"{build.BUFFERIZE.rstrip()}, tanh-to-erf")
    found = debug.bisect(model, args)
    assert (found.kind, found.pass_name) == ("lowering", "tanh-to-erf")
    assert found.kernels and all("tanh" in kernel for kernel in found.kernels)


def test_a_kernel_that_takes_a_size(monkeypatch):
    from pipeline.targets.cpu import build

    monkeypatch.setattr(build, "BUFFERIZE", f"{build.BUFFERIZE.rstrip()}, tanh-to-erf")
    model, shapes = Function(lambda x: (torch.arange(x.shape[0]) * x.shape[0] + x).tanh()), (({0: Dim.DYNAMIC},),)
    found = debug.bisect(model, (torch.randn(5),), dynamic_shapes=shapes)
    assert (found.kind, found.pass_name) == ("lowering", "tanh-to-erf")


def test_a_network_with_prepared_weights_that_no_kernel_is_to_blame_for_is_written_whole(monkeypatch, tmp_path):
    from pipeline.targets.cpu import build

    monkeypatch.setattr(build, "BUFFERIZE", f"{build.BUFFERIZE.rstrip()}, tanh-to-erf")
    monkeypatch.setattr(lowering, "_kernels", lambda whole: iter(()))
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Tanh()).eval()
    image = torch.randn(1, 3, 9, 9)
    found = debug.bisect(network, (image,))
    assert (found.kind, found.pass_name) == ("lowering", lowering.BEHIND)
    reduced = found.write(tmp_path / "found")
    assert "@prepare" in reduced.read_text()
    np.testing.assert_array_equal(np.load(reduced.with_name("input0.npy")), image.numpy())


def test_gpus(monkeypatch):
    model, args = odd()
    with pytest.raises(pipeline.PipelineError, match="passes on tensors are right, but the code cannot be run here"):
        debug.bisect(model, args, target="cuda:sm_80")
    remarks = pipeline.compile(model, args, target="cuda:sm_80", check=True).remarks
    assert any(remark.pass_name == "check" and "cannot be run here" in remark.reason for remark in remarks)
    monkeypatch.setattr(device_executable, "DeviceExecutable", SimulatedExecutable)
    assert debug.bisect(model, args, target="cuda:sm_80") is None
    for target in ("cuda:sm_80", "vulkan"):
        found = debug.bisect(model, args, target=target, passes={"fused": "add-to-sub"})
        assert (found.kind, found.pass_name, found.part.ops) == ("wrong", "add-to-sub", 1)


def test_a_checked_compilation_names_the_pass_and_the_kernel():
    model, args = odd()
    executable = pipeline.compile(model, args, check=True)
    torch.testing.assert_close(executable(*args), model(*args))
    with pytest.raises(CheckError, match=r"pass 'add-to-sub' changes the numbers: (?s:.)*in kernel fused_matmul_add"):
        pipeline.compile(model, args, check=True, passes={"fused": "add-to-sub"})


NET = """
import sys
sys.path.insert(0, {folder!r})
from test_bisect import odd as model
"""


def test_the_driver(tmp_path, capsys):
    file = tmp_path / "net.py"
    file.write_text(NET.format(folder=str(PLUGIN.parent)))
    assert driver.main([str(file), "-o", str(tmp_path / "found")]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    arguments = [str(file), "--passes=fused=odd-sizes-twice", f"--load-plugin={PLUGIN}", "-o", str(tmp_path / "found")]
    assert driver.main(arguments) == driver.FOUND
    said = capsys.readouterr()
    assert "pass 'odd-sizes-twice' changes the numbers" in said.out
    assert re.search(r"pipeline-opt \S+reduced.mlir .*odd-sizes-twice", said.out)
    assert "interpreting the program after pass" in said.err
    assert driver.main([str(tmp_path / "none.py")]) == 1
    assert capsys.readouterr().err.startswith("pipeline-bisect: error: ")
