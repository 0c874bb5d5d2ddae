"""Code for other CPUs and other programs: what is in it, what refuses it, and how C calls it."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch

import pipeline
from pipeline.errors import ArtifactError
from pipeline.runtime import artifact as artifacts
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


@pytest.mark.parametrize("cpu", ["x86-64-v3", "znver4"])
def test_an_artifact_for_a_cpu_that_this_machine_is_not(net, cpu, monkeypatch):
    """As seen on a machine that has all but the last thing that the CPU has."""
    path = emit(net, "exe", "net.pipeline", f"--cpu={cpu}")
    *has, lacks = isa(cpu).required
    monkeypatch.setattr(artifacts, "host_features", lambda: set(has))
    with pytest.raises(ArtifactError, match=f"is for the CPU {cpu}; this one lacks {re.escape(lacks)}$"):
        pipeline.load(path)
    monkeypatch.setattr(artifacts, "host_features", lambda: {*has, lacks})
    pipeline.load(path)


PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "net.h"

static void *read_file(const char *name) {
  FILE *file = fopen(name, "rb");
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  void *data = aligned_alloc(64, (size + 63) / 64 * 64);
  rewind(file);
  if (fread(data, 1, size, file) != (size_t)size) exit(2);
  fclose(file);
  return data;
}

int main(void) {
  int64_t prepare[NET_PREPARE_SLOTS], slots[NET_SLOTS];
  float result[5 * 7];
  @weights@
  pipeline_prepare(prepare);
  slots[NET_ARGUMENT_X] = (int64_t)read_file("x");
  slots[NET_RESULT_0] = (int64_t)result;
  slots[NET_WORKSPACE] = (int64_t)aligned_alloc(64, (NET_WORKSPACE_BYTES + 64) / 64 * 64);
  slots[NET_WORKSPACE + 1] = NET_WORKSPACE_BYTES;
  pipeline_main(slots);
  fwrite(result, 4, 5 * 7, stdout);
  return 0;
}
"""


def weights_in_c(header, names):
    """C that reads the weights and makes room for what is prepared of them, by what the header defines."""
    lines = []
    defined = re.findall(r"#define NET_(\w+) ", header)
    for name in names:
        word = "WEIGHT_" + name.replace(".", "_").upper()
        for array, macro in (("slots", word), ("prepare", f"PREPARE_{word}")):
            if macro in defined:
                lines.append(f'{array}[NET_{macro}] = (int64_t)read_file("{name}");')
    for number in range(sum(bool(re.fullmatch(r"PREPARE_PREPARED_\d+", word)) for word in defined)):
        size = f"(NET_PREPARE_PREPARED_{number}_BYTES + 63) / 64 * 64"
        lines.append(f"prepare[NET_PREPARE_PREPARED_{number}] = (int64_t)aligned_alloc(64, {size});")
        if f"PREPARED_{number}" in defined:
            lines.append(f"slots[NET_PREPARED_{number}] = prepare[NET_PREPARE_PREPARED_{number}];")
    return "\n  ".join(lines)


def test_a_c_program_calls_the_library(net, capsys):
    if shutil.which("cc") is None:
        assert compile_driver.main([str(net / "net.py"), "--emit=so", "-o", str(net / "net.so")]) == 1
        assert "needs a C compiler" in capsys.readouterr().err
        return
    emit(net, "so", "net.so", "--cpu=x86-64-v3")
    scope = {}
    exec(NET, scope)
    weights = scope["model"]()[0].state_dict()
    for name, tensor in weights.items():
        (net / name).write_bytes(tensor.numpy().tobytes())
    (net / "x").write_bytes(X.tobytes())
    (net / "program.c").write_text(PROGRAM.replace("@weights@", weights_in_c((net / "net.h").read_text(), weights)))
    subprocess.run(["cc", "program.c", "./net.so", "-o", "program"], cwd=net, check=True)
    ran = subprocess.run([net / "program"], cwd=net, check=True, capture_output=True)
    got = np.frombuffer(ran.stdout, np.float32).reshape(5, 7)
    np.testing.assert_allclose(got, wanted(net), rtol=1e-5, atol=1e-6)


