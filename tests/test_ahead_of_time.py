"""Code for other CPUs: what is in it, and what refuses it."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch
from host import runs

import pipeline
from pipeline.errors import ArtifactError, OptionError, PipelineError
from pipeline.runtime.native import cpu_features
from pipeline.targets.cpu.isa import isa
from pipeline.tools import compile as compile_driver

NET = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(33, 40), torch.nn.Linear(40, 7)

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


def model():
    return Net().eval().requires_grad_(False), (torch.linspace(-1, 1, 5 * 33).view(5, 33),)
"""

X = np.linspace(-1, 1, 5 * 33, dtype=np.float32).reshape(5, 33)

#: What only AVX-512 has: its registers, its masks.
AVX512 = re.compile(r"zmm|%k[0-7]|[xy]mm(1[6-9]|2\d|3[01])")


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def wanted(net):
    scope = {}
    exec((net / "net.py").read_text(), scope)
    model, _ = scope["model"]()
    return model(torch.from_numpy(X)).numpy()


def emit(net, kind, name, *options):
    assert compile_driver.main([str(net / "net.py"), f"--emit={kind}", "-o", str(net / name), *options]) == 0
    return net / name


def disassembly(path):
    """Of an object file, by objdump."""
    done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("cpu", "has"), [("x86-64", False), ("x86-64-v3", False), ("x86-64-v4", True), ("znver4", True)]
)
def test_instructions(net, cpu, has):
    assert bool(AVX512.search(emit(net, "asm", "net.s", f"--cpu={cpu}").read_text())) == has
    code = emit(net, "obj", "net.o", f"--cpu={cpu}")
    if shutil.which("objdump"):
        assert bool(AVX512.search(disassembly(code))) == has


def test_an_artifact_for_an_older_cpu_runs(net):
    exe = pipeline.load(emit(net, "exe", "net.pipeline", "--cpu=x86-64-v3"))
    np.testing.assert_allclose(exe(X), wanted(net), rtol=1e-5, atol=1e-6)
    for number, code in enumerate(exe.objects):
        (net / f"{number}.o").write_bytes(code)
        if shutil.which("objdump"):
            assert not AVX512.search(disassembly(net / f"{number}.o"))


@pytest.mark.parametrize("cpu", ["x86-64-v3", "znver4" if runs("znver4") else "x86-64-v2"])
def test_an_artifact_for_a_cpu_that_this_machine_is_not(net, cpu, monkeypatch):
    """As seen on a machine that has all but the last thing that the CPU has."""
    path = emit(net, "exe", "net.pipeline", f"--cpu={cpu}")
    *has, lacks = isa(cpu).required
    monkeypatch.setattr(cpu_features, "host_features", lambda: set(has))
    with pytest.raises(ArtifactError, match=f"is for the CPU {cpu}; this one lacks {re.escape(lacks)}$"):
        pipeline.load(path)
    monkeypatch.setattr(cpu_features, "host_features", lambda: {*has, lacks})
    pipeline.load(path)


@pytest.mark.parametrize(
    ("cpu", "why"),
    [
        ("neoverse-n1", "is for aarch64 machines, this one is x86_64"),
        ("x86-64-v2", "is for the CPU x86-64-v2; this one lacks popcnt"),
    ],
)
def test_an_executable_that_this_machine_cannot_run(cpu, why, tmp_path, monkeypatch):
    """It can be looked at and saved; what would run it says why not."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(cpu_features, "host_features", lambda: set(isa("x86-64-v2").required) - {"popcnt"})
    layer = torch.nn.Linear(33, 40).requires_grad_(False)
    exe = pipeline.compile(layer, (torch.from_numpy(X),), cpu=cpu)
    assert cpu in repr(exe) and "linalg" in exe.ir("linalg") and exe.memory.workspace >= 0
    with pytest.raises(PipelineError, match=f"^this executable {re.escape(why)}$"):
        exe(torch.from_numpy(X))
    with pytest.raises(PipelineError, match=re.escape(why)):
        exe.profile(torch.from_numpy(X))
    with pytest.raises(PipelineError, match=re.escape(why)):
        exe.save(tmp_path / "net", prepacked=True)
    exe.refresh()
    exe.num_threads = 2
    exe.with_weights(exe.weights)
    exe.save(tmp_path / "net")
    with pytest.raises(ArtifactError, match=f"net: {re.escape(why)}$"):
        pipeline.load(tmp_path / "net")
    with pytest.raises(OptionError, match="tune: this machine cannot run the code"):
        pipeline.compile(layer, (torch.from_numpy(X),), cpu=cpu, tune=1)


def test_a_cpu_that_is_not_known():
    with pytest.raises(OptionError, match="cpu='m68k': expected native or one of x86-64, .*, neoverse-n1, apple-m1, "):
        pipeline.compile(lambda x: x + 1, (torch.ones(3),), cpu="m68k")