def test_a_library_whose_kernels_are_shared_by_threads(net):
    if shutil.which("cc") is None:
        return  # there is a test above of what is said then
    (net / "net.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x @ x\n"
        "\n\ndef model():\n    return Net(), (torch.randn(256, 256),)\n"
    )
    library = ctypes.CDLL(str(emit(net, "so", "net.so")))
    defined = dict(re.findall(r"#define NET_(\w+) (\d+)", (net / "net.h").read_text()))
    assert "extern int32_t pipeline_threads;" in (net / "net.h").read_text()
    x = np.random.default_rng(0).standard_normal((256, 256), np.float32)
    results = []
    for number in (1, 2):
        ctypes.c_int32.in_dll(library, "pipeline_threads").value = number
        results.append(np.empty_like(x))
        slots = np.zeros(int(defined["SLOTS"]), np.int64)
        slots[int(defined["ARGUMENT_X"])] = x.ctypes.data
        slots[int(defined["RESULT_0"])] = results[-1].ctypes.data
        workspace = np.empty(int(defined["WORKSPACE_BYTES"]) + 64, np.uint8)
        slots[int(defined["WORKSPACE"])] = -(-workspace.ctypes.data // 64) * 64
        slots[int(defined["WORKSPACE"]) + 1] = int(defined["WORKSPACE_BYTES"])
        library.pipeline_main(slots.ctypes.data_as(ctypes.c_void_p))
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], x @ x, rtol=1e-3, atol=1e-3)


CONVOLUTION = """
import torch


def model():
    torch.manual_seed(0)
    net = torch.nn.Conv2d(64, 64, 3, padding=1).requires_grad_(False)
    return net, (torch.linspace(-1, 1, 64 * 56 * 56).view(1, 64, 56, 56),)
"""


def test_as_many_threads_as_there_is_scratch_for(net):
    """Kernels that need scratch take it from the workspace, whose size says for how many threads it is."""
    if shutil.which("cc") is None:
        return  # there is a test above of what is said then
    (net / "net.py").write_text(CONVOLUTION)
    library = ctypes.CDLL(str(emit(net, "so", "net.so")))
    defined = {name: int(value) for name, value in re.findall(r"#define NET_(\w+) (\d+)", (net / "net.h").read_text())}
    scope = {}
    exec(CONVOLUTION, scope)
    model, (x,) = scope["model"]()
    slots, kept = np.zeros(defined["SLOTS"], np.int64), []
    prepare = np.zeros(defined["PREPARE_SLOTS"], np.int64)
    for name, tensor in model.state_dict().items():
        for array, key in ((slots, f"WEIGHT_{name.upper()}"), (prepare, f"PREPARE_WEIGHT_{name.upper()}")):
            if key in defined:
                array[defined[key]] = tensor.data_ptr()
    for number in range(9):
        if f"PREPARE_PREPARED_{number}" in defined:
            kept.append(np.empty(defined[f"PREPARE_PREPARED_{number}_BYTES"], np.uint8))
            prepare[defined[f"PREPARE_PREPARED_{number}"]] = slots[defined[f"PREPARED_{number}"]] = kept[-1].ctypes.data
    library.pipeline_prepare(prepare.ctypes.data_as(ctypes.c_void_p))
    assert defined["THREAD_BYTES"] > 0
    for helpers in range(3):
        ctypes.c_int32.in_dll(library, "pipeline_threads").value = 3
        size = defined["WORKSPACE_BYTES"] + helpers * defined["THREAD_BYTES"]
        memory = np.full(size + 64 + 4 * defined["THREAD_BYTES"], 0xA5, np.uint8)
        start = -memory.ctypes.data % 64
        result = torch.empty(1, 64, 56, 56)
        slots[defined["ARGUMENT_INPUT"]], slots[defined["RESULT_0"]] = x.data_ptr(), result.data_ptr()
        slots[defined["WORKSPACE"]], slots[defined["WORKSPACE"] + 1] = memory.ctypes.data + start, size
        library.pipeline_main(slots.ctypes.data_as(ctypes.c_void_p))
        torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-5)
        assert (memory[start + size :] == 0xA5).all()
        used = memory[start + size - defined["THREAD_BYTES"] : start + size]
        assert (used != 0xA5).any()  # by the last thread that there is scratch for


RESULTS = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, y, ids):
        y.mul_(2)
        self.calls.add_(1)
        return (x + 1).transpose(0, 1), x.sum().item(), ids.sum().item(), torch.nonzero(ids), torch.fft.fft(x)


def model():
    return Net(), (torch.ones(2, 3), torch.ones(2), torch.ones(4, dtype=torch.int64))
"""


def test_the_header_says_what_results_are(net):
    (net / "net.py").write_text(RESULTS)
    emit(net, "obj", "net.o")
    found = re.findall(r"#define NET_RESULT_\d+ \d+ /\* (.*) \*/", (net / "net.h").read_text())
    assert found == [
        "float32[2, 3] that the model permutes by (1, 0), which it writes",
        "float64[] that the model returns as a number, which it writes",
        "a number, which it leaves",
        "int64[u1, 1], which it leaves: allocation to free(), address, offset, sizes, strides",
        "complex64[2, 3], which it writes",
    ]


def test_no_compiler_that_links(net, capsys, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert compile_driver.main([str(net / "net.py"), "--emit=so", "-o", str(net / "net.so")]) == 1
    assert "needs a C compiler that links" in capsys.readouterr().err
    assert not (net / "net.so").exists()
